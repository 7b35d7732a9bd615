//! The pages that correct a signed invoice and that undo a batch.

use serde_json::{Value, json};
use testkit::documents;
use testkit::patience::eventually;
use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows, field_value, post_seen};
use crate::support::world::World;

async fn signed(account: &Account) -> Value {
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let alone = json!({ "irn": invoice["irn"] });
    let submitted = account.taxpayer.app().submit_to_the_end(&alone).await;
    submitted.expect_status(200);
    invoice
}

/// Waits until the page shows a text.
async fn wait_for(account: &Account, page: &str, text: &str) -> String {
    eventually(text, async || {
        let shown = account.page(page).await;
        shown.contains(text).then_some(shown)
    })
    .await
}

#[on_sqlite]
async fn an_invoice_is_corrected_on_its_page(world: &World) {
    let account = Account::new(world).await;
    let invoice = signed(&account).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    let page = format!("/invoices/{}", invoice["id"]);
    assert_shows(&account.page(&page).await, &[&format!("{page}/correct\"")]);
    let form = account.page(&format!("{page}/correct")).await;
    assert_shows(&form, &["Line 1, unit price", "Cancel it: preview"]);
    let preview = format!("{page}/correct/preview");
    let odd = account
        .post(&preview, &[("lines.0.quantity", "lots")])
        .await
        .expect(422)
        .html;
    assert_shows(&odd, &["fault-lines.0.quantity", "value=\"lots\""]);
    let fields = [("lines.0.quantity", "1")];
    let plan = account.post(&preview, &fields).await.expect(200).html;
    assert_shows(
        &plan,
        &[
            "Line 1, quantity",
            "<del>2</del>",
            "<ins>1</ins>",
            "Credit note, for a part",
            &format!("{no}CN1"),
            "NGN 537.50",
        ],
    );
    let back = [fields[0], ("back", "yes")];
    let form = account.post(&preview, &back).await.expect(200).html;
    assert_shows(&form, &["name=\"lines.0.quantity\" value=\"1\""]);
    let same = account.post(&preview, &[]).await.expect(200).html;
    assert_shows(&same, &["Nothing has to be done"]);
    account
        .post(&format!("{page}/correct"), &fields)
        .await
        .leads_to(&account.path(&page));
    let done = wait_for(&account, &page, ">Done</span>").await;
    assert_shows(&done, &["Credit note, for a part", "Signed"]);
    let form = account.page(&format!("{page}/correct")).await;
    assert_shows(
        &form,
        &[
            "name=\"lines.0.quantity\" value=\"1\"",
            "has signed credit notes",
        ],
    );
    // Half of the line was credited, so only the other half gets the new price.
    let cheaper = [("lines.0.unit_price", "400")];
    let plan = account.post(&preview, &cheaper).await.expect(200).html;
    assert_shows(&plan, &["Line 1, unit price", "NGN 430.00"]);
    assert!(!plan.contains("Line 1, quantity"), "{plan}");
    let raised = [("lines.0.quantity", "3"), ("note", "As agreed")];
    let plan = account.post(&preview, &raised).await.expect(200).html;
    assert_shows(
        &plan,
        &["Credit note, in full", "Replacement", &format!("{no}R1")],
    );
    account
        .post(&format!("{page}/correct"), &raised)
        .await
        .expect(303);
    let under_way = account.page(&page).await;
    assert_shows(&under_way, &["data-follow"]);
    wait_for(&account, &page, ">Done</span>").await;
    account
        .post(&format!("{page}/correct"), &[("cancel", "yes")])
        .await
        .expect(409);
    let replaced = account.page(&format!("{page}/correct")).await;
    assert_shows(
        &replaced,
        &["This invoice was replaced", &format!("{no}R1</a>")],
    );
    assert!(!replaced.contains("<form class=\"edit\""), "{replaced}");
    let shown = account.page(&page).await;
    assert!(!shown.contains(&format!("{page}/correct\"")), "{shown}");
}

