//! Which IRNs are taken.

use einvoice::internals::{Clock, SystemClock};
use jiff::ToSpan;
use jiff::tz::Offset;
use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::edit::with;
use testkit::roles::Taxpayer;

use crate::support::world::World;

/// A body with this invoice number in its IRN, and that number or none of its own.
fn with_irn(taxpayer: &Taxpayer, irn: impl Into<Value>) -> Value {
    with(&documents::full_invoice(taxpayer), "irn", irn.into())
}

#[each_database]
async fn a_malformed_irn_has_a_code_of_its_own(world: &World) {
    let taxpayer = world.taxpayer().await;
    let service_id = &taxpayer.registration.service_id;
    for irn in [
        "INV1".to_owned(),
        format!("INV1-{service_id}"),
        format!("-{service_id}-20260115"),
        format!("INV1-{service_id}-20261315"),
        format!("INV1-{service_id}-2026011"),
        format!("INV1-{}X-20260115", &service_id[..7]),
        format!("INV1-{service_id}-20260115-"),
        format!("INV1-{service_id}-２０２６０１１５"),
        format!("IN\u{0}V1-{service_id}-20260115"),
    ] {
        let answer = taxpayer.create_full(&with_irn(&taxpayer, irn.clone())).await;
        let answer = answer.expect_refusal(422, "IRN_MALFORMED");
        assert_eq!(answer.faulty_paths(), ["irn"], "{irn}");
    }
}

#[each_database]
async fn another_accounts_service_id_has_a_code_of_its_own(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let foreign = with_irn(&taxpayer, documents::irn(&other, &documents::invoice_no()));
    let answer = taxpayer.create_full(&foreign).await.expect_refusal(422, "IRN_SERVICE_ID_MISMATCH");
    assert_eq!(answer.faulty_paths(), ["irn"]);
    assert_eq!(answer.message(), answer.body["errors"]["irn"][0].as_str().unwrap());
    assert_eq!(taxpayer.list_invoices("").await.data()["total"], json!(0));
}

#[each_database]
async fn beside_other_faults_an_irn_is_one_of_them(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    for irn in ["INV1".to_owned(), documents::irn(&other, "INV1")] {
        let body = with(&with_irn(&taxpayer, irn), "note", json!(7));
        taxpayer.create_full(&body).await.expect_faults(&["irn", "note"]);
    }
}

#[each_database]
async fn the_case_of_the_service_id_does_not_matter_and_stays(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::full_invoice(&taxpayer);
    let upper = body["irn"].as_str().unwrap();
    let no = body["invoice_no"].as_str().unwrap();
    let lower = upper.to_lowercase().replace("inv", "INV");
    assert_ne!(lower, upper);
    let invoice = taxpayer.full(&with(&body, "irn", json!(lower))).await;
    assert_eq!((&invoice["irn"], &invoice["invoice_no"]), (&json!(lower), &json!(no)));
    let again = taxpayer.create_full(&body).await.expect_status(200);
    assert_eq!(again.data()["id"], invoice["id"]);
    taxpayer.set_status(&json!({ "irn": upper }), "approved").await.expect_status(200);
}

#[each_database]
async fn slashes_percent_signs_and_many_hyphens_are_part_of_a_number(world: &World) {
    let taxpayer = world.taxpayer().await;
    for no in ["A/1/2", "50%", "%2F%00", "a-b-c--d-", "-", "Ünï 1", ".."] {
        let no = format!("{no}{}", documents::invoice_no());
        let body = with_irn(&taxpayer, documents::irn(&taxpayer, &no));
        let invoice = taxpayer.full(&with(&body, "invoice_no", json!(no))).await;
        assert_eq!((&invoice["invoice_no"], &invoice["irn"]), (&json!(no), &body["irn"]));
        for (kind, text) in [("IRN", &body["irn"]), ("INTERNAL_INVOICE_NO", &json!(no))] {
            let named = json!({ "unique_no": text, "unique_no_type": kind });
            let path = "/v1/tax-payers/invoices/get-by-unique-no";
            let found = taxpayer.send("POST", path, &named).await.expect_status(200);
            assert_eq!(found.data()["id"], invoice["id"], "{no}");
        }
    }
}

/// Each number that people read, with a character in it that they cannot see or that turns what follows.
#[each_database]
async fn a_number_that_nobody_can_see_or_that_reads_backwards_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let full = documents::full_invoice(&taxpayer);
    let fields = ["invoice_no", "accounting_customer_party.customer_no", "accounting_customer_party.tin"];
    for hidden in
        ["\u{200b}", "\u{202e}", "\u{2067}", "\u{200d}", "\u{feff}", "\u{ad}", "\u{3164}", "\u{e0041}"]
    {
        for field in fields {
            let body = with(&full, field, json!(format!("A{hidden}1")));
            let answer = taxpayer.create_full(&body).await.expect_faults(&[field]);
            assert!(answer.message().contains("invisible"), "{field} {hidden:?}: {}", answer.text);
        }
        let irn = documents::irn(&taxpayer, &format!("A{hidden}1"));
        taxpayer.create_full(&with_irn(&taxpayer, irn)).await.expect_refusal(422, "IRN_MALFORMED");
        let standard = with(&documents::invoice(), "invoice_no", json!(format!("A{hidden}1")));
        taxpayer.create_invoice(&standard).await.expect_faults(&["invoice_no"]);
        for field in ["invoice_no", "accounting_customer_party.party_name"] {
            taxpayer.create_full(&with(&full, field, json!(hidden))).await.expect_faults(&[field]);
        }
    }
    assert_eq!(taxpayer.list_invoices("").await.data()["total"], json!(0));
}

#[each_database]
async fn another_number_or_day_in_the_irn_is_a_warning(world: &World) {
    let taxpayer = world.taxpayer().await;
    let irn = format!("{}-{}-20260114", documents::invoice_no(), taxpayer.registration.service_id);
    let answer = taxpayer.create_full(&with_irn(&taxpayer, irn.clone())).await.expect_status(201);
    let warnings = answer.warnings();
    assert!(warnings.contains("invoice number") && warnings.contains("date"), "{warnings}");
    assert_eq!(answer.data()["irn"], json!(irn));
}

#[each_database]
async fn an_invoice_is_not_issued_in_the_future(world: &World) {
    let taxpayer = world.taxpayer().await;
    // The authority's zone is an hour ahead, so that its day is never more than one after ours.
    let today = Offset::UTC.to_datetime(SystemClock.now()).date();
    let dated = |days: i64| {
        let day = today.checked_add(days.days()).unwrap().to_string();
        let body = documents::full_invoice(&taxpayer);
        let body = with(&body, "due_date", json!(day));
        with(&body, "issue_date", json!(day))
    };
    taxpayer.create_full(&dated(2)).await.expect_faults(&["issue_date"]);
    taxpayer.create_full(&dated(0)).await.expect_status(201);
}
