//! Tests of opening a run whose IRN has one already.

use futures_util::future::join_all;
use serde_json::json;

use super::{ID, TestTaxpayers, draft, submission};
use crate::actors::taxpayer::commands::{CreateInvoice, OpenRun};
use crate::store::testing::stores;

#[actix_rt::test]
async fn two_spellings_of_one_irn_share_a_run_with_the_spelling_of_the_invoice() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let invoice = app
            .taxpayers
            .send(ID, CreateInvoice(draft("INV1", 100)))
            .await
            .unwrap()
            .invoice;
        let irn = invoice.irn.as_str();
        let lower = app
            .taxpayers
            .send(
                ID,
                OpenRun(submission(&irn.to_lowercase().replace("inv", "INV"), "a")),
            )
            .await;
        let lower = lower.unwrap();
        assert_eq!(
            (lower.irn.as_str(), &lower.document()["irn"]),
            (irn, &json!(irn))
        );
        let upper = app
            .taxpayers
            .send(ID, OpenRun(submission(irn, "a")))
            .await
            .unwrap();
        assert_eq!((upper.id, &upper.digest), (lower.id, &lower.digest));
        app.close().await;
    }
}

#[actix_rt::test]
async fn new_content_replaces_content_that_is_not_signed_yet() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let irn = "RELAYED-00000061-20260131";
        let first = app
            .taxpayers
            .send(ID, OpenRun(submission(irn, "a")))
            .await
            .unwrap();
        let second = app
            .taxpayers
            .send(ID, OpenRun(submission(irn, "b")))
            .await
            .unwrap();
        assert_eq!(first.id, second.id);
        assert_ne!(first.digest, second.digest);
        assert_eq!(second.document()["note"], "b");
        app.close().await;
    }
}

#[actix_rt::test]
async fn concurrent_replacements_of_content_make_the_run_due_once() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let irn = "TWINS-00000061-20260131";
        let notes: Vec<_> = (0..16).map(|n| n.to_string()).collect();
        let runs = notes
            .iter()
            .map(|note| app.taxpayers.send(ID, OpenRun(submission(irn, note))));
        let ids: Vec<_> = join_all(runs)
            .await
            .into_iter()
            .map(|run| run.unwrap().id)
            .collect();
        assert!(ids.iter().all(|id| *id == ids[0]));
        app.close().await;
    }
}
