//! Acts on many invoices at once.

use serde_json::{Value, json};
use testkit::documents;
use testkit::edit::without;
use testkit::patience::eventually;
use testkit::{each_database, on_sqlite};

use super::pdf_archive::download;
use super::{Account, assert_shows};
use crate::support::visitor::Seen;
use crate::support::world::World;

async fn invoices(account: &Account, count: usize) -> Vec<Value> {
    let mut made = Vec::with_capacity(count);
    for _ in 0..count {
        made.push(account.taxpayer.invoice(&documents::invoice()).await);
    }
    made
}

/// The fields of the form that the preview at this query has.
fn fields_of(preview: &str) -> Vec<(String, String)> {
    let inputs = preview.split("<input type=\"hidden\" name=\"").skip(1);
    let fields = inputs.filter_map(|rest| {
        let (name, rest) = rest.split_once("\" value=\"")?;
        let (value, _) = rest.split_once('"')?;
        Some((name.to_owned(), value.replace("&#38;", "&")))
    });
    fields
        .filter(|(name, _)| !["csrf", "once"].contains(&name.as_str()))
        .collect()
}

/// Shows the preview and sends its form.
async fn preview_and_go(account: &Account, query: &str) -> (String, String) {
    let preview = account.page(&format!("/invoices/bulk?{query}")).await;
    let result = go(account, &preview, &[]).await.expect(200);
    (preview, result.html)
}

/// Sends the form of a preview, with fields that a person filled in.
async fn go(account: &Account, preview: &str, filled: &[(&str, &str)]) -> Seen {
    let hidden = fields_of(preview);
    let hidden = hidden
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let fields: Vec<_> = hidden.chain(filled.iter().copied()).collect();
    account.post("/invoices/bulk", &fields).await
}

#[each_database]
async fn all_drafts_are_approved_and_submitted_and_what_cannot_be_is_told(world: &World) {
    let account = Account::new(world).await;
    let made = invoices(&account, 12).await;
    let lacking = without(&documents::invoice(), "invoice_lines.0.product_category");
    let lacking = account.taxpayer.invoice(&lacking).await;
    account
        .taxpayer
        .set_status(&made[0], "cancelled")
        .await
        .expect_status(200);
    let list = account.page("/invoices?status=draft").await;
    assert_shows(
        &list,
        &[
            "Approve and submit",
            "name=\"filter\" value=\"status=draft\"",
        ],
    );
    let query = "act=approve-submit&all=true&filter=status%3Ddraft";
    let (preview, result) = preview_and_go(&account, query).await;
    assert_shows(
        &preview,
        &["Approve and submit: 12 invoices", "Total: NGN "],
    );
    assert_shows(
        &result,
        &[
            "11 done, 1 not",
            lacking["invoice_no"].as_str().unwrap(),
            "invoice_lines.0.product_category",
        ],
    );
    eventually("the signatures", async || {
        (account.taxpayer.count_events("invoice.submitted").await == 11).then_some(())
    })
    .await;
    let page = account.page("/invoices").await;
    assert_shows(
        &page,
        &["Signed <span class=\"count\">11</span>", "Cancelled"],
    );
}

