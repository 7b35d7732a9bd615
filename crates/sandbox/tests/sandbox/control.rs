//! The control interface, and starting and stopping.

use reqwest::Method;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};

use crate::support::{Authority, IRN, read};

#[actix_rt::test]
async fn faults_are_ordered_listed_and_cleared() {
    let authority = Authority::start().await;
    let order = json!({ "operation": "sign", "kind": "server_error", "times": 2, "irn": IRN });
    let (status, body) = authority.control(Method::POST, "/faults", &order).await;
    assert_eq!((status, body), (201, json!({ "id": 1 })));
    assert_eq!(authority.sign(IRN).await.0, 500);
    let (_, body) = authority
        .control(Method::GET, "/faults", &Value::Null)
        .await;
    assert_eq!(
        (&body["faults"][0]["remaining"], &body["faults"][0]["hits"]),
        (&json!(1), &json!(1))
    );
    authority
        .control(Method::DELETE, "/faults", &Value::Null)
        .await;
    assert_eq!(authority.sign(IRN).await.0, 201);
}

#[actix_rt::test]
async fn an_order_that_makes_no_sense_is_refused_with_its_reason() {
    let authority = Authority::start().await;
    let orders = [
        (json!({ "kind": "sabotage" }), "unknown variant"),
        (
            json!({ "kind": "busy", "operation": "teleport" }),
            "unknown operation teleport",
        ),
        (
            json!({ "kind": "health_down", "operation": "sign" }),
            "does not apply to sign",
        ),
        (
            json!({ "kind": "busy", "probability": 1.5 }),
            "probability must be from 0 to 1",
        ),
        (json!({ "kind": "busy", "how_often": 2 }), "unknown field"),
        (
            json!({ "kind": "wrong_key", "operation": "resources" }),
            "does not apply to resources",
        ),
        (
            json!({ "kind": "busy", "status": 200 }),
            "status must be from 400 to 599",
        ),
    ];
    for (order, reason) in orders {
        let (status, body) = authority.control(Method::POST, "/faults", &order).await;
        assert_eq!(status, 422, "{order}");
        assert!(
            body["error"].as_str().unwrap().contains(reason),
            "{order}: {body}"
        );
    }
}

#[actix_rt::test]
async fn every_kind_of_fault_can_be_ordered_in_every_way() {
    let authority = Authority::start().await;
    let kinds = [
        "latency",
        "server_error",
        "throttled",
        "busy",
        "commit_then_drop",
        "reset",
        "stall",
        "commit_then_stall",
        "garbage",
        "xml",
        "missing_fields",
        "wrong_key",
        "access_point_offline",
        "health_down",
        "outage",
    ];
    for kind in kinds {
        let operation = match kind {
            "access_point_offline" => "lookup",
            "health_down" => "health",
            _ => "sign",
        };
        for order in [
            json!({ "kind": kind }),
            json!({ "kind": kind, "operation": operation }),
            json!({ "kind": kind, "operation": "*", "probability": 0.3 }),
            json!({ "kind": kind, "for_s": 1 }),
            json!({ "kind": kind, "times": 3, "irn": IRN, "latency_ms": 5 }),
        ] {
            let (status, body) = authority.control(Method::POST, "/faults", &order).await;
            assert_eq!(status, 201, "{order}: {body}");
        }
    }
}

#[actix_rt::test]
async fn the_seed_is_told_and_set() {
    let authority = Authority::with_seed(3).await;
    assert_eq!(
        authority.control(Method::GET, "/seed", &Value::Null).await,
        (200, json!({ "seed": 3 }))
    );
    let set = authority
        .control(Method::POST, "/seed", &json!({ "seed": u64::MAX }))
        .await;
    assert_eq!(set, (200, json!({ "seed": u64::MAX })));
    assert_eq!(authority.sandbox.state().seed(), u64::MAX);
    for body in [
        json!({}),
        json!({ "seed": -1 }),
        json!({ "seed": "7" }),
        json!({ "seed": 1, "again": 2 }),
    ] {
        assert_eq!(
            authority.control(Method::POST, "/seed", &body).await.0,
            422,
            "{body}"
        );
    }
}

