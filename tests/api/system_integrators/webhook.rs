//! /v1/system-integrators/taxpayers/{id}/webhook and its secret. What is delivered stands in `webhooks`.

use serde_json::{Value, json};
use testkit::answer::{Answer, stable_text};
use testkit::receiver::Receiver;
use testkit::roles::webhook;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const URL: &str = "http://127.0.0.1:9/notifications";

#[each_database]
async fn the_first_call_creates_an_active_record_with_no_auth_and_rest(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let answer = integrator
        .set_webhook(taxpayer.id, URL, &["invoice.created"])
        .await
        .expect_status(200);
    assert_eq!(answer.message(), "Webhook updated successfully");
    assert_eq!(answer.data()["taxpayer_id"], json!(taxpayer.id));
    let unsteady = ["/id", "/taxpayer_id", "/created_at", "/updated_at"];
    insta::assert_snapshot!(stable_text(answer.data(), &unsteady), @r#"
            {
              "auth_type": "none",
              "created_at": "…",
              "data_format": "rest",
              "disabled_reason": null,
              "enabled_events": [
                "invoice.created"
              ],
              "erp_system": null,
              "health": {
                "failing_since": null,
                "failures": 0,
                "parked_until": null,
                "state": "working"
              },
              "id": "…",
              "is_active": true,
              "public_key": null,
              "retry_schedule_s": null,
              "taxpayer_id": "…",
              "updated_at": "…",
              "webhook_url": "http://127.0.0.1:9/notifications"
            }
        "#);
    let read = integrator.webhook(taxpayer.id).await.expect_status(200);
    assert_eq!(read.data(), answer.data());
}

#[each_database]
async fn later_calls_change_the_url_and_the_events_only(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let first = integrator
        .set_webhook(taxpayer.id, URL, &["invoice.created"])
        .await
        .expect_status(200);
    let path = webhook(taxpayer.id);
    let other = json!({ "webhook_url": "http://127.0.0.1:10/" });
    let untouched = integrator
        .send("PUT", &path, &other)
        .await
        .expect_status(200);
    assert_eq!(
        untouched.data()["webhook_url"],
        json!("http://127.0.0.1:10/")
    );
    assert_eq!(
        untouched.data()["enabled_events"],
        json!(["invoice.created"])
    );
    assert_eq!(untouched.data()["id"], first.data()["id"]);
    let cleared = json!({ "webhook_url": URL, "enabled_events": [] });
    let cleared = integrator
        .send("PATCH", &path, &cleared)
        .await
        .expect_status(200);
    assert_eq!(cleared.data()["enabled_events"], json!([]));
    let posted = json!({ "webhook_url": URL, "enabled_events": ["invoice.updated"] });
    let posted = integrator
        .send("POST", &path, &posted)
        .await
        .expect_status(200);
    assert_eq!(posted.data()["enabled_events"], json!(["invoice.updated"]));
}

#[on_sqlite]
async fn an_unknown_event_is_stored_and_named_in_a_warning(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let names = ["invoice.created", "invoice.exploded"];
    let answer = integrator
        .set_webhook(taxpayer.id, URL, &names)
        .await
        .expect_status(200);
    assert_eq!(answer.data()["enabled_events"], json!(names));
    assert!(
        answer.warnings().contains("invoice.exploded"),
        "{}",
        answer.warnings()
    );
    assert!(!answer.warnings().contains("invoice.created"));
    let known = integrator
        .set_webhook(taxpayer.id, URL, &["webhook.test"])
        .await
        .expect_status(200);
    assert_eq!(known.warnings(), "");
}

#[on_sqlite]
async fn all_faults_are_reported_at_once_and_change_nothing(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    integrator
        .set_webhook(taxpayer.id, URL, &[])
        .await
        .expect_status(200);
    let before = integrator.webhook(taxpayer.id).await.expect_status(200);
    let odd = json!({
        "webhook_url": "https://10.0.0.1/", "enabled_events": ["invoice.created", 7],
        "retry_schedule_s": [0, -1],
    });
    let answer = integrator.send("PUT", &webhook(taxpayer.id), &odd).await;
    answer.expect_faults(&["enabled_events.1", "retry_schedule_s.1", "webhook_url"]);
    let after = integrator.webhook(taxpayer.id).await.expect_status(200);
    assert_eq!(after.data(), before.data());
}

#[on_sqlite]
async fn a_taxpayer_without_a_webhook_has_none_to_show_to_sign_for_or_to_test(world: &World) {
    let path = webhook(world.newcomer().await.id);
    for (method, end) in [("GET", ""), ("POST", "/secret"), ("POST", "/test")] {
        let answer = world
            .integrator()
            .call(method, &format!("{path}{end}"))
            .await;
        answer.expect_refusal(422, "WEBHOOK_NOT_CONFIGURED");
    }
}

#[each_database]
async fn a_secret_is_shown_once_and_is_not_stored_on_the_way(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    integrator
        .set_webhook(taxpayer.id, URL, &[])
        .await
        .expect_status(200);
    let path = format!("{}/secret", webhook(taxpayer.id));
    let first = integrator.call("POST", &path).await.expect_status(200);
    let second = integrator.call("POST", &path).await.expect_status(200);
    assert_eq!(first.header("cache-control"), "no-store");
    let secret = first.data()["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_"));
    assert_ne!(first.data()["secret"], second.data()["secret"]);
    assert!(
        !integrator
            .webhook(taxpayer.id)
            .await
            .text
            .contains("whsec_")
    );
}

