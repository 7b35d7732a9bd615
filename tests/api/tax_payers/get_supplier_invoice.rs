//! POST /v1/tax-payers/invoices/get-supplier-invoice.

use std::time::Instant;

use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::json;
use testkit::roles::GET_SUPPLIER_INVOICE;
use testkit::{each_database, on_sqlite};

use crate::support::supplies::{arrived, planted, received, signed};
use crate::support::world::World;

fn on_download(world: &World, kind: FaultKind, irn: &str, latency_ms: Option<u64>) {
    let mut order = FaultOrder::new(kind).on(Operation::Download).times(1);
    order.irn = Some(irn.to_owned());
    order.latency_ms = latency_ms;
    world.authority.add_fault(order).unwrap();
}

#[each_database]
async fn the_whole_document_of_the_authority_is_given(world: &World) {
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let (_, irn) = signed(&seller, &buyer.registration.tin).await;
    seller.app().transmit(&irn).await.expect_status(200);
    arrived(&buyer, &irn).await;
    let answer = buyer.supplier_invoice(&irn).await.expect_status(200);
    assert_eq!(answer.message(), "Supplier invoice retrieved successfully");
    assert_eq!(answer.warnings(), "", "it is of this moment");
    let document = answer.data();
    assert_eq!(document["irn"], json!(irn));
    assert_eq!(
        document["business_id"],
        json!(seller.registration.business_id)
    );
    assert_eq!(
        document["accounting_supplier_party"]["tin"],
        json!(seller.registration.tin)
    );
    assert_eq!(
        document["accounting_customer_party"]["tin"],
        json!(buyer.registration.tin)
    );
    for field in [
        "payment_status",
        "issue_date",
        "due_date",
        "invoice_type_code",
        "document_currency_code",
        "tax_currency_code",
        "legal_monetary_total",
        "invoice_line",
    ] {
        assert!(!document[field].is_null(), "{field}: {}", answer.text);
    }
}

#[each_database]
async fn the_service_id_counts_in_any_case(world: &World) {
    let buyer = world.taxpayer().await;
    let irn = received(world, &buyer).await;
    let answer = buyer
        .supplier_invoice(&irn.replace("5A0D0001", "5a0d0001"))
        .await
        .expect_status(200);
    assert_eq!(
        (answer.data()["irn"].as_str(), answer.warnings().as_str()),
        (Some(irn.as_str()), "")
    );
}

#[on_sqlite]
async fn an_invoice_that_the_caller_was_not_notified_about_is_forbidden(world: &World) {
    let buyer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let irn = received(world, &buyer).await;
    let unannounced = planted(world, &other.registration.tin);
    for irn in [irn.as_str(), &unannounced, "NEVER1-5A0D0001-20260115"] {
        other
            .supplier_invoice(irn)
            .await
            .expect_refusal(403, "NOT_ADDRESSED_TO_CALLER");
    }
}

#[on_sqlite]
async fn a_sender_is_not_the_one_it_is_addressed_to(world: &World) {
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let (_, irn) = signed(&seller, &buyer.registration.tin).await;
    seller
        .supplier_invoice(&irn)
        .await
        .expect_refusal(403, "NOT_ADDRESSED_TO_CALLER");
}

#[on_sqlite]
async fn an_authority_that_is_dead_does_not_keep_the_document_from_its_buyer(world: &World) {
    let buyer = world.taxpayer().await;
    let irn = received(world, &buyer).await;
    let live = buyer.supplier_invoice(&irn).await.expect_status(200);
    on_download(world, FaultKind::ServerError, &irn, None);
    let path = format!("/v1/tax-payers/supplier-invoices/{irn}/json");
    let file = buyer.get(&path).await.expect_status(200);
    assert!(
        file.warnings().contains("as it was at receipt"),
        "{}",
        file.warnings()
    );
    for kind in [
        FaultKind::ServerError,
        FaultKind::Reset,
        FaultKind::Garbage,
        FaultKind::Throttled,
    ] {
        on_download(world, kind, &irn, None);
        let kept = buyer.supplier_invoice(&irn).await.expect_status(200);
        assert_eq!(kept.data(), live.data());
        assert!(
            kept.warnings().contains("as it was at receipt"),
            "{}",
            kept.warnings()
        );
    }
    on_download(world, FaultKind::Latency, &irn, Some(20_000));
    let start = Instant::now();
    buyer.supplier_invoice(&irn).await.expect_status(200);
    assert!(
        start.elapsed().as_secs() < 12,
        "a slow authority is not waited for"
    );
}

#[on_sqlite]
async fn the_body_is_checked(world: &World) {
    let buyer = world.taxpayer().await;
    buyer
        .send("POST", GET_SUPPLIER_INVOICE, &json!({}))
        .await
        .expect_faults(&["supplier_irn"]);
    buyer
        .supplier_invoice("SUP1")
        .await
        .expect_refusal(403, "NOT_ADDRESSED_TO_CALLER");
}