#[on_sqlite]
async fn a_full_invoice_can_only_be_cancelled_here(world: &World) {
    let account = Account::new(world).await;
    let full = documents::full_invoice(&account.taxpayer);
    let full = account.taxpayer.new_full_invoice(&full).await;
    let alone = json!({ "irn": full["irn"] });
    let submitted = account.taxpayer.app().submit_to_the_end(&alone).await;
    submitted.expect_status(200);
    let page = format!("/invoices/{}", full["id"]);
    let form = account.page(&format!("{page}/correct")).await;
    assert_shows(
        &form,
        &["Cancel it: preview", "was created as a full document"],
    );
    account
        .post(&format!("{page}/correct"), &[("due_date", "2026-03-01")])
        .await
        .expect(409);
    let preview = account
        .page(&format!("{page}/correct/preview?cancel=yes"))
        .await;
    assert_shows(&preview, &["Credit note, in full", "NGN 1,075.00"]);
}

#[each_database]
async fn a_batch_is_undone_on_its_page(world: &World) {
    let account = Account::new(world).await;
    let bodies = [documents::invoice(), documents::invoice()];
    let batch = account.taxpayer.create_batch(&bodies).await;
    let batch = batch.expect_status(201);
    let outcome = account.taxpayer.created_batch(&batch).await;
    let alone = json!({ "irn": outcome["items"][0]["irn"] });
    let submitted = account.taxpayer.app().submit_to_the_end(&alone).await;
    submitted.expect_status(200);
    let page = format!("/batches/{}", batch.data()["batch_no"].as_str().unwrap());
    assert_shows(&account.page(&page).await, &["Undo this batch"]);
    let undo = format!("{page}/undo");
    let preview = account.page(&undo).await;
    assert_shows(&preview, &["NGN 2,150.00 in all", "Undo 2 invoices"]);
    let plan = field_value(&preview, "plan");
    let done = account.post(&undo, &[("plan", &plan)]).await;
    let done = done.expect(200).html;
    assert_shows(&done, &["Credit note", "Cancelled"]);
    let again = account.page(&undo).await;
    assert!(!again.contains("<form class"), "{again}");
    let invoice = format!("/invoices/{}", outcome["items"][0]["id"]);
    wait_for(&account, &invoice, ">Done</span>").await;
}

#[on_sqlite]
async fn a_correction_starts_only_as_its_preview_showed_it(world: &World) {
    let account = Account::new(world).await;
    let invoice = signed(&account).await;
    let page = format!("/invoices/{}", invoice["id"]);
    let correct = format!("{page}/correct");
    let fields = [("lines.0.quantity", "1")];
    let preview = account.post(&format!("{correct}/preview"), &fields).await;
    let preview = preview.expect(200).html;
    assert_shows(&preview, &["Credit note, for a part"]);
    let plan = field_value(&preview, "plan");
    // Somebody else is quicker.
    let cheaper = [("lines.0.unit_price", "400")];
    account.post(&correct, &cheaper).await.expect(303);
    wait_for(&account, &page, ">Done</span>").await;
    let confirmation = [fields[0], ("plan", &*plan)];
    let late = account.post(&correct, &confirmation).await;
    let late = late.expect(412).html;
    assert_shows(
        &late,
        &["has changed since the preview", "Credit note, for a part"],
    );
    let plan = field_value(&late, "plan");
    let confirmation = [fields[0], ("plan", &*plan)];
    account.post(&correct, &confirmation).await.expect(303);
    let second_note = format!("{}CN2", invoice["invoice_no"].as_str().unwrap());
    wait_for(&account, &page, &second_note).await;
}

#[on_sqlite]
async fn a_text_that_is_cleared_is_not_taken_from_the_invoice_again(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let page = format!("/invoices/{}", invoice["id"]);
    let texts = [
        ("note", "As agreed"),
        ("lines.0.description", "Two of them"),
    ];
    post_seen(&account, &page, "edit", &texts).await.expect(303);
    let alone = json!({ "irn": invoice["irn"] });
    let submitted = account.taxpayer.app().submit_to_the_end(&alone).await;
    submitted.expect_status(200);
    let preview = format!("{page}/correct/preview");
    let same = account.post(&preview, &[]).await.expect(200).html;
    assert_shows(&same, &["Nothing has to be done"]);
    for (name, text) in texts {
        let plan = account.post(&preview, &[(name, "")]).await;
        let removed = format!("<del>{text}</del>");
        let expected = [&*removed, "Credit note, in full", "Replacement"];
        assert_shows(&plan.expect(200).html, &expected);
    }
}