#[each_database]
async fn of_a_key_pair_only_the_public_key_is_shown_and_it_can_be_read_again(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[])
        .await
        .expect_status(200);
    let path = format!("{}/secret", webhook(taxpayer.id));
    let asked = json!({ "type": "ed25519" });
    let answer = integrator
        .send("POST", &path, &asked)
        .await
        .expect_status(200);
    assert_eq!(answer.message(), "Webhook secret rotated successfully");
    assert_eq!(
        answer
            .data()
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        ["public_key"]
    );
    let key = answer.data()["public_key"].as_str().unwrap();
    assert!(
        key.starts_with("whpk_") && !answer.text.contains("whsk_"),
        "{}",
        answer.text
    );
    let shown = integrator.webhook(taxpayer.id).await.expect_status(200);
    assert_eq!(shown.data()["public_key"], json!(key));
    let url = json!({ "webhook_url": receiver.url() });
    let updated = integrator
        .send("PUT", &webhook(taxpayer.id), &url)
        .await
        .expect_status(200);
    assert_eq!(
        updated.data()["public_key"],
        json!(key),
        "another URL, the same key"
    );
    integrator
        .test_webhook(taxpayer.id)
        .await
        .expect_status(200);
    let one = receiver.received_notifications().remove(0);
    assert!(one.is_signed_by_key_pair(key), "{}", one.signature);

    let other = integrator.rotate_key_pair(taxpayer.id).await;
    let secret = integrator.rotate_secret(taxpayer.id).await;
    let shown = integrator.webhook(taxpayer.id).await.expect_status(200);
    assert_eq!(shown.data()["public_key"], Value::Null);
    integrator
        .test_webhook(taxpayer.id)
        .await
        .expect_status(200);
    let one = receiver.received_notifications().remove(1);
    assert!(one.is_signed_with(&secret), "{}", one.signature);
    for key in [key, &other] {
        assert!(
            one.is_signed_by_key_pair(key),
            "all of a day sign along: {}",
            one.signature
        );
    }
}

#[on_sqlite]
async fn a_secret_is_shared_unless_the_body_asks_for_a_key_pair(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    integrator
        .set_webhook(taxpayer.id, URL, &[])
        .await
        .expect_status(200);
    let path = format!("{}/secret", webhook(taxpayer.id));
    let plain = integrator
        .request("POST", &path)
        .header("content-type", "text/plain");
    let answers = [
        Answer::to(plain).await,
        integrator.send("POST", &path, &json!({})).await,
        integrator
            .send("POST", &path, &json!({ "type": "HMAC" }))
            .await,
    ];
    for answer in answers {
        let answer = answer.expect_status(200);
        assert_eq!(
            answer
                .data()
                .as_object()
                .unwrap()
                .keys()
                .collect::<Vec<_>>(),
            ["secret"]
        );
        assert!(
            answer.data()["secret"]
                .as_str()
                .unwrap()
                .starts_with("whsec_")
        );
    }
    integrator
        .send("POST", &path, &json!({ "type": "rsa" }))
        .await
        .expect_faults(&["type"]);
    integrator
        .send_text("POST", &path, "{")
        .await
        .expect_refusal(400, "MALFORMED_JSON");
    let keyed = |key: &'static str, kind: &'static str| {
        let integrator = integrator.clone();
        let path = path.clone();
        async move {
            integrator
                .send_keyed(key, "POST", &path, &json!({ "type": kind }))
                .await
        }
    };
    keyed("pair-1", "ed25519").await.expect_status(200);
    keyed("pair-1", "ed25519")
        .await
        .expect_refusal(422, "IDEMPOTENCY_KEY_REUSED");
    keyed("pair-1", "hmac")
        .await
        .expect_refusal(422, "IDEMPOTENCY_KEY_REUSED");
}

#[on_sqlite(&[("WEBHOOKS__ALLOWED_NETWORKS", "[]")])]
async fn loopback_is_refused_where_the_settings_do_not_allow_it(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    for url in [URL, "https://127.0.0.1/", "https://[::1]/"] {
        integrator
            .set_webhook(taxpayer.id, url, &[])
            .await
            .expect_faults(&["webhook_url"]);
    }
}
