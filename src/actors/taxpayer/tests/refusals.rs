//! Tests of commands that are refused.

use super::{BY, ID, TestTaxpayers, draft, onboarding, part};
use crate::actors::taxpayer::commands::{
    ChangePayment, CreateInvoice, RecordVerification, RotateKey, SetSubscription,
};
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::domain::access::api_key::{KeyTerms, NewKey};
use crate::domain::kernel::codes::Subscription;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::verification::{UnverifiedReason, Verification};
use crate::store::testing::stores;

#[actix_rt::test]
async fn a_refusal_leaves_no_trace() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        app.taxpayers
            .send(ID, CreateInvoice(draft("INV-1", 100)))
            .await
            .unwrap();
        let before = app.verify_log().await;
        assert!(
            app.taxpayers
                .send(ID, ChangePayment(part("INV-1", 1)))
                .await
                .is_err(),
            "not approved"
        );
        assert!(
            app.taxpayers
                .send(ID, ChangePayment(part("NONE", 1)))
                .await
                .is_err(),
            "not there"
        );
        app.taxpayers
            .send(
                ID,
                SetSubscription {
                    to: Subscription::Inactive,
                    by: BY,
                },
            )
            .await
            .unwrap();
        assert!(
            app.taxpayers
                .send(ID, CreateInvoice(draft("INV-2", 100)))
                .await
                .is_err(),
            "no subscription"
        );
        assert_eq!(app.verify_log().await, before);
        app.close().await;
    }
}

#[actix_rt::test]
async fn values_that_another_taxpayer_has_are_refused_field_by_field() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let Err(TaxpayerError::Refused(Refusal::Invalid(faults))) =
            app.taxpayers.send(TaxpayerId(2), onboarding("a")).await
        else {
            panic!("the duplicate was onboarded")
        };
        let fields: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(
            fields,
            [
                "email",
                "tin_no",
                "authority_service_id",
                "authority_business_id",
                "contact_person.email"
            ]
        );
        app.taxpayers
            .send(TaxpayerId(2), onboarding("b"))
            .await
            .unwrap();
        app.close().await;
    }
}

/// Returns a command that adds a key beside the others.
fn new_key(text: String, keys_max: Option<usize>) -> RotateKey {
    let terms = KeyTerms {
        keeps_others: true,
        ..KeyTerms::default()
    };
    RotateKey {
        key: NewKey::new(text.into(), terms),
        keys_max,
        by: BY,
    }
}

#[actix_rt::test]
async fn keys_that_are_asked_for_at_the_same_time_are_not_too_many() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let asked = (0..8).map(|number| {
            let command = new_key(format!("tpk_{number}"), Some(3));
            app.taxpayers.send(ID, command)
        });
        let answers = futures_util::future::join_all(asked).await;
        let refused = answers.iter().filter(|answer| {
            matches!(answer, Err(TaxpayerError::Refused(Refusal::TooManyKeys(3))))
        });
        assert_eq!(refused.count(), 5, "{answers:?}");
        let later = new_key("tpk_later".into(), Some(3));
        assert!(app.taxpayers.send(ID, later).await.is_err());
        let unlimited = new_key("tpk_more".into(), None);
        app.taxpayers.send(ID, unlimited).await.unwrap();
        app.close().await;
    }
}

#[actix_rt::test]
async fn a_changed_verification_is_a_change_of_the_taxpayer() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let mut times = Vec::new();
        // The second command finds what is recorded already.
        for _ in 0..2 {
            let command = RecordVerification {
                found: Verification::Unverified(UnverifiedReason::BusinessUnknown),
                by: None,
                reason: None,
            };
            let taxpayer = app.taxpayers.send(ID, command).await.unwrap();
            assert!(taxpayer.updated_at > taxpayer.created_at);
            times.push(taxpayer.updated_at);
        }
        assert_eq!(times[0], times[1]);
        app.close().await;
    }
}
