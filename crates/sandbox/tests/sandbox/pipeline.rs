//! An invoice from its reference number to its receipt.

use jiff::civil::Date;
use jiff::tz::offset;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{AMBIGUOUS, API_KEY, Authority, BUSINESS, IRN, SUPPLIER_TIN, document, read};

fn irn_request(irn: &str) -> Value {
    json!({ "invoice_reference": "INV001", "business_id": BUSINESS, "irn": irn })
}

#[actix_rt::test]
async fn an_invoice_goes_from_its_number_to_its_receipt() {
    let authority = Authority::start().await;
    let ok = json!({ "ok": true });
    let (status, body) = authority
        .post("/invoice/irn/validate", &irn_request(IRN))
        .await;
    assert_eq!(
        (status, &body["data"], &body["code"]),
        (200, &ok, &json!(200))
    );
    assert_eq!(
        authority.post("/invoice/validate", &document(IRN)).await.1["data"],
        ok
    );
    let (status, body) = authority.sign(IRN).await;
    assert_eq!(
        (status, &body["data"], &body["code"]),
        (201, &ok, &json!(201))
    );
    let (status, body) = authority.get(&format!("/invoice/confirm/{IRN}")).await;
    assert_eq!((status, &body["data"]["transmitted"]), (200, &json!(false)));
    assert_eq!(
        authority.get("/invoice/transmit/self-health-check").await.1["data"],
        ok
    );
    let (_, body) = authority
        .get(&format!("/invoice/transmit/lookup/{IRN}"))
        .await;
    assert_eq!(
        (
            &body["data"]["supplier"]["online"],
            &body["data"]["customer"]["online"]
        ),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        authority
            .post(&format!("/invoice/transmit/{IRN}"), &json!({}))
            .await
            .0,
        200
    );
    let acknowledged = json!({ "message": "ACKNOWLEDGED" });
    assert_eq!(
        authority
            .patch(&format!("/invoice/transmit/{IRN}"), &acknowledged)
            .await
            .0,
        200
    );
    let (_, body) = authority.get(&format!("/invoice/confirm/{IRN}")).await;
    assert_eq!(
        (&body["data"]["transmitted"], &body["data"]["delivered"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(body["data"]["issue_date"], "2026-01-15");
    let sheet = authority.sheet(IRN);
    assert_eq!(
        (sheet.sign_count, sheet.sign_attempts, sheet.transmit_count),
        (1, 1, 1)
    );
    authority.sandbox.stop().await;
}

#[actix_rt::test]
async fn a_second_signature_is_refused_in_the_words_of_a_busy_authority() {
    let authority = Authority::start().await;
    authority.sign(IRN).await;
    let (status, body) = authority.sign(IRN).await;
    assert_eq!(
        (status, &body["message"], &body["data"]),
        (400, &json!(AMBIGUOUS), &Value::Null)
    );
    let (status, body) = authority
        .post("/invoice/irn/validate", &irn_request(IRN))
        .await;
    assert_eq!((status, &body["message"]), (400, &json!(AMBIGUOUS)));
    assert_eq!(
        (
            authority.sheet(IRN).sign_count,
            authority.sheet(IRN).sign_attempts
        ),
        (1, 2)
    );
}

/// The zones are 26 hours apart, so their days differ at every moment.
#[actix_rt::test]
async fn the_day_of_a_signature_is_one_of_the_time_zone_of_the_settings() {
    let mut days = Vec::new();
    for zone in [offset(-12), offset(14)] {
        let authority = Authority::with_zone(1, zone).await;
        authority.sign(IRN).await;
        let (_, confirmed) = authority.get(&format!("/invoice/confirm/{IRN}")).await;
        let (_, found) = authority.get(&format!("/invoice/{BUSINESS}")).await;
        let day = &confirmed["data"]["sync_date"];
        assert_eq!(&found["data"]["items"][0]["sync_date"], day);
        let day: Date = day.as_str().unwrap().parse().unwrap();
        days.push(day);
        authority.sandbox.stop().await;
    }
    assert!(days[0] < days[1], "{days:?}");
}

#[actix_rt::test]
async fn of_fifty_concurrent_signatures_one_is_committed() {
    let authority = Authority::start().await;
    let signs: Vec<_> = (0..50)
        .map(|_| {
            authority
                .call(Method::POST, "/invoice/sign")
                .json(&document(IRN))
                .send()
        })
        .map(tokio::spawn)
        .collect();
    let mut created = 0;
    for sign in signs {
        created += u32::from(sign.await.unwrap().unwrap().status() == 201);
    }
    assert_eq!(
        (
            created,
            authority.sheet(IRN).sign_count,
            authority.sheet(IRN).sign_attempts
        ),
        (1, 1, 50)
    );
}

#[actix_rt::test]
async fn what_is_not_signed_is_not_found() {
    let authority = Authority::start().await;
    for path in [
        "/invoice/confirm/",
        "/invoice/download/",
        "/invoice/transmit/lookup/",
    ] {
        let (status, body) = authority.get(&format!("{path}{IRN}")).await;
        assert_eq!(
            (status, &body["code"], &body["data"]),
            (404, &json!(404), &Value::Null),
            "{path}"
        );
    }
    assert_eq!(
        authority
            .post(&format!("/invoice/transmit/{IRN}"), &json!({}))
            .await
            .0,
        404
    );
    assert_eq!(
        authority
            .patch(
                &format!("/invoice/update/{IRN}"),
                &json!({ "payment_status": "PAID" })
            )
            .await
            .0,
        404
    );
}

#[actix_rt::test]
async fn a_fault_of_the_document_comes_alone_and_as_a_struct_path() {
    let authority = Authority::start().await;
    let mut faulty = document(IRN);
    faulty["tax_total"][0]["tax_subtotal"][0]["tax_category"]["id"] = json!("VAT");
    faulty["invoice_line"] = json!([]);
    let (status, body) = authority.post("/invoice/sign", &faulty).await;
    assert_eq!(status, 400);
    let words =
        "invoicerequest.invoice.taxtotal[0].taxsubtotal[0].taxcategory.id must be a known code";
    assert_eq!(body["error"]["details"], words);
    assert_eq!(body["error"]["handler"], "sign_handler");
    assert!(!authority.sheet(IRN).signed);
}

#[actix_rt::test]
async fn an_invoice_number_with_a_hyphen_is_refused_with_its_field() {
    let authority = Authority::start().await;
    let (status, body) = authority
        .post(
            "/invoice/irn/validate",
            &irn_request("INV-001-94AD90FB-20260115"),
        )
        .await;
    assert_eq!(
        (status, &body["error"]["errors"][0]["field"]),
        (400, &json!("irnrequest.irn"))
    );
}

#[actix_rt::test]
async fn a_wrong_key_is_a_bad_request_except_where_no_key_is_needed() {
    let authority = Authority::start().await;
    let path = format!("/api/v1/invoice/confirm/{IRN}");
    let keyed = authority
        .bare(Method::GET, &path)
        .header("x-api-key", API_KEY)
        .header("x-api-secret", "wrong");
    let (status, body) = read(keyed.send().await.unwrap()).await;
    assert_eq!(
        (status, &body["message"]),
        (400, &json!("unable to validate api key"))
    );
    for path in [
        "/api",
        "/api/v1",
        "/api/v1/invoice/resources/currencies",
        "/api/invoice/transmit/self-health-check",
    ] {
        assert_eq!(
            authority
                .bare(Method::GET, path)
                .send()
                .await
                .unwrap()
                .status(),
            200,
            "{path}"
        );
    }
    let root = authority
        .bare(Method::GET, "/api")
        .send()
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    let root: Value = strict_json::from_untrusted(&root).unwrap();
    assert_eq!(root, json!({ "healthy": true }));
}

#[actix_rt::test]
async fn an_unknown_route_has_an_envelope_without_an_error() {
    let authority = Authority::start().await;
    for (method, path) in [
        (Method::GET, "/nowhere/at/all"),
        (Method::DELETE, "/invoice/sign"),
    ] {
        let (status, body) = read(authority.call(method, path).send().await.unwrap()).await;
        assert_eq!((status, body.get("error")), (404, None), "{path}");
    }
}

#[actix_rt::test]
async fn paid_is_final_and_pending_cannot_be_set() {
    let authority = Authority::start().await;
    authority.sign(IRN).await;
    let path = format!("/invoice/update/{IRN}");
    assert_eq!(
        authority
            .patch(&path, &json!({ "payment_status": "PENDING" }))
            .await
            .0,
        400
    );
    assert_eq!(
        authority
            .patch(&path, &json!({ "payment_status": "PARTIAL" }))
            .await
            .0,
        400
    );
    assert_eq!(
        authority
            .patch(
                &path,
                &json!({ "payment_status": "PARTIAL", "reference": "R1" })
            )
            .await
            .0,
        200
    );
    assert_eq!(
        authority
            .patch(&path, &json!({ "payment_status": "CANCELLED" }))
            .await
            .0,
        400
    );
    assert_eq!(
        authority
            .patch(&path, &json!({ "payment_status": "PAID" }))
            .await
            .0,
        200
    );
    assert_eq!(
        authority
            .patch(&path, &json!({ "payment_status": "REJECTED" }))
            .await
            .0,
        400
    );
    assert_eq!(
        authority.get(&format!("/invoice/confirm/{IRN}")).await.1["data"]["payment_status"],
        "PAID"
    );
}

#[actix_rt::test]
async fn a_search_pages_through_one_business_newest_first() {
    let authority = Authority::start().await;
    for number in 1..=5 {
        authority
            .sign(&format!("INV{number}-94AD90FB-20260115"))
            .await;
    }
    let (_, body) = authority
        .get(&format!("/invoice/{BUSINESS}?size=2&page=2"))
        .await;
    let irns: Vec<&str> = body["data"]["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["irn"].as_str())
        .collect();
    assert_eq!(irns, ["INV3-94AD90FB-20260115", "INV2-94AD90FB-20260115"]);
    let page = json!({ "page": 2, "size": 2, "total_count": 5, "has_next_page": true, "has_previous_page": true });
    assert_eq!(body["data"]["page"], page);
    let (_, body) = authority
        .get(&format!(
            "/invoice/{BUSINESS}?irn=INV4-94AD90FB-20260115&payment_status=PENDING"
        ))
        .await;
    assert_eq!(body["data"]["items"].as_array().unwrap().len(), 1);
}

#[actix_rt::test]
async fn a_report_wants_its_numbers_as_strings() {
    let authority = Authority::start().await;
    let mut report = json!({
        "agent_tin": SUPPLIER_TIN, "beneficiary_tin": "2", "irn": IRN, "currency": "NGN", "item_description": "Rice",
        "transaction_date": "2026-01-15", "integrator_service_id": "94AD90FB", "vat_status": "ZERO_VAT",
        "base_amount": "100.00", "vat_rate": "0", "vat_calculated": "0.00", "total_amount": "100.00",
    });
    assert_eq!(authority.post("/vat/postpayment", &report).await.0, 200);
    report["base_amount"] = json!(100);
    let (status, body) = authority.post("/vat/postpayment", &report).await;
    assert_eq!(
        (status, &body["message"]),
        (
            400,
            &json!("vatpostpaymentrequest.baseamount must be a string")
        )
    );
}
