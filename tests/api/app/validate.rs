//! POST /v1/app/invoices/validate.

use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{self, irn, number, submission, validation};
use testkit::edit::{exact, with, without};
use testkit::roles::{Taxpayer, VALIDATE};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

/// Counts the calls of the authority about this invoice.
fn asked(world: &World, irn: &str) -> usize {
    let calls = world.authority.calls();
    calls
        .iter()
        .filter(|call| call.irn.as_deref() == Some(irn))
        .count()
}

/// A payload and its IRN.
fn payload(taxpayer: &Taxpayer) -> (Value, String) {
    let no = documents::invoice_no();
    (validation(taxpayer, &no), irn(taxpayer, &no))
}

#[each_database]
async fn a_valid_payload_is_said_to_be_so_and_nothing_changes(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let events = taxpayer.events().await.len();
    let body = validation(&taxpayer, invoice["invoice_no"].as_str().unwrap());
    let irn = invoice["irn"].as_str().unwrap();
    let answer = taxpayer.app().validate(&body).await.expect_status(200);
    assert_eq!(answer.message(), "Invoice validated successfully");
    assert_eq!(
        *answer.data(),
        json!({ "ok": true, "irn": irn, "warnings": [] })
    );
    let calls = world.authority.calls();
    let of_it: Vec<_> = calls
        .iter()
        .filter(|call| call.irn.as_deref() == Some(irn))
        .collect();
    assert_eq!(of_it.len(), 1, "{of_it:?}");
    assert_eq!(of_it[0].operation, Some(Operation::Validate));
    assert_eq!(taxpayer.reread(&invoice).await, invoice);
    assert_eq!(taxpayer.events().await.len(), events);
    taxpayer
        .app()
        .run(irn)
        .await
        .expect_refusal(404, "RUN_NOT_FOUND");
}

#[on_sqlite]
async fn documents_of_every_kind_are_accepted_by_the_authority_too(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (body, _) = payload(&taxpayer);
    let zone = "accounting_customer_party.postal_address.postal_zone";
    let original = json!([{ "irn": irn(&taxpayer, "OLD1"), "issue_date": "2026-01-01" }]);
    let credit = with(&body, "invoice_type_code", json!("380"));
    for accepted in [
        without(&body, "accounting_customer_party"),
        without(&body, "accounting_customer_party.telephone"),
        without(&body, zone),
        with(&body, "order_reference", json!("PO-1")),
        with(&body, "due_date", json!("2026-01-15")),
        with(
            &body,
            "invoice_line.0.line_extension_amount",
            exact("1000.01"),
        ),
        with(&credit, "billing_reference", original),
    ] {
        taxpayer.app().validate(&accepted).await.expect_status(200);
    }
}

#[on_sqlite]
async fn telephone_and_email_are_not_judged_by_their_format(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (mut body, _) = payload(&taxpayer);
    for party in ["accounting_supplier_party", "accounting_customer_party"] {
        body = with(
            &body,
            &format!("{party}.telephone"),
            json!("0801 000 0000, ask for Ada"),
        );
        body = with(&body, &format!("{party}.email"), json!("the office"));
    }
    let answer = taxpayer.app().validate(&body).await.expect_status(200);
    let warnings = answer.data()["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 4, "{}", answer.text);
    assert!(
        warnings
            .iter()
            .all(|warning| warning.as_str().unwrap().ends_with("; Submit refuses it"))
    );
}

#[on_sqlite]
async fn an_odd_irn_has_a_code_of_its_own_and_the_same_status(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let (body, _) = payload(&taxpayer);
    let answer = taxpayer
        .app()
        .validate(&with(&body, "irn", json!("INV1")))
        .await;
    assert_eq!(
        answer.expect_refusal(400, "IRN_MALFORMED").faulty_paths(),
        ["irn"]
    );
    let answer = taxpayer
        .app()
        .validate(&with(&body, "irn", json!(irn(&other, "INV1"))))
        .await;
    assert_eq!(
        answer
            .expect_refusal(400, "IRN_SERVICE_ID_MISMATCH")
            .faulty_paths(),
        ["irn"]
    );
    let hyphened = with(&body, "irn", json!(irn(&taxpayer, "INV-1")));
    taxpayer
        .app()
        .validate(&hyphened)
        .await
        .expect_invalid(&["irn"]);
    let business = with(&body, "business_id", json!(other.registration.business_id));
    taxpayer
        .app()
        .validate(&business)
        .await
        .expect_invalid(&["business_id"]);
}

#[on_sqlite]
async fn all_faults_are_reported_at_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let paths = [
        "business_id",
        "due_date",
        "invoice_type_code",
        "irn",
        "issue_date",
    ];
    let answer = taxpayer
        .app()
        .validate(&json!({}))
        .await
        .expect_refusal(400, "VALIDATION_FAILED");
    for path in paths {
        assert!(
            answer.faulty_paths().contains(&path),
            "{path}: {}",
            answer.text
        );
    }
    let (body, irn) = payload(&taxpayer);
    let body = without(
        &with(&body, "invoice_line.0.price.price_unit", json!("EACH")),
        "issue_date",
    );
    let two = taxpayer.app().validate(&body).await;
    two.expect_invalid(&["invoice_line.0.price.price_unit", "issue_date"]);
    assert_eq!(asked(world, &irn), 0, "nothing was sent");
    let text = world.integrator().send("POST", VALIDATE, &json!({})).await;
    text.expect_refusal(400, "VALIDATION_FAILED");
    let list = taxpayer.send("POST", VALIDATE, &json!([])).await;
    list.expect_refusal(400, "VALIDATION_FAILED");
    taxpayer
        .send_text("POST", VALIDATE, "{")
        .await
        .expect_refusal(400, "MALFORMED_JSON");
}

