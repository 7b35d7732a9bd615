//! Faults typed into an invoice number.

use std::time::{Duration, Instant};

use reqwest::Method;
use sandbox::MAGIC_WORDS;
use serde_json::json;

use crate::support::{Authority, document};

/// The timeout of a call, short because some replies never come.
const IMPATIENT: Duration = Duration::from_millis(500);

fn irn(word: &str) -> String {
    format!("INV7SBX{word}-94AD90FB-20260115")
}

/// Returns the results of three signatures: a status, 0 for a broken connection, 1 for a timeout.
async fn signs(authority: &Authority, word: &str) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let sign = authority
            .call(Method::POST, "/invoice/sign")
            .json(&document(&irn(word)));
        let answer = sign.timeout(IMPATIENT).send().await;
        statuses.push(match answer {
            Ok(response) => response.status().as_u16(),
            Err(error) => u16::from(error.is_timeout()),
        });
    }
    statuses
}

async fn is_healthy(authority: &Authority) -> bool {
    authority.get("/invoice/transmit/self-health-check").await.1["data"]["ok"] == true
}

#[test]
fn the_readme_tells_every_word_and_what_happens() {
    let readme = include_str!("../../README.md");
    let told: Vec<_> = readme
        .lines()
        .filter(|line| line.starts_with("| SBX"))
        .collect();
    let rows: Vec<_> = MAGIC_WORDS
        .iter()
        .map(|known| format!("| {} | {} |", known.word, known.happens))
        .collect();
    assert_eq!(told, rows);
}

#[actix_rt::test]
async fn a_word_in_the_number_brings_a_fault_that_passes() {
    let authority = Authority::start().await;
    let expected = [
        ("DROP", [0, 400, 400]),
        ("STALL", [1, 400, 400]),
        ("HANG", [1, 201, 400]),
        ("RESET", [0, 201, 400]),
        ("GARBAGE", [201, 400, 400]),
        ("XML", [201, 400, 400]),
        ("MISSING", [201, 400, 400]),
        ("500", [500, 500, 201]),
        ("429", [429, 429, 201]),
        ("BUSY", [400, 400, 201]),
        ("BUSY422", [422, 422, 201]),
        ("KEY", [400, 400, 201]),
    ];
    for (word, statuses) in expected {
        assert_eq!(signs(&authority, word).await, statuses, "{word}");
        assert_eq!(authority.sheet(&irn(word)).sign_count, 1, "{word}");
    }
}

#[actix_rt::test]
async fn down_and_reject_never_pass() {
    let authority = Authority::start().await;
    assert_eq!(signs(&authority, "DOWN").await, [500, 500, 500]);
    assert_eq!(signs(&authority, "REJECT").await, [400, 400, 400]);
    let (_, body) = authority
        .post("/invoice/validate", &document(&irn("reject9")))
        .await;
    assert_eq!(
        body["error"]["details"],
        "invoicerequest.invoice.invoiceline[0].hsncode must be a known code"
    );
}

#[actix_rt::test]
async fn offline_is_signed_and_not_transmitted() {
    let authority = Authority::start().await;
    let irn = irn("OFFLINE");
    assert_eq!(authority.sign(&irn).await.0, 201);
    let (_, body) = authority
        .get(&format!("/invoice/transmit/lookup/{irn}"))
        .await;
    assert_eq!(body["data"]["customer"]["online"], false);
    assert_eq!(
        authority
            .post(&format!("/invoice/transmit/{irn}"), &json!({}))
            .await
            .0,
        400
    );
}

#[actix_rt::test]
async fn slow_is_three_seconds_late() {
    let authority = Authority::start().await;
    let started = std::time::Instant::now();
    assert_eq!(authority.sign(&irn("SLOW")).await.0, 201);
    assert!(started.elapsed().as_millis() >= 1500);
}

#[actix_rt::test]
async fn away_comes_back_at_the_third_lookup() {
    let authority = Authority::start().await;
    let irn = irn("AWAY");
    assert_eq!(authority.sign(&irn).await.0, 201);
    for online in [false, false, true] {
        let (_, body) = authority
            .get(&format!("/invoice/transmit/lookup/{irn}"))
            .await;
        assert_eq!(body["data"]["customer"]["online"], online);
    }
    assert_eq!(
        authority
            .post(&format!("/invoice/transmit/{irn}"), &json!({}))
            .await
            .0,
        200
    );
}

#[actix_rt::test]
async fn an_outage_can_be_typed_with_its_seconds() {
    let authority = Authority::start().await;
    let ends = Instant::now() + Duration::from_secs(1);
    assert_eq!(authority.sign(&irn("OUTAGE1")).await.0, 503);
    assert_eq!(
        authority.sign(&irn("FREE")).await.0,
        503,
        "it is out for everybody"
    );
    tokio::time::sleep_until((ends + Duration::from_millis(100)).into()).await;
    // Only the first `sign` of an invoice starts the outage, so now the invoice is signed.
    assert_eq!(authority.sign(&irn("OUTAGE1")).await.0, 201);
}

#[actix_rt::test]
async fn a_system_that_is_down_can_be_typed_with_its_seconds() {
    let authority = Authority::start().await;
    assert!(is_healthy(&authority).await);
    let ends = Instant::now() + Duration::from_secs(1);
    assert_eq!(authority.sign(&irn("HEALTH1")).await.0, 201);
    assert!(!is_healthy(&authority).await);
    tokio::time::sleep_until((ends + Duration::from_millis(100)).into()).await;
    assert!(is_healthy(&authority).await);
}
