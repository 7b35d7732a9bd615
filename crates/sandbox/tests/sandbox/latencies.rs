//! Latencies of calls without a fault, and their queueing.

use std::time::{Duration, Instant};

use reqwest::Method;
use sandbox::{FaultKind, FaultOrder, LatencyOrder, Operation};
use serde_json::{Value, json};

use crate::support::{Authority, IRN, document};

fn fixed_latency(ms: u64) -> LatencyOrder {
    LatencyOrder {
        fixed_ms: Some(ms),
        ..LatencyOrder::default()
    }
}

fn confirm(number: usize) -> String {
    format!("/invoice/confirm/INV{number}-94AD90FB-20260115")
}

/// Makes concurrent calls and returns their total time.
async fn time_confirmations(authority: &Authority, calls: usize) -> Duration {
    let begun = Instant::now();
    let asking: Vec<_> = (0..calls)
        .map(|number| tokio::spawn(authority.call(Method::GET, &confirm(number)).send()))
        .collect();
    for asked in asking {
        assert_eq!(asked.await.unwrap().unwrap().status(), 404);
    }
    begun.elapsed()
}

#[actix_rt::test]
async fn latencies_are_ordered_listed_and_cleared() {
    let authority = Authority::start().await;
    let order = json!({ "operation": "sign", "fixed_ms": 200, "at_once": 4 });
    assert_eq!(
        authority.control(Method::POST, "/latencies", &order).await,
        (201, json!({ "id": 1 }))
    );
    let begun = Instant::now();
    assert_eq!(authority.sign(IRN).await.0, 201);
    assert!(begun.elapsed() >= Duration::from_millis(200));
    let (_, body) = authority
        .control(Method::GET, "/latencies", &Value::Null)
        .await;
    let expected = json!({
        "id": 1, "waiting": 0, "waiting_max": 0, "in_service": 0, "served": 1,
        "order": { "operation": "sign", "fixed_ms": 200, "uniform_ms": null, "percentiles_ms": null, "at_once": 4 },
    });
    assert_eq!(body["latencies"], json!([expected]));
    let (_, body) = authority
        .control(Method::DELETE, "/latencies", &Value::Null)
        .await;
    assert_eq!(body["latencies"], json!([]));
    let (_, body) = authority
        .control(Method::GET, "/latencies", &Value::Null)
        .await;
    assert_eq!(body["latencies"], json!([]));
}

#[actix_rt::test]
async fn a_latency_that_makes_no_sense_is_refused_with_its_reason() {
    let authority = Authority::start().await;
    let table = |p90: u64| json!({ "p50": 50, "p90": p90, "p99": 100, "max": 200 });
    for (order, reason) in [
        (json!({}), "one of fixed_ms"),
        (
            json!({ "fixed_ms": 1, "uniform_ms": { "min": 1, "max": 2 } }),
            "one of fixed_ms",
        ),
        (
            json!({ "uniform_ms": { "min": 2, "max": 1 } }),
            "must not go down",
        ),
        (json!({ "percentiles_ms": table(40) }), "must not go down"),
        (json!({ "percentiles_ms": { "p50": 1 } }), "missing field"),
        (json!({ "fixed_ms": 3_600_001 }), "from 0 to 3600000 ms"),
        (json!({ "fixed_ms": -1 }), "invalid value"),
        (json!({ "at_once": 0 }), "at_once must be from 1"),
        (
            json!({ "at_once": 100_001 }),
            "at_once must be from 1 to 100000",
        ),
        (
            json!({ "fixed_ms": 1, "operation": "teleport" }),
            "unknown operation teleport",
        ),
        (json!({ "fixed_ms": 1, "often": true }), "unknown field"),
    ] {
        let (status, body) = authority.control(Method::POST, "/latencies", &order).await;
        assert_eq!(status, 422, "{order}");
        assert!(
            body["error"].as_str().unwrap().contains(reason),
            "{order}: {body}"
        );
    }
}

#[actix_rt::test]
async fn a_call_waits_for_its_turn_where_only_so_many_are_served_at_once() {
    let authority = Authority::start().await;
    let order = LatencyOrder {
        at_once: Some(2),
        ..fixed_latency(100)
    };
    authority.sandbox.state().add_latency(order).unwrap();
    assert!(
        time_confirmations(&authority, 6).await >= Duration::from_millis(300),
        "three rounds of two"
    );
    let (_, body) = authority
        .control(Method::GET, "/latencies", &Value::Null)
        .await;
    let listed = &body["latencies"][0];
    assert_eq!(
        (&listed["served"], &listed["waiting"], &listed["in_service"]),
        (&json!(6), &json!(0), &json!(0))
    );
    assert_eq!(listed["waiting_max"], json!(4), "{listed}");
}

#[actix_rt::test]
async fn an_operation_of_its_own_goes_before_all_and_a_later_order_replaces_the_earlier() {
    let authority = Authority::start().await;
    let state = authority.sandbox.state();
    state.add_latency(fixed_latency(60_000)).unwrap();
    state
        .add_latency(fixed_latency(60_000).on(Operation::Confirm))
        .unwrap();
    state
        .add_latency(fixed_latency(0).on(Operation::Confirm))
        .unwrap();
    assert_eq!(authority.get(&confirm(1)).await.0, 404);
    let (_, body) = authority
        .control(Method::GET, "/latencies", &Value::Null)
        .await;
    assert_eq!(body["latencies"].as_array().unwrap().len(), 2);
    state.add_latency(fixed_latency(0)).unwrap();
    assert_eq!(authority.sign(IRN).await.0, 201);
}

#[actix_rt::test]
async fn a_fault_that_prevents_waits_for_no_turn_and_another_comes_on_top() {
    let authority = Authority::start().await;
    let state = authority.sandbox.state();
    state
        .add_latency(LatencyOrder {
            at_once: Some(1),
            ..fixed_latency(300)
        })
        .unwrap();
    authority.fault(FaultOrder::new(FaultKind::Outage).on(Operation::Sign));
    let begun = Instant::now();
    assert_eq!(authority.sign(IRN).await.0, 503);
    assert!(begun.elapsed() < Duration::from_millis(300));
    authority.sandbox.state().clear_faults();
    authority.fault(FaultOrder::new(FaultKind::CommitThenDrop).on(Operation::Sign));
    let begun = Instant::now();
    assert!(authority.try_sign(IRN).await.is_err());
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert_eq!(authority.sheet(IRN).sign_count, 1);
}

#[actix_rt::test]
async fn a_call_whose_caller_has_given_up_is_served_when_its_turn_comes() {
    let authority = Authority::start().await;
    let order = LatencyOrder {
        at_once: Some(1),
        ..fixed_latency(400)
    };
    authority.sandbox.state().add_latency(order).unwrap();
    let first = tokio::spawn(authority.call(Method::GET, &confirm(1)).send());
    tokio::time::sleep(Duration::from_millis(100)).await;
    let sign = authority
        .call(Method::POST, "/invoice/sign")
        .json(&document(IRN));
    let error = sign
        .timeout(Duration::from_millis(100))
        .send()
        .await
        .unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert_eq!(authority.sheet(IRN).sign_count, 0, "it waits");
    assert_eq!(first.await.unwrap().unwrap().status(), 404);
    // This call waits behind the `sign` that its caller gave up.
    assert_eq!(
        authority.get(&format!("/invoice/confirm/{IRN}")).await.0,
        200
    );
    assert_eq!(authority.sheet(IRN).sign_count, 1);
}
