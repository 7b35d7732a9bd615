//! Tests of commands with an idempotency key.

use std::sync::Arc;

use futures_util::future::join_all;
use timing::clock::{Clock, SystemClock};

use super::{ID, TestTaxpayers, claim, draft, part};
use crate::actors::taxpayer::commands::{ChangePayment, CreateInvoice, InvoiceAfterPayment};
use crate::actors::taxpayer::handle::{OnceClaim, TaxpayerError};
use crate::domain::access::claim::StoredResponse;
use crate::store::idempotency;
use crate::store::testing::stores;

/// Returns an idempotency key for a payment. The stored answer is the amount that was paid.
fn payment_key(key: &str, body: &[u8]) -> OnceClaim<InvoiceAfterPayment> {
    let render = |paid: &InvoiceAfterPayment| {
        Some(StoredResponse {
            status: 200,
            headers: Vec::new(),
            body: paid.invoice.payment.paid.to_string(),
        })
    };
    OnceClaim {
        claim: claim(key, body),
        render: Some(Arc::new(render)),
    }
}

#[actix_rt::test]
async fn the_first_of_several_commands_with_one_key_is_executed_and_its_answer_stored() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        app.taxpayers
            .send(ID, CreateInvoice(draft("INV-1", 100)))
            .await
            .unwrap();
        let pay = async |amount, key: &str| {
            let once = payment_key(key, &[amount]);
            app.taxpayers
                .send_once(ID, ChangePayment(part("INV-1", amount.into())), Some(once))
                .await
        };
        let early = pay(10, "refused").await;
        assert!(
            matches!(early, Err(TaxpayerError::Refused(_))),
            "not approved"
        );
        app.approve("INV-1").await;
        // A refused command does not use up its idempotency key: the key works again for the next command.
        pay(10, "refused").await.unwrap();
        let paid = join_all((0..32).map(|_| pay(5, "k"))).await;
        assert_eq!(paid.iter().filter(|one| one.is_ok()).count(), 1);
        assert_eq!(
            paid.iter()
                .filter(|one| matches!(one, Err(TaxpayerError::AlreadyProcessed)))
                .count(),
            31
        );
        assert!(matches!(
            pay(7, "k").await,
            Err(TaxpayerError::AlreadyProcessed)
        ));
        let kept = idempotency::find(&app.test.store, &claim("k", &[5]), SystemClock.now()).await;
        assert_eq!(kept.unwrap().unwrap().answer.unwrap().body, "15");
        let paid = app
            .taxpayers
            .send(ID, ChangePayment(part("INV-1", 1)))
            .await
            .unwrap();
        assert_eq!(paid.invoice.payment.paid, 16.into());
        app.close().await;
    }
}
