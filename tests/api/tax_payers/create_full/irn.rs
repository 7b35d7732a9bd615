//! Which IRNs are taken.

use jiff::ToSpan;
use jiff::tz::Offset;
use serde_json::{Value, json};
use testkit::documents;
use testkit::edit::with;
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};
use timing::clock::{Clock, SystemClock};

use crate::support::world::World;

/// A body with this invoice number in its IRN, and that number or none of its own.
fn with_irn(taxpayer: &Taxpayer, irn: impl Into<Value>) -> Value {
    with(&documents::full_invoice(taxpayer), "irn", irn.into())
}

#[on_sqlite]
async fn a_malformed_irn_and_one_of_another_account_have_codes_of_their_own(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let foreign = documents::irn(&other, &documents::invoice_no());
    for (irn, code) in [
        ("INV1", "IRN_MALFORMED"),
        (&foreign, "IRN_SERVICE_ID_MISMATCH"),
    ] {
        let answer = taxpayer
            .create_full(&with_irn(&taxpayer, irn))
            .await
            .expect_refusal(422, code);
        assert_eq!(answer.faulty_paths(), ["irn"]);
        assert_eq!(
            answer.message(),
            answer.body["errors"]["irn"][0].as_str().unwrap()
        );
    }
    assert_eq!(taxpayer.list_invoices("").await.data()["total"], json!(0));
}

#[on_sqlite]
async fn beside_other_faults_an_irn_is_one_of_them(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    for irn in ["INV1".to_owned(), documents::irn(&other, "INV1")] {
        let body = with(&with_irn(&taxpayer, irn), "note", json!(7));
        taxpayer
            .create_full(&body)
            .await
            .expect_faults(&["irn", "note"]);
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
    let invoice = taxpayer
        .new_full_invoice(&with(&body, "irn", json!(lower)))
        .await;
    assert_eq!(
        (&invoice["irn"], &invoice["invoice_no"]),
        (&json!(lower), &json!(no))
    );
    let again = taxpayer.create_full(&body).await.expect_status(200);
    assert_eq!(again.data()["id"], invoice["id"]);
    assert_eq!(again.header("x-duplicate"), "identical");
    taxpayer
        .set_status(&json!({ "irn": upper }), "approved")
        .await
        .expect_status(200);
}

#[on_sqlite]
async fn slashes_percent_signs_and_many_hyphens_are_part_of_a_number(world: &World) {
    let taxpayer = world.taxpayer().await;
    for no in ["A/1/2", "50%", "%2F%00", "a-b-c--d-", "-", "Ünï 1", ".."] {
        let no = format!("{no}{}", documents::invoice_no());
        let body = with_irn(&taxpayer, documents::irn(&taxpayer, &no));
        let invoice = taxpayer
            .new_full_invoice(&with(&body, "invoice_no", json!(no)))
            .await;
        assert_eq!(
            (&invoice["invoice_no"], &invoice["irn"]),
            (&json!(no), &body["irn"])
        );
        for (kind, text) in [("IRN", &body["irn"]), ("INTERNAL_INVOICE_NO", &json!(no))] {
            let named = json!({ "unique_no": text, "unique_no_type": kind });
            let path = "/v1/tax-payers/invoices/get-by-unique-no";
            let found = taxpayer.send("POST", path, &named).await.expect_status(200);
            assert_eq!(found.data()["id"], invoice["id"], "{no}");
        }
    }
}

#[on_sqlite]
async fn another_number_or_day_in_the_irn_and_an_unknown_field_are_warnings(world: &World) {
    let taxpayer = world.taxpayer().await;
    let irn = format!(
        "{}-{}-20260114",
        documents::invoice_no(),
        taxpayer.registration.service_id
    );
    let body = with(
        &with_irn(&taxpayer, irn.clone()),
        "invoice_line.0.item.colour",
        json!("red"),
    );
    let answer = taxpayer.create_full(&body).await.expect_status(201);
    let warnings = answer.warnings();
    assert!(
        warnings.contains("invoice number") && warnings.contains("date"),
        "{warnings}"
    );
    assert!(
        warnings.contains("invoice_line.0.item.colour"),
        "{warnings}"
    );
    assert_eq!(answer.data()["irn"], json!(irn));
}

#[on_sqlite]
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
    taxpayer
        .create_full(&dated(2))
        .await
        .expect_faults(&["issue_date"]);
    taxpayer.create_full(&dated(0)).await.expect_status(201);
}
