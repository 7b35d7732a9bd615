//! Every kind of fault, as a client sees it, and reproducible randomness.

use std::time::{Duration, Instant};

use reqwest::Method;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};

use crate::support::{AMBIGUOUS, Authority, IRN, read};

#[actix_rt::test]
async fn a_dropped_reply_leaves_one_signature_that_confirm_can_see() {
    let authority = Authority::start().await;
    // Opens a connection that stays in the client's pool, so that the fault breaks a reused connection.
    authority.get("/invoice/transmit/self-health-check").await;
    authority.fault(FaultOrder::new(FaultKind::CommitThenDrop).on(Operation::Sign));
    let error = authority.try_sign(IRN).await.unwrap_err();
    assert!(
        error.is_request() && !error.is_timeout() && error.status().is_none(),
        "{error:?}"
    );
    assert_eq!(
        authority.get(&format!("/invoice/confirm/{IRN}")).await.0,
        200
    );
    assert_eq!(
        (
            authority.sheet(IRN).sign_count,
            authority.sheet(IRN).sign_attempts
        ),
        (1, 1)
    );
    let (status, body) = authority.sign(IRN).await;
    assert_eq!((status, &body["message"]), (400, &json!(AMBIGUOUS)));
    assert_eq!(
        (
            authority.sheet(IRN).sign_count,
            authority.sheet(IRN).sign_attempts
        ),
        (1, 2)
    );
}

#[actix_rt::test]
async fn a_reset_connection_has_no_effect_and_the_next_call_is_fine() {
    let authority = Authority::start().await;
    authority.fault(FaultOrder::new(FaultKind::Reset).on(Operation::Sign));
    let error = authority.try_sign(IRN).await.unwrap_err();
    assert!(
        format!("{error:?}").contains("ConnectionReset"),
        "{error:?}"
    );
    assert_eq!(
        authority.get(&format!("/invoice/confirm/{IRN}")).await.0,
        404
    );
    assert_eq!(authority.sign(IRN).await.0, 201);
}

#[actix_rt::test]
async fn a_late_answer_commits_at_once_even_when_the_caller_gives_up() {
    let authority = Authority::start().await;
    authority.fault(FaultOrder {
        latency_ms: Some(60_000),
        ..FaultOrder::new(FaultKind::Latency)
    });
    let sign = authority
        .call(Method::POST, "/invoice/sign")
        .json(&crate::support::document(IRN));
    let error = sign
        .timeout(Duration::from_millis(300))
        .send()
        .await
        .unwrap_err();
    assert!(error.is_timeout());
    assert_eq!(authority.sheet(IRN).sign_count, 1);
    let started = Instant::now();
    authority.fault(FaultOrder {
        latency_ms: Some(200),
        ..FaultOrder::new(FaultKind::Latency)
    });
    assert_eq!(
        authority.get(&format!("/invoice/confirm/{IRN}")).await.0,
        200
    );
    assert!(started.elapsed() >= Duration::from_millis(200));
    let calls = serde_json::to_value(authority.sandbox.state().calls()).unwrap();
    assert_eq!(
        (&calls[0]["status"], &calls[1]["status"]),
        (&json!("pending"), &json!(200))
    );
}

#[actix_rt::test]
async fn a_stalled_call_is_never_answered_with_its_effect_or_without() {
    let authority = Authority::start().await;
    for (kind, signed) in [(FaultKind::Stall, 0), (FaultKind::CommitThenStall, 1)] {
        authority.fault(FaultOrder::new(kind).on(Operation::Sign));
        let sign = authority
            .call(Method::POST, "/invoice/sign")
            .json(&crate::support::document(IRN));
        let error = sign
            .timeout(Duration::from_millis(500))
            .send()
            .await
            .unwrap_err();
        assert!(error.is_timeout(), "{kind:?}: {error:?}");
        assert_eq!(authority.sheet(IRN).sign_count, signed, "{kind:?}");
    }
    assert_eq!(authority.sign(IRN).await.0, 400, "it is signed already");
}

#[actix_rt::test]
async fn a_wrong_key_is_told_as_a_400_where_a_key_is_asked_for() {
    let authority = Authority::start().await;
    authority.fault(FaultOrder::new(FaultKind::WrongKey).times(2));
    assert_eq!(
        authority.get("/invoice/transmit/self-health-check").await.0,
        200
    );
    for _ in 0..2 {
        let (status, body) = authority.sign(IRN).await;
        assert_eq!(
            (status, &body["message"]),
            (400, &json!("unable to validate api key"))
        );
    }
    assert_eq!(authority.sheet(IRN).sign_count, 0);
    assert_eq!(authority.sign(IRN).await.0, 201);
}

#[actix_rt::test]
async fn a_prevented_call_has_no_effect() {
    let authority = Authority::start().await;
    authority.fault(FaultOrder::new(FaultKind::ServerError).on(Operation::Sign));
    let (status, body) = authority.sign(IRN).await;
    assert_eq!(
        (status, &body["error"]),
        (500, &json!("internal server error"))
    );
    authority.fault(FaultOrder {
        retry_after_s: Some(7),
        ..FaultOrder::new(FaultKind::Throttled)
    });
    let response = authority.try_sign(IRN).await.unwrap();
    assert_eq!(
        (
            response.status().as_u16(),
            response.headers()["retry-after"].as_bytes()
        ),
        (429, &b"7"[..])
    );
    authority.fault(FaultOrder::new(FaultKind::Busy));
    let (status, body) = authority.sign(IRN).await;
    assert_eq!((status, &body["message"]), (400, &json!(AMBIGUOUS)));
    authority.fault(FaultOrder {
        status: Some(422),
        ..FaultOrder::new(FaultKind::Busy)
    });
    assert_eq!(authority.sign(IRN).await.0, 422);
    let sheet = authority.sheet(IRN);
    assert_eq!((sheet.signed, sheet.sign_attempts), (false, 4));
    assert_eq!(authority.sign(IRN).await.0, 201);
}