#[actix_rt::test]
async fn every_call_is_listed_with_how_it_ended() {
    let authority = Authority::start().await;
    authority.fault(FaultOrder::new(FaultKind::Reset).on(Operation::Sign));
    assert!(authority.try_sign(IRN).await.is_err());
    authority.sign(IRN).await;
    authority.get(&format!("/invoice/confirm/{IRN}")).await;
    authority.get("/nowhere/at/all").await;
    let (_, body) = authority.control(Method::GET, "/calls", &Value::Null).await;
    let calls = body["calls"].as_array().unwrap();
    let short: Vec<Value> = calls
        .iter()
        .map(|call| json!([call["operation"], call["irn"], call["status"]]))
        .collect();
    let expected = json!([
        ["sign", IRN, "dropped"],
        ["sign", IRN, 201],
        ["confirm", IRN, 200],
        [null, null, 404],
    ]);
    assert_eq!(json!(short), expected);
    assert_eq!(calls[1]["path"], "/api/v1/invoice/sign");
    assert!(calls[1]["at"].as_str().unwrap().ends_with('Z') && calls[1]["duration_ms"].is_number());
    authority
        .control(Method::DELETE, "/calls", &Value::Null)
        .await;
    assert!(authority.sandbox.state().calls().is_empty());
}

#[actix_rt::test]
async fn an_invoice_tells_its_state_and_how_often_it_was_signed() {
    let authority = Authority::start().await;
    let path = format!("/invoices/{IRN}");
    assert_eq!(
        authority.control(Method::GET, &path, &Value::Null).await.0,
        404
    );
    authority.sign(IRN).await;
    authority.sign(IRN).await;
    let (_, body) = authority.control(Method::GET, &path, &Value::Null).await;
    let expected = json!({
        "irn": IRN, "signed": true, "sign_count": 1, "sign_attempts": 2, "transmitted": false, "delivered": false,
        "transmit_count": 0, "transmit_attempts": 0, "acknowledge_attempts": 0, "confirm_attempts": 0,
        "report_count": 0, "report_attempts": 0, "update_attempts": 0, "payment_status": "PENDING", "payment_reference": null,
    });
    assert_eq!(body, expected);
    let (_, body) = authority
        .control(Method::GET, "/invoices", &Value::Null)
        .await;
    assert_eq!(body, json!({ "invoices": [expected] }));
}

#[actix_rt::test]
async fn the_lists_are_served_without_a_key() {
    let authority = Authority::start().await;
    for list in [
        "invoice-types",
        "payment-means",
        "hs-codes",
        "services-codes",
        "lgas",
        "countries",
    ] {
        let path = format!("/api/v1/invoice/resources/{list}");
        let (status, body) = read(authority.bare(Method::GET, &path).send().await.unwrap()).await;
        assert!(
            status == 200 && !body["data"].as_array().unwrap().is_empty(),
            "{list}"
        );
    }
    assert_eq!(authority.get("/invoice/resources/moods").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_runs_in_a_plain_runtime_as_well_and_stops_when_told() {
    let authority = Authority::start().await;
    let root = format!("{}/api", authority.sandbox.base_url());
    assert_eq!(authority.sign(IRN).await.0, 201);
    authority.sandbox.stop().await;
    assert!(reqwest::get(root).await.is_err());
}

#[actix_rt::test]
async fn it_speaks_either_dialect() {
    let authority = Authority::start().await;
    let (_, body) = authority
        .control(Method::GET, "/dialect", &Value::Null)
        .await;
    assert_eq!(body, json!({ "dialect": "short" }));
    assert_eq!(authority.sign(IRN).await.0, 201);
    let (status, body) = authority
        .control(Method::POST, "/dialect", &json!({ "dialect": "long" }))
        .await;
    assert_eq!((status, body), (200, json!({ "dialect": "long" })));
    let (status, body) = authority.sign(IRN).await;
    assert_eq!(
        (status, &body["message"]),
        (400, &json!("temporarily unavailable, please try again"))
    );
    let (_, body) = authority
        .get(&format!("/invoice/transmit/lookup/{IRN}"))
        .await;
    let supplier = &body["data"]["accounting_supplier_party"];
    assert!(
        supplier["tin"].is_string() && supplier["online"].is_null(),
        "{body}"
    );
    authority
        .post(&format!("/invoice/transmit/{IRN}"), &json!({}))
        .await;
    let (_, body) = authority.get("/invoice/transmit/pull").await;
    assert_eq!(body["data"]["invoices"][0]["irn"], json!(IRN), "{body}");
    assert_eq!(
        authority
            .control(Method::POST, "/dialect", &json!({ "dialect": "odd" }))
            .await
            .0,
        422
    );
}