#[each_database]
async fn ticked_invoices_are_approved_and_no_others(world: &World) {
    let account = Account::new(world).await;
    let other = Account::new(world).await;
    let made = invoices(&account, 3).await;
    let foreign = other.taxpayer.invoice(&documents::invoice()).await;
    account
        .taxpayer
        .set_status(&made[1], "approved")
        .await
        .expect_status(200);
    let [first, second, third] = [&made[0]["id"], &made[1]["id"], &made[2]["id"]];
    let query = format!(
        "act=approve&filter=&id={first}&id={second}&id={}",
        foreign["id"]
    );
    let (preview, result) = preview_and_go(&account, &query).await;
    assert_shows(&preview, &["Approve: 1 invoice", "1 not a draft"]);
    assert_shows(&result, &["Approve: 1 done"]);
    let status = async |account: &Account, id: &Value| {
        let shown = account.taxpayer.get_invoice(id).await.expect_status(200);
        shown.data()["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(status(&account, first).await, "approved");
    assert_eq!(status(&account, third).await, "draft");
    assert_eq!(status(&other, &foreign["id"]).await, "draft");
    let csv = account
        .page(&format!(
            "/invoices/files/csv?filter=&id={first}&id={}",
            foreign["id"]
        ))
        .await;
    assert_eq!(csv.lines().count(), 2, "{csv}");
    for query in ["act=approve&filter=", "act=approve&filter=&id=x"] {
        let path = account.path(&format!("/invoices/bulk?{query}"));
        account.owner.get(&path).await.expect(422);
    }
    let file = account.path("/invoices/files/csv?filter=");
    account.owner.get(&file).await.expect(422);
    let without_act = account.path("/invoices/bulk");
    account
        .owner
        .get(&without_act)
        .await
        .leads_to(&account.path("/invoices"));
}

#[each_database]
async fn a_paid_invoice_that_was_not_submitted_is_not_forgotten(world: &World) {
    let account = Account::new(world).await;
    let made = invoices(&account, 2).await;
    for invoice in &made {
        let approved = account.taxpayer.set_status(invoice, "approved").await;
        approved.expect_status(200);
    }
    let page = format!("/invoices/{}/payment", made[0]["id"]);
    let paid = [("payment_status", "paid"), ("remark", "By bank")];
    account.post(&page, &paid).await.expect(303);
    let filter = "status=approved,paid&authority_status=PENDING";
    let list = account.page(&format!("/invoices?{filter}")).await;
    assert_shows(
        &list,
        &[
            "To submit <span class=\"count\">2</span>",
            "aria-current=\"page\">To submit",
            made[0]["invoice_no"].as_str().unwrap(),
            made[1]["invoice_no"].as_str().unwrap(),
            "selected>Several</option>",
        ],
    );
    let late = "2</span> approved and not submitted, 2 past the legal deadline";
    assert_shows(&account.page("").await, &[late]);
    let query = "act=submit&all=true&filter=status%3Dapproved%2Cpaid%26authority_status%3DPENDING";
    let preview = account.page(&format!("/invoices/bulk?{query}")).await;
    assert_shows(&preview, &["Submit: 2 invoices"]);
}

#[each_database]
async fn the_tabs_count_and_filter(world: &World) {
    let account = Account::new(world).await;
    let made = invoices(&account, 2).await;
    account
        .taxpayer
        .set_status(&made[0], "approved")
        .await
        .expect_status(200);
    let refused = account.refused_invoice().await;
    let no = refused["invoice_no"].as_str().unwrap();
    let page = account.page("/invoices").await;
    assert_shows(
        &page,
        &[
            "Needs attention <span class=\"count\">1</span>",
            "To submit <span class=\"count\">1</span>",
            "Waiting <span class=\"count\">0</span>",
            "Overdue <span class=\"count\">1</span>",
            "Refund due <span class=\"count\">0</span>",
        ],
    );
    let attention = account
        .page("/invoices?authority_status=REJECTED,FAILED&without_cancelled=true")
        .await;
    assert_shows(
        &attention,
        &[no, "Rejected", "aria-current=\"page\">Needs attention"],
    );
    let other = made[0]["invoice_no"].as_str().unwrap();
    assert!(!attention.contains(other), "{attention}");
    let odd = account
        .page("/invoices?authority_status=REJECTED,odd")
        .await;
    assert_shows(&odd, &["The Authority field must be one of"]);
    let sorted = account.page("/invoices?sort=-payable").await;
    assert_shows(&sorted, &["aria-sort=\"descending\"", "sort=payable"]);
}

#[each_database]
async fn what_matches_only_after_the_preview_is_left_alone(world: &World) {
    let account = Account::new(world).await;
    let made = invoices(&account, 2).await;
    let preview = account
        .page("/invoices/bulk?act=approve&all=true&filter=status%3Ddraft")
        .await;
    let later = invoices(&account, 1).await.remove(0);
    account
        .taxpayer
        .set_status(&made[1], "cancelled")
        .await
        .expect_status(200);
    let fields = fields_of(&preview);
    assert!(fields.iter().all(|(name, _)| name != "all"), "{fields:?}");
    let result = go(&account, &preview, &[]).await.expect(200);
    assert_shows(&result.html, &["Approve: 1 done, 1 not", "Left out"]);
    let untouched = account.taxpayer.reread(&later).await;
    assert_eq!(untouched["status"], "draft");
}

#[each_database]
async fn what_was_changed_after_the_preview_is_left_alone(world: &World) {
    let account = Account::new(world).await;
    for act in ["approve", "approve-submit", "cancel"] {
        let made = invoices(&account, 2).await;
        let [first, second] = [&made[0]["id"], &made[1]["id"]];
        let preview = format!("/invoices/bulk?act={act}&filter=&id={first}&id={second}");
        let preview = account.page(&preview).await;
        let update = documents::update(&made[0]);
        account.taxpayer.update(&update).await.expect_status(200);
        let result = go(&account, &preview, &[]).await.expect(200);
        assert_shows(
            &result.html,
            &["1 done, 1 not", "It has changed since it was shown"],
        );
        let stored = account.taxpayer.reread(&made[0]).await;
        assert_eq!(stored["status"], "draft", "{act}");
    }
}

#[on_sqlite]
async fn more_than_a_preview_shows_is_refused(world: &World) {
    let account = Account::new(world).await;
    let made = invoices(&account, 1).await;
    let id = made[0]["id"].to_string();
    let mut fields = vec![("act", "approve")];
    fields.extend(std::iter::repeat_n(("id", id.as_str()), 1_001));
    let refused = account.post("/invoices/bulk", &fields).await.expect(422);
    assert_shows(&refused.html, &["At most 1000 invoices"]);
    let stored = account.taxpayer.invoice_with_ledger(&made[0]).await;
    assert_eq!(stored["status"], "draft");
}

#[each_database]
async fn drafts_and_approved_invoices_are_cancelled_and_the_others_are_told(world: &World) {
    let account = Account::new(world).await;
    let made = invoices(&account, 5).await;
    for (invoice, status) in [(1, "approved"), (2, "cancelled"), (3, "approved")] {
        let set = account.taxpayer.set_status(&made[invoice], status).await;
        set.expect_status(200);
    }
    let payment = format!("/invoices/{}/payment", made[3]["id"]);
    let paid = [("payment_status", "paid"), ("remark", "By bank")];
    account.post(&payment, &paid).await.expect(303);
    let alone = json!({ "irn": made[4]["irn"] });
    let submitted = account.taxpayer.app().submit_to_the_end(&alone).await;
    submitted.expect_status(200);
    let ids = made.iter().map(|invoice| format!("&id={}", invoice["id"]));
    let ids: Vec<_> = ids.collect();
    let preview = format!("/invoices/bulk?act=cancel&filter={}", ids.concat());
    let preview = account.page(&preview).await;
    let left_out = [
        "1 cancelled already",
        "1 paid",
        "1 validated or signed already",
    ];
    assert_shows(&preview, &left_out);
    assert_shows(&preview, &["Cancel: 2 invoices", "taken back to draft"]);
    let refused = go(&account, &preview, &[("remark", "no")]).await;
    let refused = refused.expect(422).html;
    let shown = [
        "Cancel: 2 invoices",
        "value=\"no\"",
        "must be at least 3 characters",
    ];
    assert_shows(&refused, &shown);
    let result = go(&account, &refused, &[("remark", "Ordered twice")]).await;
    let result = result.expect(200).html;
    assert_shows(&result, &["Cancel: 2 done", "?status=cancelled"]);
    let expected = [
        ("cancelled", true),
        ("cancelled", true),
        ("cancelled", false),
        ("paid", false),
        ("submitted", false),
    ];
    for (invoice, (status, has_remark)) in made.iter().zip(expected) {
        let stored = account.taxpayer.reread(invoice).await;
        assert_eq!(stored["status"], status, "{invoice}");
        let page = account.page(&format!("/invoices/{}", stored["id"])).await;
        assert_eq!(page.contains("Ordered twice"), has_remark, "{invoice}");
    }
}

#[each_database]
async fn all_cancelled_invoices_are_taken_back_to_draft(world: &World) {
    let account = Account::new(world).await;
    let made = invoices(&account, 3).await;
    for invoice in &made[..2] {
        let set = account.taxpayer.set_status(invoice, "cancelled").await;
        set.expect_status(200);
    }
    let query = "act=draft&all=true&filter=status%3Dcancelled";
    let (preview, result) = preview_and_go(&account, query).await;
    assert_shows(&preview, &["Back to draft: 2 invoices"]);
    assert_shows(&result, &["Back to draft: 2 done", "It is a draft again."]);
    for invoice in &made {
        let stored = account.taxpayer.reread(invoice).await;
        assert_eq!(stored["status"], "draft");
    }
    let page = account.page(&format!("/invoices/{}", made[0]["id"])).await;
    assert_shows(
        &page,
        &["Changed in the dashboard, together with other invoices"],
    );
}

#[each_database]
async fn a_cancellation_of_many_tells_of_payments(world: &World) {
    let account = Account::new(world).await;
    let made = invoices(&account, 2).await;
    for invoice in &made {
        let set = account.taxpayer.set_status(invoice, "approved").await;
        set.expect_status(200);
    }
    let page = format!("/invoices/{}/payment", made[0]["id"]);
    let part = [
        ("payment_status", "partial"),
        ("amount", "7"),
        ("remark", "By bank"),
    ];
    account.post(&page, &part).await.expect(303);
    let told = "Payments are recorded for 1 of them.";
    for (act, tells) in [("cancel", true), ("draft", false)] {
        let query = format!("/invoices/bulk?act={act}&all=true&filter=");
        let preview = account.page(&query).await;
        assert_eq!(preview.contains(told), tells, "{preview}");
    }
}

#[on_sqlite]
async fn who_only_looks_downloads_the_pdfs_and_cancels_nothing(world: &World) {
    let account = Account::new(world).await;
    let made = invoices(&account, 1).await;
    let selection = format!("filter=&id={}", made[0]["id"]);
    let path = format!("/invoices/bulk?act=cancel&{selection}");
    let preview = account.page(&path).await;
    account.set_role(world, "read_only").await;
    account.owner.get(&account.path(&path)).await.expect(403);
    go(&account, &preview, &[]).await.expect(403);
    let stored = account.taxpayer.reread(&made[0]).await;
    assert_eq!(stored["status"], "draft");
    let list = account.page("/invoices").await;
    assert!(!list.contains("Cancel …"), "{list}");
    assert_shows(&list, &["Download PDFs"]);
    assert_eq!(download(&account, &selection).await.len(), 1);
}