#[actix_rt::test]
async fn an_unreadable_answer_keeps_its_status_and_its_effect() {
    let authority = Authority::start().await;
    let kinds = [FaultKind::Garbage, FaultKind::Xml, FaultKind::MissingFields];
    for (number, kind) in kinds.into_iter().enumerate() {
        let irn = format!("INV{number}-94AD90FB-20261121");
        authority.fault(FaultOrder::new(kind).on(Operation::Sign));
        let response = authority.try_sign(&irn).await.unwrap();
        assert_eq!(response.status(), 201, "{kind:?}");
        let text = response.text().await.unwrap();
        let data = strict_json::from_trusted::<Value>(&text)
            .ok()
            .and_then(|body| body.get("data").cloned());
        assert_eq!(data, None, "{kind:?}");
        assert_eq!(authority.sheet(&irn).sign_count, 1, "{kind:?}");
    }
}

#[actix_rt::test]
async fn an_access_point_that_is_offline_shows_in_lookup_and_refuses_transmission() {
    let authority = Authority::start().await;
    authority.sign(IRN).await;
    authority.fault(FaultOrder::new(FaultKind::AccessPointOffline));
    let (_, body) = authority
        .get(&format!("/invoice/transmit/lookup/{IRN}"))
        .await;
    assert_eq!(body["data"]["customer"]["online"], false);
    assert_eq!(body["data"]["supplier"]["online"], true);
    assert_eq!(
        authority
            .post(&format!("/invoice/transmit/{IRN}"), &json!({}))
            .await
            .0,
        400
    );
    authority.sandbox.state().clear_faults();
    assert_eq!(
        authority
            .post(&format!("/invoice/transmit/{IRN}"), &json!({}))
            .await
            .0,
        200
    );
    assert_eq!(authority.sheet(IRN).transmit_count, 1);
}

#[actix_rt::test]
async fn health_goes_down_without_an_error_status() {
    let authority = Authority::start().await;
    authority.fault(FaultOrder::new(FaultKind::HealthDown));
    for _ in 0..2 {
        let (status, body) = authority.get("/invoice/transmit/self-health-check").await;
        assert_eq!((status, &body["data"]["ok"]), (200, &json!(false)));
    }
}

#[actix_rt::test]
async fn an_outage_ends_after_its_seconds() {
    let authority = Authority::start().await;
    authority.fault(FaultOrder {
        for_s: Some(1),
        ..FaultOrder::new(FaultKind::Outage)
    });
    let ended = Instant::now() + Duration::from_millis(1100);
    assert_eq!(authority.sign(IRN).await.0, 503);
    let root = authority.bare(Method::GET, "/api").send().await.unwrap();
    assert_eq!(read(root).await.0, 503);
    tokio::time::sleep_until(ended.into()).await;
    assert_eq!(authority.sign(IRN).await.0, 201);
}

#[actix_rt::test]
async fn a_fault_keeps_to_its_operation_its_invoice_and_its_times() {
    let authority = Authority::start().await;
    let other = "INV002-94AD90FB-20261121";
    let order = FaultOrder::new(FaultKind::ServerError)
        .on(Operation::Confirm)
        .times(2);
    authority.fault(FaultOrder {
        irn: Some(IRN.into()),
        ..order
    });
    assert_eq!(authority.sign(IRN).await.0, 201);
    assert_eq!(
        authority.get(&format!("/invoice/confirm/{other}")).await.0,
        404
    );
    let path = format!("/invoice/confirm/{IRN}");
    let statuses = [
        authority.get(&path).await.0,
        authority.get(&path).await.0,
        authority.get(&path).await.0,
    ];
    assert_eq!(statuses, [500, 500, 200]);
}

/// Confirms each of twenty invoices three times. Returns for each invoice the statuses of its three answers.
async fn failures(seed: u64, backwards: bool) -> Vec<Vec<u16>> {
    let authority = Authority::start().await;
    authority.sandbox.state().set_seed(seed);
    let half = strict_json::from_trusted("0.5").unwrap();
    authority.fault(FaultOrder {
        probability: Some(half),
        ..FaultOrder::new(FaultKind::ServerError)
    });
    let mut rows = vec![Vec::new(); 20];
    for _ in 0..3 {
        let order: Vec<usize> = if backwards {
            (0..20).rev().collect()
        } else {
            (0..20).collect()
        };
        for number in order {
            let irn = format!("INV{number}-94AD90FB-20261121");
            rows[number].push(authority.get(&format!("/invoice/confirm/{irn}")).await.0);
        }
    }
    rows
}

#[actix_rt::test]
async fn the_same_seed_draws_the_same_faults_in_whatever_order_calls_come() {
    let drawn = failures(7, false).await;
    assert_eq!(drawn, failures(7, true).await);
    assert_ne!(drawn, failures(8, false).await);
    let failed = drawn
        .iter()
        .flatten()
        .filter(|status| **status == 500)
        .count();
    assert!((15..=45).contains(&failed), "{failed} of 60");
}
