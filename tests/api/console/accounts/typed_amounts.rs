//! The amounts that people type into forms: a decimal comma is refused and never multiplies an amount.

use serde_json::json;
use testkit::documents;
use testkit::on_sqlite;

use super::{Account, assert_shows, post_seen, seen};
use crate::support::world::World;

const MISPLACED_COMMAS: [&str; 3] = ["1,5", "1.000,50", "1,2,3"];
const ADVICE: &str = "must be a number written like 1234.50, with commas between thousands only";

#[on_sqlite]
async fn a_payment_with_a_decimal_comma_is_refused(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let approved = account.taxpayer.set_status(&invoice, "approved").await;
    approved.expect_status(200);
    let form = format!("/invoices/{}/payment", invoice["id"]);
    let fields = |typed: &'static str| {
        [
            ("payment_status", "partial"),
            ("amount", typed),
            ("remark", "a part"),
        ]
    };
    for typed in MISPLACED_COMMAS {
        let refused = account.post(&form, &fields(typed)).await.expect(422);
        refused.shows(ADVICE).shows(&format!("value=\"{typed}\""));
    }
    let precise = account.post(&form, &fields("0.001")).await.expect(422);
    precise.shows("must not have more than 2 digits after the decimal point");
    let stored = account.taxpayer.reread(&invoice).await;
    assert_eq!(stored["payment_status"], "PENDING", "{stored}");
    account.post(&form, &fields(" 1,074.50 ")).await.expect(303);
    let page = account.page(&format!("/invoices/{}", invoice["id"])).await;
    assert_shows(&page, &["Paid NGN 1,074.50"]);
}

#[on_sqlite]
async fn a_line_with_a_decimal_comma_is_neither_saved_nor_corrected(world: &World) {
    let account = Account::new(world).await;
    let draft = account.taxpayer.invoice(&documents::invoice()).await;
    let signed = account.taxpayer.invoice(&documents::invoice()).await;
    let alone = json!({ "irn": signed["irn"] });
    let submitted = account.taxpayer.app().submit_to_the_end(&alone).await;
    submitted.expect_status(200);
    let draft_page = format!("/invoices/{}", draft["id"]);
    let preview = format!("/invoices/{}/correct/preview", signed["id"]);
    let seen = seen(&account, &draft_page).await;
    for form in [&format!("{draft_page}/edit"), &preview] {
        for (name, label) in [
            ("lines.0.quantity", "Line 1, quantity"),
            ("lines.0.unit_price", "Line 1, unit price"),
        ] {
            for typed in MISPLACED_COMMAS {
                let refused = account.post(form, &[(name, typed), ("seen", &seen)]).await;
                let refused = refused.expect(422);
                refused.shows(&format!("The {label} field {ADVICE}."));
            }
        }
    }
    let grouped = [("lines.0.unit_price", " 1,500.50 ")];
    let plan = account.post(&preview, &grouped).await.expect(200);
    plan.shows("Line 1, unit price");
    let saved = post_seen(&account, &draft_page, "edit", &grouped).await;
    saved.expect(303);
    let whole = account.taxpayer.invoice_with_ledger(&draft).await;
    assert_eq!(whole["lines"][0]["unit_price"], 1_500.5);
}
