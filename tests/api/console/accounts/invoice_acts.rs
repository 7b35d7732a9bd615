//! What an accountant does on the page of an invoice: submit, transmit, try again, change, credit.

use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::documents::{self, submission};
use testkit::edit::{with, without};
use testkit::patience::eventually;
use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows, post_seen, seen};
use crate::support::world::{RETRY_LATE, World};

/// An invoice that is approved.
async fn approved(account: &Account, body: &Value) -> Value {
    let invoice = account.taxpayer.invoice(body).await;
    account
        .taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    invoice
}

fn path_of(invoice: &Value) -> String {
    format!("/invoices/{}", invoice["id"])
}

#[each_database]
async fn an_approved_invoice_is_submitted_and_transmitted(world: &World) {
    let account = Account::new(world).await;
    let draft = account.taxpayer.invoice(&documents::invoice()).await;
    let page = account.page(&path_of(&draft)).await;
    assert_shows(&page, &["Approve"]);
    assert!(!page.contains("/submit\""), "{page}");
    let invoice = approved(&account, &documents::invoice()).await;
    let path = path_of(&invoice);
    let early = account.post(&format!("{path}/transmit"), &[]).await;
    early.expect(409);
    let seen = seen(&account, &path).await;
    let submit = format!("{path}/submit");
    account
        .post(&submit, &[("seen", &seen)])
        .await
        .leads_to(&account.path(&path));
    let page = account.page(&path).await;
    assert_shows(
        &page,
        &[
            "The authority signed the invoice.",
            "Signed by the authority.",
        ],
    );
    account
        .post(&format!("{path}/transmit"), &[])
        .await
        .leads_to(&account.path(&path));
    let stored = account.taxpayer.reread(&invoice).await;
    assert_eq!(stored["status"], "transmitted");
    // The page that was open before knows an invoice that is not signed.
    account
        .post(&submit, &[("seen", &seen)])
        .await
        .expect(412)
        .shows("Signed by the authority.");
    assert_eq!(account.taxpayer.count_events("invoice.submitted").await, 1);
}

#[on_sqlite]
async fn a_field_that_the_invoice_lacks_is_filled_in_on_its_page(world: &World) {
    let account = Account::new(world).await;
    let lacking = without(&documents::invoice(), "invoice_lines.0.product_category");
    let invoice = approved(&account, &lacking).await;
    let path = path_of(&invoice);
    let told = post_seen(&account, &path, "submit", &[]).await;
    let told = told.expect(422).html;
    assert_shows(
        &told,
        &[
            "Correct it here",
            "Line 1, HSN code",
            "lines.0.product_category",
        ],
    );
    let fields = |code: &'static str| {
        [
            ("lines.0.product_category", code),
            ("place", "invoice"),
            ("then", "submit"),
        ]
    };
    let odd = post_seen(&account, &path, "edit", &fields("85")).await;
    let odd = odd.expect(422).html;
    assert_shows(&odd, &["Correct it here", "value=\"85\""]);
    let sent = post_seen(&account, &path, "edit", &fields("8471.30")).await;
    sent.leads_to(&account.path(&path));
    let page = account.page(&path).await;
    assert_shows(&page, &["The authority signed the invoice."]);
    let whole = account.taxpayer.invoice_with_ledger(&invoice).await;
    assert_eq!(whole["lines"][0]["product_category"], "8471.30");
}

#[each_database]
async fn a_rejected_invoice_is_sent_again_as_it_is_stored(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let path = path_of(&invoice);
    let right = submission(&account.taxpayer, invoice["invoice_no"].as_str().unwrap());
    let tax = json!([{ "tax_amount": 80, "tax_subtotal": [{
        "taxable_amount": 1_000, "tax_amount": 80,
        "tax_category": { "id": "STANDARD_VAT", "percent": 8 },
    }] }]);
    account
        .taxpayer
        .app()
        .submit_to_the_end(&with(&right, "tax_total", tax))
        .await
        .expect_status(422);
    let page = account.page(&path).await;
    assert_shows(
        &page,
        &[
            "Rejected",
            "why it was rejected",
            "The submitted document differs",
        ],
    );
    let sent = post_seen(&account, &path, "submit", &[]).await;
    sent.expect(303);
    let page = account.page(&path).await;
    assert_shows(&page, &["The authority signed the invoice."]);
    assert!(!page.contains("why it was rejected"), "{page}");
}

