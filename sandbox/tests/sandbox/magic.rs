//! Faults typed into an invoice number.

use serde_json::json;

use crate::support::{Authority, document};

fn irn(word: &str) -> String {
    format!("INV7SBX{word}-94AD90FB-20261121")
}

/// The answers of three signs: a status, or 0 for a broken connection.
async fn signs(authority: &Authority, word: &str) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let answer = authority.try_sign(&irn(word)).await;
        statuses.push(answer.map_or(0, |response| response.status().as_u16()));
    }
    statuses
}

#[actix_rt::test]
async fn a_word_in_the_number_brings_a_fault_that_passes() {
    let authority = Authority::start().await;
    let expected = [
        ("DROP", [0, 400, 400]),
        ("RESET", [0, 201, 400]),
        ("GARBAGE", [201, 400, 400]),
        ("XML", [201, 400, 400]),
        ("MISSING", [201, 400, 400]),
        ("500", [500, 500, 201]),
        ("429", [429, 429, 201]),
        ("BUSY", [400, 400, 201]),
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
    let (_, body) = authority.post("/invoice/validate", &document(&irn("reject9"))).await;
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
    let (_, body) = authority.get(&format!("/invoice/transmit/lookup/{irn}")).await;
    assert_eq!(body["data"]["customer"]["online"], false);
    assert_eq!(authority.post(&format!("/invoice/transmit/{irn}"), &json!({})).await.0, 400);
}

#[actix_rt::test]
async fn slow_is_three_seconds_late() {
    let authority = Authority::start().await;
    let started = std::time::Instant::now();
    assert_eq!(authority.sign(&irn("SLOW")).await.0, 201);
    assert!(started.elapsed().as_millis() >= 3000);
}
