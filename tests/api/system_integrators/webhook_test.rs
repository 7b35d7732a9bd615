//! POST /v1/system-integrators/taxpayers/{id}/webhook/test.

use serde_json::{Value, json};
use testkit::receiver::{Receiver, Reply};
use testkit::roles::webhook;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[each_database]
async fn a_test_is_signed_and_sent_and_its_answer_is_shown(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[])
        .await
        .expect_status(200);
    let secret = integrator.rotate_secret(taxpayer.id).await;
    receiver.answer_next(&[Reply::Text(200, r#"{"ok": true, "n": 1.50}"#)]);
    let answer = integrator
        .test_webhook(taxpayer.id)
        .await
        .expect_status(200);
    assert_eq!(
        answer.message(),
        "Connection test successful! Response code: 200"
    );
    assert!(answer.text.contains(r#""n":1.50"#), "{}", answer.text);
    assert_eq!(
        (&answer.data()["ok"], &answer.body["success"]),
        (&json!(true), &json!(true))
    );
    let one = receiver.received_notifications().remove(0);
    assert!(one.is_signed_with(&secret));
    let body = one.body();
    assert_eq!(
        (one.kind().as_str(), &body["id"]),
        ("webhook.test", &json!(one.id))
    );
    let fields: Vec<_> = body
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        fields,
        ["data", "id", "sequence", "taxpayer_id", "timestamp", "type"]
    );
    assert_eq!(
        (&body["sequence"], &body["taxpayer_id"]),
        (&json!(0), &json!(taxpayer.id))
    );
}

#[on_sqlite]
async fn any_answer_of_the_endpoint_is_a_success_that_names_its_code(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[])
        .await
        .expect_status(200);
    for (reply, code, data) in [
        (Reply::Status(204), 204, Value::Null),
        (Reply::Text(202, "thanks"), 202, json!("thanks")),
        (Reply::Text(302, "elsewhere"), 302, json!("elsewhere")),
        (
            Reply::Text(404, r#"["no such hook"]"#),
            404,
            json!(["no such hook"]),
        ),
        (Reply::Text(410, "gone"), 410, json!("gone")),
        (
            Reply::Text(500, r#"{"broken": "#),
            500,
            json!(r#"{"broken": "#),
        ),
    ] {
        receiver.answer_next(&[reply]);
        let answer = integrator
            .test_webhook(taxpayer.id)
            .await
            .expect_status(200);
        assert_eq!(
            answer.message(),
            format!("Connection test successful! Response code: {code}")
        );
        assert_eq!(*answer.data(), data, "{code}");
    }
    let record = integrator.webhook(taxpayer.id).await.expect_status(200);
    assert_eq!(
        record.data()["is_active"],
        json!(true),
        "a test takes nothing out of service"
    );
}

#[on_sqlite]
async fn sixteen_kibibytes_of_an_answer_are_shown(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[])
        .await
        .expect_status(200);
    let long: &'static str = "é".repeat(100 * 1_024).leak();
    receiver.answer_next(&[Reply::Text(200, long)]);
    let answer = integrator
        .test_webhook(taxpayer.id)
        .await
        .expect_status(200);
    assert_eq!(answer.data().as_str().unwrap().len(), 16 * 1_024);
}

#[on_sqlite]
async fn no_answer_is_a_bad_gateway(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    for url in ["http://127.0.0.1:9/", "http://localhost:9/"] {
        integrator
            .set_webhook(taxpayer.id, url, &[])
            .await
            .expect_status(200);
        let answer = integrator.test_webhook(taxpayer.id).await;
        let answer = answer.expect_refusal(502, "WEBHOOK_UNREACHABLE");
        assert_eq!(
            answer.message(),
            "No connection to the endpoint could be made"
        );
    }
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[])
        .await
        .expect_status(200);
    receiver.answer_next(&[Reply::Slow]);
    let answer = integrator
        .test_webhook(taxpayer.id)
        .await
        .expect_refusal(502, "WEBHOOK_UNREACHABLE");
    assert_eq!(answer.message(), "The endpoint did not answer in time");
}

#[on_sqlite]
async fn get_tests_too_and_other_methods_do_not(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[])
        .await
        .expect_status(200);
    let path = format!("{}/test", webhook(taxpayer.id));
    integrator.get(&path).await.expect_status(200);
    integrator
        .call("PUT", &path)
        .await
        .expect_refusal(405, "METHOD_NOT_ALLOWED");
    assert_eq!(receiver.received_notifications().len(), 1);
}

#[on_sqlite]
async fn a_test_is_no_event_and_no_delivery(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &["webhook.test"])
        .await
        .expect_status(200);
    let before = taxpayer.events().await.len();
    integrator
        .test_webhook(taxpayer.id)
        .await
        .expect_status(200);
    assert_eq!(taxpayer.events().await.len(), before);
    let log = integrator
        .deliveries(taxpayer.id, "")
        .await
        .expect_status(200);
    assert_eq!(
        (
            &log.data()["total"],
            receiver.received_notifications().len()
        ),
        (&json!(0), 1)
    );
}