#[each_database]
async fn a_change_keeps_what_its_form_does_not_have(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let path = path_of(&invoice);
    let edit = format!("{path}/edit");
    let form = account.page(&edit).await;
    assert_shows(&form, &["Retail Stores Ltd", "value=\"500\"", "8471.30"]);
    let seen = seen(&account, &edit).await;
    let fields = [
        ("seen", &*seen),
        ("lines.0.unit_price", "1,500.50"),
        ("lines.7.unit_price", "1"),
        ("status", "paid"),
        ("irn", "another"),
    ];
    account
        .post(&edit, &fields)
        .await
        .leads_to(&account.path(&path));
    let whole = account.taxpayer.invoice_with_ledger(&invoice).await;
    assert_eq!(whole["lines"][0]["quantity"], 2);
    assert_eq!(whole["irn"], invoice["irn"]);
    assert_eq!(whole["status"], "draft");
    let page = account.page(&path).await;
    assert_shows(&page, &["3,226.08"]);
    // The page that was open before the change knows an older invoice.
    let late = [("seen", &*seen), ("lines.0.unit_price", "1,600")];
    let stale = account.post(&edit, &late).await.expect(412).html;
    assert_shows(&stale, &["has changed"]);
    let odd = [("due_date", "soon"), ("lines.0.quantity", "0")];
    let refused = post_seen(&account, &path, "edit", &odd).await;
    let refused = refused.expect(422).html;
    assert_shows(
        &refused,
        &[
            "This could not be done.",
            "value=\"soon\"",
            "fault-lines.0.quantity",
        ],
    );
}

#[on_sqlite]
async fn what_is_signed_or_was_sent_whole_is_not_changed_here(world: &World) {
    let account = Account::new(world).await;
    let full = documents::full_invoice(&account.taxpayer);
    let full = account.taxpayer.create_full(&full).await.expect_status(201);
    let full = path_of(full.data());
    let edit = account.path(&format!("{full}/edit"));
    account.owner.get(&edit).await.expect(409);
    account
        .post(&format!("{full}/edit"), &[("due_date", "2026-03-01")])
        .await
        .expect(409);
    let signed = approved(&account, &documents::invoice()).await;
    let path = path_of(&signed);
    account
        .post(&format!("{path}/credit-note"), &[])
        .await
        .expect(409);
    let sent = post_seen(&account, &path, "submit", &[]).await;
    sent.expect(303);
    let edit = format!("{path}/edit");
    account
        .post(&edit, &[("due_date", "2026-03-01")])
        .await
        .expect(409);
    account.owner.get(&account.path(&edit)).await.expect(409);
}

#[each_database]
async fn a_credit_note_is_a_draft_that_refers_to_its_invoice(world: &World) {
    let account = Account::new(world).await;
    let two_lines = with(
        &documents::invoice(),
        "invoice_lines",
        json!([
            documents::invoice()["invoice_lines"][0],
            with(
                &documents::invoice()["invoice_lines"][0],
                "item_no",
                json!("LAP-2")
            ),
        ]),
    );
    let signed = approved(&account, &two_lines).await;
    let path = path_of(&signed);
    let sent = post_seen(&account, &path, "submit", &[]).await;
    sent.expect(303);
    let form = format!("{path}/credit-note");
    let no = signed["invoice_no"].as_str().unwrap();
    let irn = signed["irn"].as_str().unwrap();
    let number = format!("value=\"{no}CN1\"");
    let heading = format!("Credit note for {no}");
    let shown = account.page(&form).await;
    assert_shows(&shown, &[&heading, &number, irn, "Remove this line"]);
    let removal = [("lines.0.remove", "yes")];
    let shown = account.post(&format!("{form}/lines"), &removal).await;
    let shown = shown.expect(200).html;
    assert_shows(&shown, &[&number, "LAP-2"]);
    assert!(!shown.contains("LAP-1"), "{shown}");
    let too_many = [("lines.0.quantity", "5"), ("note", "Too much")];
    let refused = account.post(&form, &too_many).await.expect(422);
    refused.shows("The credit note is over NGN 3,762.50, but only NGN 2,150.00 of the invoice is left to credit.");
    // Neither looking at the form nor a refusal has made anything.
    assert_eq!(account.taxpayer.count_events("invoice.created").await, 1);
    let made = account.post(&form, &removal).await.expect(303);
    account
        .owner
        .get(&account.path(&form))
        .await
        .leads_to(&made.location);
    let again = account.post(&form, &removal).await.expect(422);
    again.shows("There is a credit note already, which is not signed.");
    assert_eq!(account.taxpayer.count_events("invoice.created").await, 2);
    let original = account.page(&path).await;
    assert_shows(&original, &[&format!("{no}CN1</a> is a draft")]);
    for act in ["/credit-note\"", "/correct\""] {
        assert!(!original.contains(act), "{original}");
    }
    let typed = [("lines.0.quantity", "1")];
    let preview = format!("{path}/correct/preview");
    let refused = account.post(&preview, &typed).await.expect(409).html;
    let typed = "name=\"lines.0.quantity\" value=\"1\"";
    assert_shows(&refused, &["is not signed", typed, &format!("{no}CN1</a>")]);
    let note = made.location.strip_prefix(&account.path("")).unwrap();
    let page = account.page(note).await;
    assert_shows(&page, &["NGN 1,075.00", "LAP-2"]);
    assert!(!page.contains("LAP-1"), "{page}");
    let approval = [("status", "approved"), ("remark", "as agreed")];
    let changed = post_seen(&account, note, "status", &approval).await;
    changed.expect(303);
    let sent = post_seen(&account, note, "submit", &[]).await;
    sent.expect(303);
    let shown = account.page(note).await;
    let signed = "The authority signed the invoice.";
    let parts = "Paid back NGN 0.00, to be paid back 0.00, set off against <a href=\"";
    assert_shows(
        &shown,
        &[
            signed,
            parts,
            "</a> 1,075.00",
            "Nothing is to be paid back.",
        ],
    );
    assert!(!shown.contains("Record a refund"), "{shown}");
    account
        .post(&format!("{note}/credit-note"), &[])
        .await
        .expect(409);
    // Only a correction credits the rest of the invoice.
    account
        .post(&format!("{path}/credit-note"), &[])
        .await
        .expect(409);
    let page = account.page(&path).await;
    assert_shows(&page, &["/correct\""]);
    assert!(!page.contains("/credit-note\""), "{page}");
}

