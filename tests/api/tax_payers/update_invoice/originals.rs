//! A credit note names the invoice that it corrects.

use serde_json::json;
use testkit::documents;
use testkit::each_database;
use testkit::edit::with;

use crate::support::world::World;

const ORIGINAL: &str = "original_invoice_reference";

#[each_database]
async fn a_credit_note_names_another_invoice_of_the_account(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let original = taxpayer.invoice(&documents::invoice()).await;
    let theirs = other.invoice(&documents::invoice()).await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let note = with(&documents::update(&invoice), "invoice_type", json!("380"));
    taxpayer.update(&note).await.expect_faults(&[ORIGINAL]);
    for nothing in [
        json!(documents::irn(&taxpayer, "NEVERSTORED")),
        theirs["irn"].clone(),
        invoice["irn"].clone(),
        original["invoice_no"].clone(),
        json!(original["id"].to_string()),
        json!("%2F"),
    ] {
        let answer = taxpayer
            .update(&with(&note, ORIGINAL, nothing.clone()))
            .await;
        assert_eq!(
            answer.faulty_paths(),
            [ORIGINAL],
            "{nothing}: {}",
            answer.text
        );
        answer.expect_faults(&[ORIGINAL]);
    }
    assert_eq!(taxpayer.reread(&invoice).await, invoice);
    let after = taxpayer
        .update(&with(&note, ORIGINAL, original["irn"].clone()))
        .await
        .expect_status(200);
    assert_eq!(after.data()["invoice_type"], json!("380"));
}

#[each_database]
async fn a_reference_that_need_not_be_there_resolves_all_the_same(world: &World) {
    let taxpayer = world.taxpayer().await;
    let original = taxpayer.invoice(&documents::invoice()).await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let update = documents::update(&invoice);
    taxpayer
        .update(&with(&update, ORIGINAL, json!("nothing")))
        .await
        .expect_faults(&[ORIGINAL]);
    let lower = original["irn"]
        .as_str()
        .unwrap()
        .to_lowercase()
        .replace("inv", "INV");
    taxpayer
        .update(&with(&update, ORIGINAL, json!(lower)))
        .await
        .expect_status(200);
}