#[on_sqlite]
async fn a_refusal_of_the_authority_is_passed_on_in_its_words_with_our_path(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = validation(&taxpayer, &format!("INV{}SBXREJECT", number()));
    let answer = taxpayer
        .app()
        .validate(&body)
        .await
        .expect_refusal(400, "AUTHORITY_REJECTED");
    assert_eq!(answer.faulty_paths(), ["invoice_line.0.hsn_code"]);
    assert!(
        answer.message().contains("must be a known code"),
        "{}",
        answer.text
    );
    let (body, _) = payload(&taxpayer);
    let untaxed = with(
        &body,
        "legal_monetary_total.tax_inclusive_amount",
        json!(1001),
    );
    let answer = taxpayer
        .app()
        .validate(&untaxed)
        .await
        .expect_refusal(400, "AUTHORITY_REJECTED");
    assert_eq!(
        answer.faulty_paths(),
        ["legal_monetary_total.tax_inclusive_amount"]
    );
}

#[on_sqlite(&[("AUTHORITY__TIMEOUT_S", "1")])]
async fn an_authority_that_is_out_is_said_to_be_so(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (body, _) = payload(&taxpayer);
    world
        .authority
        .add_fault(FaultOrder::new(FaultKind::Outage))
        .unwrap();
    let answer = taxpayer
        .app()
        .validate(&body)
        .await
        .expect_refusal(502, "AUTHORITY_UNAVAILABLE");
    assert_ne!(answer.header("retry-after"), "");
    world.authority.clear_faults();
    let mut late = FaultOrder::new(FaultKind::Latency).on(Operation::Validate);
    late.latency_ms = Some(3_000);
    world.authority.add_fault(late).unwrap();
    let answer = taxpayer
        .app()
        .validate(&body)
        .await
        .expect_refusal(504, "AUTHORITY_TIMEOUT");
    assert_ne!(answer.header("retry-after"), "");
    taxpayer.app().validate(&body).await.expect_status(200);
}

#[each_database]
async fn an_integrator_validates_for_its_taxpayers_and_no_others(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (body, irn) = payload(&taxpayer);
    let answer = world
        .integrator()
        .app()
        .validate(&body)
        .await
        .expect_status(200);
    assert_eq!(answer.data()["irn"], json!(irn));
    let stranger = world.new_integrator().await.app();
    stranger
        .validate(&body)
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
    let nameless = without(&body, "business_id");
    world
        .integrator()
        .app()
        .validate(&nameless)
        .await
        .expect_invalid(&["business_id"]);
    let request = world
        .integrator()
        .request("POST", VALIDATE)
        .header("x-taxpayer-id", taxpayer.id);
    let answer = Answer::to(request.json(&json!({ "irn": "odd" }))).await;
    let answer = answer.expect_refusal(400, "IRN_MALFORMED");
    assert_eq!(answer.faulty_paths(), ["irn"]);
}

#[on_sqlite]
async fn the_body_of_a_submission_may_be_validated_first(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let mut body = submission(&taxpayer, &no);
    let own = validation(&taxpayer, &no);
    for field in [
        "tax_point_date",
        "tax_currency_code",
        "payment_means",
        "tax_total",
    ] {
        body[field] = own[field].clone();
    }
    body["payment_status"] = json!("pending");
    let answer = taxpayer.app().validate(&body).await.expect_status(200);
    assert_eq!(answer.data()["warnings"], json!([]), "{}", answer.text);
    taxpayer.app().submit(&body).await.expect_status(200);
    let strange = with(&body, "colour", json!("red"));
    let answer = taxpayer.app().validate(&strange).await.expect_status(200);
    assert_eq!(answer.data()["warnings"], json!(["unknown field: colour"]));
    assert!(answer.warnings().contains("colour"));
}
