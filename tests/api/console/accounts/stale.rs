//! Pages that were open while something changed: their forms do not do what nobody has seen.

use serde_json::json;
use testkit::documents;
use testkit::receiver::Receiver;
use testkit::{each_database, on_sqlite};
use url::form_urlencoded;

use super::{Account, assert_shows, field_value, post_seen, seen};
use crate::support::world::World;

const APPROVE: &[(&str, &str)] = &[("status", "approved"), ("remark", "as agreed")];
const CANCEL: &[(&str, &str)] = &[("status", "cancelled"), ("remark", "not ordered")];

#[each_database]
async fn an_act_on_an_invoice_that_has_changed_is_refused(world: &World) {
    let account = Account::new(world).await;
    for (before, form, fields, meanwhile) in [
        ("draft", "status", APPROVE, "cancelled"),
        ("draft", "status", CANCEL, "approved"),
        ("approved", "submit", &[][..], "draft"),
        ("approved", "status", CANCEL, "draft"),
    ] {
        let invoice = account.taxpayer.invoice(&documents::invoice()).await;
        if before != "draft" {
            let set = account.taxpayer.set_status(&invoice, before).await;
            set.expect_status(200);
        }
        let page = format!("/invoices/{}", invoice["id"]);
        let seen = seen(&account, &page).await;
        let set = account.taxpayer.set_status(&invoice, meanwhile).await;
        set.expect_status(200);
        let path = format!("{page}/{form}");
        for seen in [&*seen, "", "soon"] {
            let fields: Vec<_> = fields.iter().copied().chain([("seen", seen)]).collect();
            let refused = account.post(&path, &fields).await.expect(412);
            refused.shows("The invoice has changed since you read it");
        }
        let stored = account.taxpayer.reread(&invoice).await;
        assert_eq!(stored["status"], meanwhile, "{form} of a {before}");
    }
    assert_eq!(account.taxpayer.count_events("invoice.submitted").await, 0);
}

#[each_database]
async fn a_batch_is_undone_as_its_preview_showed_or_not_at_all(world: &World) {
    let account = Account::new(world).await;
    let bodies = [documents::invoice(), documents::invoice()];
    let batch = account.taxpayer.create_batch(&bodies).await;
    let batch = batch.expect_status(201);
    let outcome = account.taxpayer.created_batch(&batch).await;
    let number = batch.data()["batch_no"].as_str().unwrap();
    let undo = format!("/batches/{number}/undo");
    let preview = account.page(&undo).await;
    assert_shows(&preview, &["Undo 2 invoices"]);
    let irn = &outcome["items"][0]["irn"];
    let alone = json!({ "irn": irn });
    let signed = account.taxpayer.app().submit_to_the_end(&alone).await;
    signed.expect_status(200);
    let before = account.taxpayer.count_events("invoice.created").await;
    for plan in [&*field_value(&preview, "plan"), ""] {
        let again = account.post(&undo, &[("plan", plan)]).await.expect(412);
        assert_shows(
            &again.html,
            &[
                "Invoices of the batch have changed since the preview",
                "Undo 2 invoices",
            ],
        );
    }
    let unsigned = account.taxpayer.reread(&outcome["items"][1]).await;
    assert_eq!(unsigned["status"], "draft", "{unsigned}");
    let after = account.taxpayer.count_events("invoice.created").await;
    assert_eq!(after, before, "nothing is credited");
    let plan = field_value(&account.page(&undo).await, "plan");
    let done = account.post(&undo, &[("plan", &plan)]).await.expect(200);
    assert_shows(&done.html, &["Credit note", "Cancelled"]);
}

#[on_sqlite]
async fn an_edit_that_is_too_late_keeps_what_was_typed(world: &World) {
    let account = Account::new(world).await;
    for place in ["", "invoice"] {
        let invoice = account.taxpayer.invoice(&documents::invoice()).await;
        let page = format!("/invoices/{}", invoice["id"]);
        let edit = format!("{page}/edit");
        let seen = seen(&account, &page).await;
        let meanwhile = [("lines.0.unit_price", "700"), ("due_date", "2026-03-05")];
        let changed = post_seen(&account, &page, "edit", &meanwhile).await;
        changed.expect(303);
        let typed = [("note", "As agreed <b>"), ("lines.0.unit_price", "600")];
        let hidden = [("place", place), ("seen", &*seen)];
        let fields: Vec<_> = typed.into_iter().chain(hidden).collect();
        let refused = account.post(&edit, &fields).await.expect(412).html;
        assert_shows(
            &refused,
            &[
                "The invoice has changed meanwhile",
                &format!(
                    "<a href=\"{}\">The invoice as it is now</a>",
                    account.path(&page)
                ),
                "<th scope=\"row\">Line 1, unit price</th><td>700</td><td>600</td>",
                "As agreed &#60;b&#62;</textarea>",
                "value=\"2026-03-05\"",
            ],
        );
        let odd = [("lines.0.unit_price", "70,5"), ("seen", &*seen)];
        account.post(&edit, &odd).await.expect(412);
        let whole = account.taxpayer.invoice_with_ledger(&invoice).await;
        assert_eq!(whole["lines"][0]["unit_price"], 700, "{place}");
        let fresh = field_value(&refused, "seen");
        let again = [("place", place), ("seen", &*fresh)];
        let fields: Vec<_> = typed.into_iter().chain(again).collect();
        account.post(&edit, &fields).await.expect(303);
        let whole = account.taxpayer.invoice_with_ledger(&invoice).await;
        assert_eq!(whole["lines"][0]["unit_price"], 600, "{place}");
    }
}

