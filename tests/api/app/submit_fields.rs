//! POST /v1/app/invoices/submit: what each field has to be. The form's own tests hold every rule; here many faults at
//! once go over the wire, what the authority accepts, and whose document it is.

use serde_json::json;
use testkit::documents::{self, submission};
use testkit::edit::{with, without};
use testkit::on_sqlite;

use crate::support::world::World;

#[on_sqlite]
async fn an_odd_irn_has_a_code_of_its_own(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, "INV1");
    for (odd, code) in [
        ("INV1", "IRN_MALFORMED"),
        ("INV1-FFFFFFFF-20260115", "IRN_SERVICE_ID_MISMATCH"),
    ] {
        let answer = taxpayer.app().submit(&with(&body, "irn", json!(odd))).await;
        assert_eq!(answer.expect_refusal(422, code).faulty_paths(), ["irn"]);
    }
}

#[on_sqlite]
async fn documents_of_every_kind_are_accepted_by_the_authority_too(world: &World) {
    let taxpayer = world.taxpayer().await;
    let new = || submission(&taxpayer, &documents::invoice_no());
    let mut whole = new();
    for (path, value) in [
        ("issue_time", json!("10:15:00")),
        ("payment_status", json!("PENDING")),
        ("tax_point_date", json!("2026-01-15")),
        ("tax_currency_code", json!("NGN")),
        ("accounting_cost", json!(12)),
        ("buyer_reference", json!("PO-77")),
        ("note", json!("x".repeat(1_000))),
        ("payment_terms_note", json!("30 days")),
        (
            "invoice_delivery_period",
            json!({ "start_date": "2026-01-01", "end_date": "2026-01-31" }),
        ),
        ("invoice_line.0.discount_rate", json!(0)),
        ("invoice_line.0.fee_amount", json!(0)),
    ] {
        whole = with(&whole, path, value);
    }
    let bare = without(
        &without(&new(), "due_date"),
        "accounting_customer_party.telephone",
    );
    let untaxed = with(
        &new(),
        "legal_monetary_total.tax_inclusive_amount",
        json!(1000),
    );
    let untaxed = with(&untaxed, "legal_monetary_total.payable_amount", json!(1000));
    let service = without(
        &without(&new(), "invoice_line.0.hsn_code"),
        "invoice_line.0.product_category",
    );
    let service = with(&service, "invoice_line.0.isic_code", json!("6201"));
    let service = with(&service, "invoice_line.0.service_category", json!("6201"));
    let consumers = without(&new(), "accounting_customer_party");
    let consumers = with(&consumers, "invoice_category", json!("B2C"));
    let lower = new();
    let service_id = &taxpayer.registration.service_id;
    let irn = lower["irn"]
        .as_str()
        .unwrap()
        .replace(service_id, &service_id.to_lowercase());
    let lower = with(&lower, "irn", json!(irn));
    for body in [whole, bare, untaxed, service, consumers, lower] {
        taxpayer.app().submit(&body).await.expect_status(200);
    }
}

#[on_sqlite]
async fn all_faults_are_reported_at_once_and_unknown_fields_in_a_warning(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    let odd = with(&body, "accounting_supplier_party.email", json!("plain"));
    let odd = with(&odd, "invoice_line.0.price.price_unit", json!("EACH"));
    let odd = without(&odd, "issue_date");
    let paths = [
        "accounting_supplier_party.email",
        "invoice_line.0.price.price_unit",
        "issue_date",
    ];
    let answer = taxpayer.app().submit(&odd).await.expect_faults(&paths);
    assert!(
        answer.message().ends_with("(and 2 more errors)"),
        "{}",
        answer.message()
    );
    assert!(
        world
            .authority
            .invoice(body["irn"].as_str().unwrap())
            .is_none(),
        "nothing was sent"
    );
    let strange = with(&body, "colour", json!("red"));
    let answer = taxpayer.app().submit(&strange).await.expect_status(200);
    assert!(
        answer.warnings().contains("colour"),
        "{}",
        answer.warnings()
    );
}

#[on_sqlite]
async fn a_supplier_that_is_not_the_account_is_refused_on_its_tin(world: &World) {
    const TIN: &str = "accounting_supplier_party.tin";
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    for stranger in [other.registration.tin.as_str(), "23456789-0001", "-"] {
        let odd = with(&body, TIN, json!(stranger));
        for caller in [taxpayer.app(), world.integrator().app()] {
            let answer = caller.submit(&odd).await.expect_faults(&[TIN]);
            assert!(
                answer.message().contains("the tax number of this taxpayer"),
                "{}",
                answer.message()
            );
        }
        let document = with(
            &documents::validation(&taxpayer, "INV1"),
            TIN,
            json!(stranger),
        );
        let answer = taxpayer.app().validate(&document).await.expect_status(200);
        assert!(
            answer.warnings().contains("Submit refuses it"),
            "{}",
            answer.warnings()
        );
    }
    assert!(
        world
            .authority
            .invoice(body["irn"].as_str().unwrap())
            .is_none(),
        "nobody was asked"
    );
    let respelled = with(
        &body,
        TIN,
        json!(taxpayer.registration.tin.replace('-', "\u{2013} ")),
    );
    taxpayer.app().submit(&respelled).await.expect_status(200);
}

#[on_sqlite]
async fn of_a_self_billed_document_the_customer_is_the_account(world: &World) {
    const TIN: &str = "accounting_customer_party.tin";
    let taxpayer = world.taxpayer().await;
    for code in ["385", "393", "394"] {
        let body = submission(&taxpayer, &documents::invoice_no());
        let body = with(&body, "invoice_type_code", json!(code));
        taxpayer.app().submit(&body).await.expect_faults(&[TIN]);
        let nobody = without(
            &with(&body, "invoice_category", json!("B2C")),
            "accounting_customer_party",
        );
        taxpayer
            .app()
            .submit(&nobody)
            .await
            .expect_faults(&["accounting_customer_party"]);
        let body = with(&body, TIN, json!(taxpayer.registration.tin));
        let body = with(
            &body,
            "accounting_supplier_party.tin",
            json!("87654321-0001"),
        );
        taxpayer.app().submit(&body).await.expect_status(200);
    }
}
