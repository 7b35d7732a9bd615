//! Tests of commands on one invoice that arrive at the same time.

use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use supervision::Arbiters;
use timing::clock::SystemClock;

use super::{ID, TestTaxpayers, by_number, draft, part, submission};
use crate::actors::taxpayer::commands::{
    ChangePayment, CreateInvoice, SetStatus, SubmissionAfterApproval, SubmissionOfStored,
};
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::domain::invoice::batch::Duplicate;
use crate::domain::kernel::codes::{SettableStatus, WorkflowStatus};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::money::Amount;
use crate::store::testing::stores;

#[actix_rt::test]
async fn concurrent_creates_of_one_invoice_create_it_once_and_return_it_to_all() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let created =
            join_all((0..64).map(|_| app.taxpayers.send(ID, CreateInvoice(draft("INV-1", 100)))))
                .await;
        let created: Vec<_> = created.into_iter().map(Result::unwrap).collect();
        assert_eq!(
            created.iter().filter(|one| one.duplicate.is_none()).count(),
            1
        );
        assert_eq!(
            created
                .iter()
                .filter(|one| one.duplicate == Some(Duplicate::Identical))
                .count(),
            63
        );
        assert!(
            created
                .iter()
                .all(|one| one.invoice.id == created[0].invoice.id)
        );
        let other = app
            .taxpayers
            .send(ID, CreateInvoice(draft("INV-1", 7)))
            .await
            .unwrap();
        assert_eq!(other.duplicate, Some(Duplicate::Different));
        assert_eq!(app.verify_log().await, 1);
        app.close().await;
    }
}

#[actix_rt::test]
async fn concurrent_partial_payments_are_accepted_up_to_the_payable_amount() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        app.taxpayers
            .send(ID, CreateInvoice(draft("INV-1", 100)))
            .await
            .unwrap();
        app.approve("INV-1").await;
        let paid =
            join_all((0..500).map(|_| app.taxpayers.send(ID, ChangePayment(part("INV-1", 1)))))
                .await;
        let accepted: Vec<_> = paid.iter().filter_map(|one| one.as_ref().ok()).collect();
        assert_eq!(accepted.len(), 100);
        assert!(
            paid.iter()
                .filter_map(|one| one.as_ref().err())
                .all(|failure| matches!(
                    failure,
                    TaxpayerError::Refused(Refusal::PaymentExceedsPayable(_))
                ))
        );
        let most = accepted.iter().map(|paid| paid.invoice.payment.paid).max();
        assert_eq!(most, Some(Amount::ONE_HUNDRED));
        assert_eq!(app.verify_log().await, 1 + 1 + 100);
        app.close().await;
    }
}

/// Two processes write for one taxpayer. The cached state of one is out of date whenever the other has written.
#[actix_rt::test]
async fn payments_through_two_processes_are_accepted_up_to_the_payable_amount() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let arbiters = Arc::new(Arbiters::start(2));
        let other = TaxpayerHandle::in_tests(&app.test.store, Arc::new(SystemClock), &arbiters);
        app.taxpayers
            .send(ID, CreateInvoice(draft("INV-1", 100)))
            .await
            .unwrap();
        app.approve("INV-1").await;
        let mut accepted = 0;
        for _ in 0..30 {
            let paid = (0..5).map(async |number: usize| {
                let taxpayers = if number.is_multiple_of(2) {
                    &*app.taxpayers
                } else {
                    &other
                };
                taxpayers.send(ID, ChangePayment(part("INV-1", 1))).await
            });
            for one in join_all(paid).await {
                match one {
                    Ok(_) => accepted += 1,
                    Err(TaxpayerError::Refused(Refusal::PaymentExceedsPayable(_))) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
        }
        assert_eq!(accepted, 100);
        assert_eq!(app.verify_log().await, 1 + 1 + 100, "one chain of events");
        arbiters.stop();
        arbiters.join().await;
        app.close().await;
    }
}

#[actix_rt::test]
async fn an_invoice_that_changed_during_its_approval_is_neither_approved_nor_submitted() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        // The first creates the invoice, any other returns it as it is stored.
        let stored = async || {
            let create = CreateInvoice(draft("INV-1", 100));
            app.taxpayers.send(ID, create).await.unwrap().invoice
        };
        stored().await;
        let seen = stored().await;
        let set = async |status, seen_updated_at: Option<Timestamp>| {
            let submission = seen_updated_at.map(|seen_updated_at| {
                SubmissionAfterApproval::Started(SubmissionOfStored {
                    request: submission(seen.irn.as_str(), "as stored"),
                    seen_updated_at,
                })
            });
            let remark = "fine".to_owned();
            let invoice = by_number("INV-1");
            let set = SetStatus {
                invoice,
                status,
                remark,
                submission,
            };
            app.taxpayers.send(ID, set).await
        };
        // Somebody else is quicker.
        set(SettableStatus::Draft, None).await.unwrap();
        let approved = set(SettableStatus::Approved, Some(seen.updated_at)).await;
        assert!(
            matches!(
                approved,
                Err(TaxpayerError::Refused(Refusal::ChangedDuringApproval))
            ),
            "{approved:?}"
        );
        assert_eq!(
            app.verify_log().await,
            2,
            "created, and set by somebody else"
        );
        let seen_again = stored().await.updated_at;
        let approved = set(SettableStatus::Approved, Some(seen_again)).await;
        assert_eq!(approved.unwrap().status, WorkflowStatus::Approved);
        app.close().await;
    }
}