#[on_sqlite]
async fn a_payment_in_full_records_the_amount_that_the_page_showed(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let approved = account.taxpayer.set_status(&invoice, "approved").await;
    approved.expect_status(200);
    let page = format!("/invoices/{}", invoice["id"]);
    let shown = field_value(&account.page(&page).await, "payable");
    let update = documents::update(&invoice);
    account.taxpayer.update(&update).await.expect_status(200);
    let form = format!("{page}/payment");
    let paid = [("payment_status", "paid"), ("remark", "by bank")];
    let late: Vec<_> = paid.into_iter().chain([("payable", &*shown)]).collect();
    let refused = account.post(&form, &late).await.expect(422).html;
    assert_shows(
        &refused,
        &[
            "The amount of the invoice has changed: it is 215.00 now.",
            "value=\"by bank\"",
        ],
    );
    let shown = field_value(&refused, "payable");
    let seen: Vec<_> = paid.into_iter().chain([("payable", &*shown)]).collect();
    account.post(&form, &seen).await.expect(303);
}

/// Sends a form as a page does that showed these fields, with some of them changed.
async fn post_changed(account: &Account, form: &str, before: &str, typed: &[(&str, &str)]) {
    let shown: Vec<_> = form_urlencoded::parse(before.as_bytes()).collect();
    let shown = shown.iter().map(|(name, value)| (&**name, &**value));
    let changes = typed.iter().copied().chain([("before", before)]);
    let fields: Vec<_> = shown.chain(changes).collect();
    account.post(form, &fields).await.expect(303);
}

#[on_sqlite]
async fn two_pages_of_the_profile_do_not_undo_each_other(world: &World) {
    let account = Account::new(world).await;
    for (form, first, second, kept) in [
        (
            "/profile/settings",
            ("strict_numbers", "true"),
            ("registration_number", "RC 7"),
            [
                "name=\"strict_numbers\" value=\"true\" checked",
                "value=\"RC 7\"",
            ],
        ),
        (
            "/profile/settings",
            ("template", "compact"),
            ("submit_after_approval", "true"),
            [
                "value=\"compact\" selected",
                "name=\"submit_after_approval\" value=\"true\" checked",
            ],
        ),
        (
            "/profile",
            ("city", "Ibadan"),
            ("state", "Oyo"),
            ["value=\"Ibadan\"", "value=\"Oyo\""],
        ),
    ] {
        let page = account.page("/profile").await;
        let (_, rest) = page.split_once(&format!("{form}\">")).unwrap();
        let before = field_value(rest, "before");
        post_changed(&account, form, &before, &[first]).await;
        post_changed(&account, form, &before, &[second]).await;
        assert_shows(&account.page("/profile").await, &kept);
    }
}

#[on_sqlite]
async fn two_pages_of_a_webhook_or_an_integration_do_not_undo_each_other(world: &World) {
    let account = Account::new(world).await;
    let [old, new] = [Receiver::start().url(), Receiver::start().url()];
    let webhook = [
        ("webhook_url", &*old),
        ("enabled_events", "invoice.created"),
    ];
    account.post("/webhooks", &webhook).await.expect(303);
    let erp = [
        ("auth_type", "none"),
        ("data_format", "jsonrpc"),
        ("format.method", "notify"),
    ];
    account.post("/integration", &erp).await.expect(303);
    let moved = format!("value=\"{new}\"");
    for (form, first, second, kept) in [
        (
            "/webhooks",
            ("webhook_url", &*new),
            ("retry_schedule_s", "0, 7"),
            [
                &*moved,
                "value=\"0, 7\"",
                "value=\"invoice.created\" checked",
            ],
        ),
        (
            "/integration",
            ("format.method", "tell"),
            ("erp_system", ""),
            [
                "name=\"format.method\" value=\"tell\"",
                "value=\"jsonrpc\" selected",
                "value=\"none\" selected",
            ],
        ),
    ] {
        let page = account.page(form).await;
        let start = format!("method=\"post\" action=\"{}\"", account.path(form));
        let (_, rest) = page.split_once(&start).unwrap();
        let before = field_value(rest, "before");
        post_changed(&account, form, &before, &[first]).await;
        post_changed(&account, form, &before, &[second]).await;
        assert_shows(&account.page(form).await, &kept);
    }
}
