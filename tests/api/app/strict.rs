//! Documents that differ from the stored invoice: a warning, or a refusal where the account is strict; and what the
//! timeline tells of it.

use serde_json::{Value, json};
use testkit::documents::{full_invoice, invoice, report, submission, validation};
use testkit::edit::{exact, with};
use testkit::roles::{INVOICES, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

/// Stores an invoice. Returns it with a document of the same number whose payable is ten times as much.
async fn stored_and_other(taxpayer: &Taxpayer) -> (Value, Value) {
    let stored = taxpayer.invoice(&invoice()).await;
    let other = submission(taxpayer, stored["invoice_no"].as_str().unwrap());
    let other = with(&other, "legal_monetary_total.payable_amount", json!(10_750));
    (stored, other)
}

#[each_database]
async fn a_strict_account_takes_no_document_that_differs(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (stored, other) = stored_and_other(&taxpayer).await;
    let reported = with(
        &report(&taxpayer, stored["irn"].as_str().unwrap()),
        "total_amount",
        json!(9),
    );
    let no = stored["invoice_no"].as_str().unwrap();
    let checked = with(
        &validation(&taxpayer, no),
        "legal_monetary_total.payable_amount",
        json!(10_750),
    );
    let warned = taxpayer.app().validate(&checked).await.expect_status(200);
    assert!(
        warned.warnings().contains("payable_amount is 10750 here"),
        "{}",
        warned.warnings()
    );
    world
        .integrator()
        .change_profile(taxpayer.id, &json!({ "strict_documents": true }))
        .await
        .expect_status(200);
    for answer in [
        taxpayer.app().validate(&checked).await,
        taxpayer.app().submit(&other).await,
    ] {
        let answer = answer.expect_refusal(409, "IRN_CONTENT_CHANGED");
        assert_eq!(
            answer.faulty_paths(),
            ["legal_monetary_total.payable_amount"]
        );
        assert!(
            answer
                .body
                .to_string()
                .contains("10750 here and 1075.00 in the stored invoice"),
            "{}",
            answer.body
        );
    }
    let answer = taxpayer.app().report(&reported).await;
    let answer = answer.expect_refusal(409, "IRN_CONTENT_CHANGED");
    assert!(
        answer.faulty_paths().contains(&"total_amount"),
        "{}",
        answer.body
    );
    // The same document, or the IRN alone, is taken.
    let same = submission(&taxpayer, no);
    let valid = validation(&taxpayer, no);
    taxpayer.app().validate(&valid).await.expect_status(200);
    taxpayer
        .app()
        .submit_to_the_end(&same)
        .await
        .expect_status(200);
}

#[on_sqlite]
async fn a_strict_account_takes_no_money_that_only_one_of_the_two_has(world: &World) {
    let taxpayer = world.taxpayer().await;
    world
        .integrator()
        .change_profile(taxpayer.id, &json!({ "strict_documents": true }))
        .await
        .expect_status(200);
    let stored = taxpayer.invoice(&invoice()).await;
    let same = submission(&taxpayer, stored["invoice_no"].as_str().unwrap());
    let charge = |amount: u32| json!([{ "charge_indicator": false, "amount": amount }]);
    for (path, value) in [
        ("allowance_charge", charge(500)),
        ("invoice_line.0.discount_rate", json!(50)),
        ("invoice_line.0.discount_amount", exact("0.01")),
        ("invoice_line.0.fee_rate", json!(1)),
        ("invoice_line.0.fee_amount", json!(10)),
        ("invoice_line.0.price.base_quantity", json!(10)),
        ("legal_monetary_total.payable_amount", exact("1075.01")),
    ] {
        let answer = taxpayer.app().submit(&with(&same, path, value)).await;
        let answer = answer.expect_refusal(409, "IRN_CONTENT_CHANGED");
        assert_eq!(answer.faulty_paths(), [path]);
    }
    // Nothing said is not something else.
    let void = with(&same, "allowance_charge", charge(0));
    let void = with(&void, "invoice_line.0.discount_rate", json!(0));
    taxpayer
        .app()
        .submit_to_the_end(&void)
        .await
        .expect_status(200);
    // What is stored must be sent, too.
    let full = with(
        &full_invoice(&taxpayer),
        "invoice_line.0.fee_amount",
        json!(10),
    );
    let stored = taxpayer.new_full_invoice(&full).await;
    let same = submission(&taxpayer, stored["invoice_no"].as_str().unwrap());
    let answer = taxpayer.app().submit(&same).await;
    let answer = answer.expect_refusal(409, "IRN_CONTENT_CHANGED");
    assert_eq!(answer.faulty_paths(), ["invoice_line.0.fee_amount"]);
}

#[on_sqlite]
async fn the_document_that_is_shown_is_accepted_as_it_is(world: &World) {
    let taxpayer = world.taxpayer().await;
    world
        .integrator()
        .change_profile(taxpayer.id, &json!({ "strict_documents": true }))
        .await
        .expect_status(200);
    let charged = with(
        &full_invoice(&taxpayer),
        "allowance_charge",
        json!([{ "charge_indicator": true, "amount": 5 }]),
    );
    let charged = with(
        &charged,
        "legal_monetary_total.payable_amount",
        json!(1_080),
    );
    let uneven = with(
        &invoice(),
        "invoice_lines.0.discount_rate",
        exact("33.333333"),
    );
    let self_billed = with(&invoice(), "invoice_type_code", json!("385"));
    for stored in [
        taxpayer.invoice(&invoice()).await,
        taxpayer.invoice(&uneven).await,
        taxpayer.invoice(&self_billed).await,
        taxpayer.new_full_invoice(&full_invoice(&taxpayer)).await,
        taxpayer.new_full_invoice(&charged).await,
    ] {
        let path = format!("{INVOICES}/{}/json", stored["id"]);
        let shown = taxpayer.get(&path).await.expect_status(200).body;
        let answer = taxpayer.app().submit_to_the_end(&shown).await;
        assert_eq!(answer.expect_status(200).warnings(), "", "{shown}");
    }
}

#[on_sqlite]
async fn an_irn_that_is_not_stored_is_nothing_to_differ_from(world: &World) {
    let taxpayer = world.taxpayer().await;
    world
        .integrator()
        .change_profile(taxpayer.id, &json!({ "strict_documents": true }))
        .await
        .expect_status(200);
    let other = world.taxpayer().await;
    let theirs = other.invoice(&invoice()).await;
    let body = submission(&taxpayer, theirs["invoice_no"].as_str().unwrap());
    taxpayer
        .app()
        .submit_to_the_end(&body)
        .await
        .expect_status(200);
}

#[each_database]
async fn the_timeline_keeps_both_amounts(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (stored, other) = stored_and_other(&taxpayer).await;
    taxpayer
        .app()
        .submit_to_the_end(&other)
        .await
        .expect_status(200);
    let expected = json!([{
        "path": "legal_monetary_total.payable_amount", "sent": "10750", "stored": "1075.00",
    }]);
    let events = taxpayer.invoice_events().await;
    let submitted = events
        .iter()
        .find(|event| event["type"] == "invoice.submitted");
    assert_eq!(submitted.unwrap()["data"]["differences"], expected);
    let timeline = taxpayer.timeline(&stored["id"]).await.expect_status(200);
    let entries = timeline.data()["entries"].as_array().unwrap();
    let entry = entries
        .iter()
        .find(|entry| entry["name"] == "invoice.submitted");
    assert_eq!(entry.unwrap()["detail"]["differences"], expected);
    // A document that does not differ has no such member.
    let plain = taxpayer.invoice(&invoice()).await;
    let same = submission(&taxpayer, plain["invoice_no"].as_str().unwrap());
    taxpayer
        .app()
        .submit_to_the_end(&same)
        .await
        .expect_status(200);
    let events = taxpayer.invoice_events().await;
    let last = events
        .iter()
        .rfind(|event| event["type"] == "invoice.submitted");
    assert_eq!(last.unwrap()["data"].get("differences"), None);
    assert_eq!(exact("1075.00"), plain_payable(&taxpayer, &plain).await);
}

async fn plain_payable(taxpayer: &Taxpayer, invoice: &Value) -> Value {
    taxpayer.invoice_with_ledger(invoice).await["ledger"]["payable_amount"].clone()
}