#[on_sqlite]
async fn no_credit_note_is_made_over_another_amount_than_was_signed(world: &World) {
    let account = Account::new(world).await;
    // The stored invoice and the signed payable: another payable, another quantity, as much in other parts, and another
    // currency.
    for (stored, payable) in [
        (documents::invoice(), 10_750),
        (
            with(&documents::invoice(), "invoice_lines.0.quantity", json!(3)),
            1_075,
        ),
        (documents::invoice_with_price("537.5", "2"), 1_075),
        (with(&documents::invoice(), "currency", json!("USD")), 1_075),
    ] {
        let invoice = account.taxpayer.invoice(&stored).await;
        let number = invoice["invoice_no"].as_str().unwrap();
        let other = submission(&account.taxpayer, number);
        let other = with(
            &other,
            "legal_monetary_total.payable_amount",
            json!(payable),
        );
        let submitted = account.taxpayer.app().submit_to_the_end(&other).await;
        submitted.expect_status(200);
        let path = path_of(&invoice);
        let page = account.page(&path).await;
        assert_shows(&page, &["/correct\""]);
        assert!(!page.contains("/credit-note\""), "{page}");
        let refused = account.post(&format!("{path}/credit-note"), &[]).await;
        let refused = refused.expect(409).html;
        let words = "The authority signed other lines or amounts than are stored here.";
        assert_shows(&refused, &[words]);
    }
}

#[each_database]
async fn an_invoice_that_waits_is_tried_again_at_once(world: &World) {
    let account = Account::new(world).await;
    let invoice = approved(&account, &documents::invoice()).await;
    let path = path_of(&invoice);
    let nothing = account.post(&format!("{path}/retry"), &[]).await;
    nothing.expect(404);
    let mut fault = FaultOrder::new(FaultKind::ServerError)
        .on(Operation::IrnValidate)
        .times(1_000_000);
    fault.irn = Some(invoice["irn"].as_str().unwrap().to_owned());
    world.authority.add_fault(fault).unwrap();
    let sent = post_seen(&account, &path, "submit", &[]).await;
    sent.expect(303);
    let page = account.page(&path).await;
    assert_shows(&page, &["The invoice is on its way.", "Waiting", "Try now"]);
    let overview = account.page("").await;
    let no = invoice["invoice_no"].as_str().unwrap();
    assert_shows(&overview, &["1 waiting", no]);
    account
        .post(&format!("{path}/retry"), &[])
        .await
        .leads_to(&account.path(&path));
}

#[on_sqlite(&RETRY_LATE)]
async fn an_invoice_that_an_operator_has_paused_is_left_to_the_operator(world: &World) {
    let account = Account::new(world).await;
    let operator = world.new_operator().await;
    let invoice = approved(&account, &documents::invoice()).await;
    let path = path_of(&invoice);
    let mut fault = FaultOrder::new(FaultKind::ServerError)
        .on(Operation::IrnValidate)
        .times(1_000_000);
    fault.irn = Some(invoice["irn"].as_str().unwrap().to_owned());
    world.authority.add_fault(fault).unwrap();
    let sent = post_seen(&account, &path, "submit", &[]).await;
    sent.expect(303);
    assert_shows(&account.page(&path).await, &["Try now"]);
    let run = operator.newest_run(&account.taxpayer).await;
    let id = run["id"].as_str().unwrap();
    operator.move_run(id, "pause").await.expect_status(200);
    let page = account.page(&path).await;
    assert!(!page.contains("Try now"), "{page}");
    assert_shows(
        &page,
        &["Submission: An operator of this service holds it back."],
    );
    // The page that was open before still has the button.
    let refused = account.post(&format!("{path}/retry"), &[]).await;
    let refused = refused.expect(409);
    let reason = "An operator of this service holds it back.";
    assert_shows(&refused.html, &[reason]);
    let paused = operator.newest_run(&account.taxpayer).await;
    assert_eq!(paused["state"], "paused");
    operator.move_run(id, "resume").await.expect_status(200);
    eventually("the button", async || {
        let page = account.page(&path).await;
        page.contains("Try now").then_some(())
    })
    .await;
}
