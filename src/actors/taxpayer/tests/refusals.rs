//! Tests of commands that are refused.

use super::{BY, ID, TestTaxpayers, draft, onboarding, part};
use crate::actors::taxpayer::commands::{CreateInvoice, Pay, SetSubscription};
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::domain::kernel::codes::Subscription;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
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
            app.taxpayers.send(ID, Pay(part("INV-1", 1))).await.is_err(),
            "not approved"
        );
        assert!(
            app.taxpayers.send(ID, Pay(part("NONE", 1))).await.is_err(),
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
