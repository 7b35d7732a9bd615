//! GET /v1/system-integrators/taxpayers/{id}/webhook/deliveries.

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::roles::{Integrator, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const CREATED: &str = "invoice.created";
const UPDATED: &str = "invoice.status-updated";

/// A taxpayer with a delivered event, a dead letter and two newer events that were delivered.
pub(super) async fn with_a_log(world: &World) -> (Taxpayer, Integrator, Receiver, [Value; 2]) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[CREATED, UPDATED])
        .await
        .expect_status(200);
    let first = taxpayer.invoice(&documents::invoice()).await;
    receiver.wait_for(1).await;
    receiver.answer_next(&[Reply::Text(500, "no\u{0}pe"); 4]);
    let second = taxpayer.invoice(&documents::invoice()).await;
    receiver.wait_for(5).await;
    for invoice in [&first, &second] {
        taxpayer
            .set_status(invoice, "approved")
            .await
            .expect_status(200);
    }
    let ended = async || {
        let open = integrator
            .deliveries(taxpayer.id, "?state=pending")
            .await
            .expect_status(200);
        (open.data()["total"] == json!(0)).then_some(())
    };
    eventually("the end of all deliveries", ended).await;
    (taxpayer, integrator, receiver, [first, second])
}

fn items(answer: &Answer) -> &Vec<Value> {
    answer.data()["data"].as_array().unwrap()
}

fn types(answer: &Answer) -> Vec<&str> {
    items(answer)
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect()
}

#[each_database]
async fn the_log_shows_each_delivery_with_its_attempts(world: &World) {
    let (taxpayer, integrator, receiver, [first, second]) = with_a_log(world).await;
    let answer = integrator
        .deliveries(taxpayer.id, "")
        .await
        .expect_status(200);
    assert_eq!(types(&answer), [UPDATED, UPDATED, CREATED, CREATED]);
    let dead = &items(&answer)[2];
    let delivered = &items(&answer)[3];
    let fields: Vec<_> = dead
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        fields,
        [
            "attempts",
            "event_id",
            "id",
            "irn",
            "next_attempt_at",
            "state",
            "type"
        ]
    );
    assert_eq!(
        (&dead["irn"], &dead["state"]),
        (&second["irn"], &json!("dead"))
    );
    assert_eq!(
        (&delivered["irn"], &delivered["state"]),
        (&first["irn"], &json!("delivered"))
    );
    assert_eq!(
        (&dead["next_attempt_at"], &delivered["next_attempt_at"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        delivered["event_id"],
        json!(receiver.received_notifications()[0].id)
    );
    let attempts = dead["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 4);
    for attempt in attempts {
        let fields: Vec<_> = attempt
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            fields,
            [
                "at",
                "duration_ms",
                "failure",
                "phases",
                "response",
                "status"
            ]
        );
        assert_eq!(
            (&attempt["status"], &attempt["failure"]),
            (&json!(500), &json!("rejected"))
        );
        assert_eq!(attempt["response"], json!("no\u{fffd}pe"));
        let phases = attempt["phases"].as_object().unwrap();
        let names: Vec<_> = phases.keys().map(String::as_str).collect();
        assert_eq!(names, ["connect_ms", "dns_ms", "read_ms", "wait_ms"]);
        let sum: i64 = phases.values().filter_map(Value::as_i64).sum();
        assert!(sum <= attempt["duration_ms"].as_i64().unwrap(), "{attempt}");
        assert_eq!(phases["dns_ms"], Value::Null, "an address has no name");
        assert!(
            phases["wait_ms"].is_i64() && phases["read_ms"].is_i64(),
            "{attempt}"
        );
    }
    assert_eq!(delivered["attempts"][0]["status"], json!(204));
    assert_eq!(delivered["attempts"][0]["failure"], Value::Null);
}

/// The value of a header of an attempt; null if it has no such header.
fn header<'a>(attempt: &'a Value, side: &str, name: &str) -> &'a Value {
    let headers = attempt[side].as_array().unwrap();
    let found = headers.iter().find(|header| header["name"] == name);
    found.map_or(&Value::Null, |header| &header["value"])
}

#[each_database]
async fn an_attempt_shows_the_headers_that_went_and_came_without_secrets(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[CREATED])
        .await
        .expect_status(200);
    receiver.answer_next(&[Reply::RetryAfter(503, 0)]);
    taxpayer.invoice(&documents::invoice()).await;
    let notifications = receiver.wait_for(2).await;
    let webhook = format!("/v1/system-integrators/taxpayers/{}/webhook", taxpayer.id);
    let attempts = async || {
        let log = integrator
            .deliveries(taxpayer.id, "")
            .await
            .expect_status(200);
        let id = items(&log)[0]["id"].as_str().unwrap().to_owned();
        let path = format!("{webhook}/deliveries/{id}/attempts");
        let attempts = integrator.get(&path).await.expect_status(200);
        let attempts = attempts.data().as_array().unwrap().clone();
        (attempts.len() == 2).then_some(attempts)
    };
    let attempts = eventually("both attempts", attempts).await;
    for (attempt, sent) in attempts.iter().zip(&notifications) {
        for name in [
            "webhook-id",
            "webhook-timestamp",
            "traceparent",
            "content-type",
        ] {
            assert_eq!(header(attempt, "request_headers", name), sent.header(name));
        }
        let signature = sent.header("webhook-signature");
        let start: String = signature.chars().take(11).collect();
        let logged = header(attempt, "request_headers", "webhook-signature");
        assert_eq!(logged, &json!(format!("{start}… (hidden)")));
    }
    assert_eq!(header(&attempts[0], "response_headers", "retry-after"), "0");
    assert_eq!(
        (&attempts[0]["status"], &attempts[1]["status"]),
        (&json!(503), &json!(204))
    );
    let unknown = format!("{webhook}/deliveries/{}/attempts", uuid::Uuid::nil());
    integrator
        .get(&unknown)
        .await
        .expect_refusal(404, "DELIVERY_NOT_FOUND");
}

