//! What begins by itself where the account says so: the submission of an approved invoice, and the transmission of a
//! signed one.

use serde_json::{Value, json};
use testkit::documents::{invoice, submission, update};
use testkit::edit::without;
use testkit::patience::eventually;
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

async fn set(world: &World, taxpayer: &Taxpayer, settings: &Value) {
    world
        .integrator()
        .change_profile(taxpayer.id, settings)
        .await
        .expect_status(200);
}

async fn wait_for_status(taxpayer: &Taxpayer, invoice: &Value, status: &str) {
    let reached = async || {
        let found = taxpayer.reread(invoice).await;
        (found["status"] == status).then_some(())
    };
    eventually(status, reached).await;
}

#[each_database]
async fn an_approved_invoice_is_submitted_and_transmitted(world: &World) {
    let taxpayer = world.taxpayer().await;
    set(
        world,
        &taxpayer,
        &json!({ "submit_after_approval": true, "transmit_after_signing": true }),
    )
    .await;
    let stored = taxpayer.invoice(&invoice()).await;
    let approved = taxpayer
        .set_status(&stored, "approved")
        .await
        .expect_status(200);
    assert_eq!(approved.data()["status"], "approved");
    assert_eq!(approved.data()["authority_data"]["status"], "QUEUED");
    wait_for_status(&taxpayer, &stored, "transmitted").await;
    let names = taxpayer.invoice_event_names().await;
    for name in [
        "invoice.validated",
        "invoice.submitted",
        "invoice.transmitted",
    ] {
        assert!(names.iter().any(|one| one == name), "{names:?}");
    }
}

#[on_sqlite]
async fn nothing_begins_by_itself_unless_the_account_says_so(world: &World) {
    let taxpayer = world.taxpayer().await;
    let irn = |invoice: &Value| invoice["irn"].as_str().unwrap().to_owned();
    let stored = taxpayer.invoice(&invoice()).await;
    taxpayer
        .set_status(&stored, "approved")
        .await
        .expect_status(200);
    taxpayer
        .app()
        .run(&irn(&stored))
        .await
        .expect_refusal(404, "RUN_NOT_FOUND");
    set(world, &taxpayer, &json!({ "submit_after_approval": true })).await;
    let drafted = taxpayer.invoice(&invoice()).await;
    for status in ["cancelled", "draft"] {
        taxpayer
            .set_status(&drafted, status)
            .await
            .expect_status(200);
    }
    taxpayer
        .app()
        .run(&irn(&drafted))
        .await
        .expect_refusal(404, "RUN_NOT_FOUND");
    taxpayer
        .set_status(&drafted, "approved")
        .await
        .expect_status(200);
    wait_for_status(&taxpayer, &drafted, "submitted").await;
    taxpayer
        .app()
        .fetch_run_with_operation(&irn(&drafted), "transmit")
        .await
        .expect_refusal(404, "RUN_NOT_FOUND");
}

#[on_sqlite]
async fn an_invoice_that_cannot_be_submitted_is_approved_all_the_same(world: &World) {
    let taxpayer = world.taxpayer().await;
    set(world, &taxpayer, &json!({ "submit_after_approval": true })).await;
    let bare = without(&invoice(), "invoice_lines.0.product_category");
    let stored = taxpayer.invoice(&bare).await;
    let answer = taxpayer
        .set_status(&stored, "approved")
        .await
        .expect_status(200);
    assert_eq!(answer.data()["status"], "approved");
    let timeline = taxpayer.timeline(&stored["id"]).await.expect_status(200);
    let entries = timeline.data()["entries"].as_array().unwrap();
    let reason = entries.last().unwrap()["detail"]["not_submitted"].to_string();
    for words in ["not submitted", "invoice_lines.0.product_category"] {
        let warnings = answer.warnings();
        assert!(warnings.contains(words), "{warnings}");
    }
    assert!(
        reason.contains("invoice_lines.0.product_category"),
        "who reads no warnings finds the reason here: {reason}"
    );
}

/// An update mends the invoice, but nobody has approved what it now says.
#[on_sqlite]
async fn an_update_of_an_approved_invoice_says_that_it_is_not_submitted(world: &World) {
    let taxpayer = world.taxpayer().await;
    let warning = "approved, but not submitted";
    let bare = without(&invoice(), "invoice_lines.0.product_category");
    let stored = taxpayer.invoice(&bare).await;
    taxpayer
        .set_status(&stored, "approved")
        .await
        .expect_status(200);
    let mended = update(&stored);
    let silent = taxpayer.update(&mended).await.expect_status(200);
    assert!(
        !silent.warnings().contains(warning),
        "no setting asks for it"
    );
    set(world, &taxpayer, &json!({ "submit_after_approval": true })).await;
    let told = taxpayer.update(&mended).await.expect_status(200);
    assert_eq!(told.data()["status"], "approved");
    let warnings = told.warnings();
    assert!(warnings.contains(warning), "{warnings}");
    taxpayer
        .set_status(&stored, "approved")
        .await
        .expect_status(200);
    wait_for_status(&taxpayer, &stored, "submitted").await;
}

#[each_database]
async fn a_document_that_a_caller_submitted_is_transmitted_too(world: &World) {
    let taxpayer = world.taxpayer().await;
    set(world, &taxpayer, &json!({ "transmit_after_signing": true })).await;
    let stored = taxpayer.invoice(&invoice()).await;
    let body = submission(&taxpayer, stored["invoice_no"].as_str().unwrap());
    taxpayer
        .app()
        .submit_to_the_end(&body)
        .await
        .expect_status(200);
    wait_for_status(&taxpayer, &stored, "transmitted").await;
}
