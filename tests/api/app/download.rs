//! GET /v1/app/invoices/{irn}/download.

use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::json;
use testkit::documents::{self, irn, submission};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

/// What the specification lists of the document.
const FIELDS: [&str; 13] = [
    "business_id",
    "irn",
    "payment_status",
    "issue_date",
    "issue_time",
    "due_date",
    "invoice_type_code",
    "document_currency_code",
    "tax_currency_code",
    "accounting_supplier_party",
    "accounting_customer_party",
    "legal_monetary_total",
    "invoice_line",
];

#[each_database]
async fn a_signed_invoice_is_downloaded_as_the_authority_holds_it(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let irn = irn(&taxpayer, &no);
    let app = taxpayer.app();
    let mut body = submission(&taxpayer, &no);
    body["issue_time"] = json!("10:15:00");
    app.submit(&body).await.expect_status(200);
    let answer = app.download(&irn).await.expect_status(200);
    assert_eq!(answer.message(), "Invoice downloaded successfully");
    for field in FIELDS {
        assert!(!answer.data()[field].is_null(), "{field}: {}", answer.text);
    }
    for field in [
        "irn",
        "business_id",
        "issue_date",
        "invoice_line",
        "legal_monetary_total",
    ] {
        assert_eq!(answer.data()[field], body[field], "{field}");
    }
    let posted = app
        .call("POST", &format!("/v1/app/invoices/{irn}/download"))
        .await
        .expect_status(200);
    assert_eq!(posted.data(), answer.data());
    let of_integrator = world
        .integrator()
        .app()
        .download(&irn)
        .await
        .expect_status(200);
    assert_eq!(of_integrator.data(), answer.data());
    app.set_payment_status(&irn, "PAID")
        .await
        .expect_status(200);
    assert_eq!(
        app.download(&irn).await.data()["payment_status"],
        json!("PAID")
    );
}

#[each_database]
async fn an_irn_in_another_case_is_the_same_invoice(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    let lower = irn(&taxpayer, &no).replace(
        &taxpayer.registration.service_id,
        &taxpayer.registration.service_id.to_lowercase(),
    );
    taxpayer.app().download(&lower).await.expect_status(200);
    taxpayer.app().confirm(&lower).await.expect_status(200);
}

#[on_sqlite]
async fn an_invoice_that_is_not_signed_has_no_file(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    for irn in [
        invoice["irn"].as_str().unwrap().to_owned(),
        irn(&taxpayer, "NEVERSEEN"),
    ] {
        let answer = taxpayer.app().download(&irn).await;
        let answer = answer.expect_refusal(404, "INVOICE_FILE_NOT_FOUND");
        assert_eq!(answer.message(), "Invoice File not found");
    }
}

#[each_database]
async fn an_irn_that_is_odd_or_of_somebody_else_is_not_found(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let no = documents::invoice_no();
    other
        .app()
        .submit(&submission(&other, &no))
        .await
        .expect_status(200);
    let of_other = irn(&other, &no);
    for irn in ["nonsense", of_other.as_str()] {
        taxpayer
            .app()
            .download(irn)
            .await
            .expect_refusal(404, "INVOICE_NOT_FOUND");
    }
    let stranger = world.new_integrator().await.app();
    stranger
        .download(&of_other)
        .await
        .expect_refusal(404, "INVOICE_NOT_FOUND");
}

#[on_sqlite(&[("AUTHORITY__TIMEOUT_S", "1")])]
async fn an_authority_that_does_not_answer_is_a_502_or_a_504(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    let irn = irn(&taxpayer, &no);
    for kind in [FaultKind::Outage, FaultKind::Garbage, FaultKind::Reset] {
        let mut order = FaultOrder::new(kind).on(Operation::Download);
        order.times = Some(1);
        world.authority.add_fault(order).unwrap();
        let answer = taxpayer
            .app()
            .download(&irn)
            .await
            .expect_refusal(502, "AUTHORITY_UNAVAILABLE");
        assert_ne!(answer.header("retry-after"), "");
    }
    let mut late = FaultOrder::new(FaultKind::Latency).on(Operation::Download);
    late.latency_ms = Some(3_000);
    world.authority.add_fault(late).unwrap();
    taxpayer
        .app()
        .download(&irn)
        .await
        .expect_refusal(504, "AUTHORITY_TIMEOUT");
    taxpayer.app().download(&irn).await.expect_status(200);
}