#[each_database]
async fn a_filter_by_state_event_or_place_shows_what_it_says(world: &World) {
    let (taxpayer, integrator, _, [first, _]) = with_a_log(world).await;
    let irn = first["irn"].as_str().unwrap();
    let (number, rest) = irn
        .rsplit_once('-')
        .and_then(|(head, _)| head.rsplit_once('-'))
        .unwrap();
    let lower = irn.replace(rest, &rest.to_lowercase());
    assert!(!number.is_empty());
    let event_id = taxpayer.events().await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let list = async |query: String| {
        integrator
            .deliveries(taxpayer.id, &query)
            .await
            .expect_status(200)
    };
    let count = async |query: String| list(query).await.data()["total"].as_i64().unwrap();
    let events = taxpayer.events().await;
    let newest = events.last().unwrap();
    let stamp = newest["timestamp"].as_str().unwrap();
    for (query, expected) in [
        ("?state=dead".into(), 1),
        ("?state=DELIVERED".into(), 3),
        ("?state=pending".into(), 0),
        ("?state=".into(), 4),
        (format!("?event={CREATED}"), 2),
        (format!("?event={CREATED}&state=dead"), 1),
        (format!("?event={}", CREATED.to_uppercase()), 2),
        ("?event=invoice.exploded".into(), 0),
        ("?event=%00".into(), 0),
        ("?event='%20OR%201=1--".into(), 0),
        ("?since=0".into(), 4),
        (format!("?since={}", newest["sequence"]), 1),
        (format!("?since={stamp}"), 1),
        ("?since=2000-01-01T00:00:00Z".into(), 4),
        ("?since=2000-01-01T00:00:00+01:00".into(), 4),
        ("?since=2999-01-01T00:00:00Z".into(), 0),
        (format!("?since={}", i64::MAX), 0),
        (format!("?irn={irn}"), 2),
        (format!("?irn={lower}"), 2),
        (format!("?irn={irn}&event={UPDATED}"), 1),
        (format!("?irn={irn}&state=dead"), 0),
        (format!("?irn={event_id}"), 0),
        ("?irn=".into(), 4),
        ("?irn=%00".into(), 0),
        ("?irn='%20OR%201=1--".into(), 0),
    ] {
        assert_eq!(count(query.clone()).await, expected, "{query}");
    }
}

#[each_database]
async fn an_irn_is_found_by_any_of_its_spellings_however_it_was_sent(world: &World) {
    let receiver = Receiver::start();
    let integrator = world.integrator();
    let taxpayer = world.taxpayer().await;
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[CREATED])
        .await
        .expect_status(200);
    let service = &taxpayer.registration.service_id;
    let mut halved = service.to_lowercase();
    halved[..4].make_ascii_uppercase();
    for sent in [
        service.to_lowercase(),
        halved.clone(),
        service.to_uppercase(),
    ] {
        let mut body = documents::full_invoice(&taxpayer);
        let irn = body["irn"].as_str().unwrap().to_owned();
        body["irn"] = json!(irn.replace(service, &sent));
        taxpayer.new_full_invoice(&body).await;
        for asked in [
            service.to_lowercase(),
            halved.clone(),
            service.to_uppercase(),
        ] {
            let query = format!("?irn={}", irn.replace(service, &asked));
            let found = integrator
                .deliveries(taxpayer.id, &query)
                .await
                .expect_status(200);
            assert_eq!(found.data()["total"], json!(1), "{sent} by {asked}");
        }
    }
}

#[on_sqlite]
async fn a_filter_that_is_no_word_or_place_is_refused(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let odd = integrator
        .deliveries(taxpayer.id, "?since=2026-01-15&state=lost")
        .await;
    odd.expect_faults(&["since", "state"]);
}

#[each_database]
async fn the_log_is_paginated(world: &World) {
    let (taxpayer, integrator, _, _) = with_a_log(world).await;
    let page = integrator
        .deliveries(taxpayer.id, "?per_page=3&page=2")
        .await
        .expect_status(200);
    let numbers =
        ["current_page", "total", "per_page", "last_page"].map(|name| page.data()[name].clone());
    assert_eq!(
        (numbers, items(&page).len()),
        ([json!(2), json!(4), json!(3), json!(2)], 1)
    );
    for (query, used) in [("", 15), ("?per_page=0", 15), ("?per_page=101", 100)] {
        let answer = integrator
            .deliveries(taxpayer.id, query)
            .await
            .expect_status(200);
        assert_eq!(answer.data()["per_page"], json!(used), "{query}");
    }
    let far = integrator
        .deliveries(taxpayer.id, "?page=4294967295&per_page=100")
        .await
        .expect_status(200);
    assert_eq!(items(&far).len(), 0);
}

#[on_sqlite]
async fn the_log_is_empty_before_anything_was_sent_and_without_a_webhook(world: &World) {
    let answer = world
        .integrator()
        .deliveries(world.newcomer().await.id, "")
        .await
        .expect_status(200);
    let empty =
        json!({ "current_page": 1, "total": 0, "per_page": 15, "last_page": 1, "data": [] });
    assert_eq!(*answer.data(), empty);
}
