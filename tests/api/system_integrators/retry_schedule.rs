//! `retry_schedule_s` of /v1/system-integrators/taxpayers/{id}/webhook: when the attempts at a delivery are made.

use serde_json::{Value, json};
use testkit::documents;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::roles::{Integrator, Taxpayer, webhook};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const CREATED: &str = "invoice.created";
const URL: &str = "http://127.0.0.1:9/notifications";

/// The attempts at the delivery of a new invoice's event, once all of them were made.
async fn attempts(taxpayer: &Taxpayer, integrator: &Integrator) -> usize {
    taxpayer.invoice(&documents::invoice()).await;
    let dead = async || {
        let log = integrator
            .deliveries(taxpayer.id, "?per_page=1")
            .await
            .expect_status(200);
        let newest = log.data()["data"][0].clone();
        (newest["state"] == json!("dead")).then_some(newest)
    };
    let newest = eventually("a dead letter", dead).await;
    newest["attempts"].as_array().unwrap().len()
}

#[each_database]
async fn an_endpoint_is_tried_by_its_own_schedule_until_it_has_the_deployments_again(
    world: &World,
) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    receiver.answer_always(Reply::Status(500));
    let path = webhook(taxpayer.id);
    for (schedule, made) in [(json!([0, 0]), 2), (json!([0]), 1), (Value::Null, 4)] {
        let body = json!({
            "webhook_url": receiver.url(), "enabled_events": [CREATED], "retry_schedule_s": schedule,
        });
        let answer = integrator
            .send("PUT", &path, &body)
            .await
            .expect_status(200);
        assert_eq!(
            (
                &answer.data()["retry_schedule_s"],
                answer.warnings().as_str()
            ),
            (&schedule, "")
        );
        assert_eq!(attempts(&taxpayer, &integrator).await, made, "{schedule}");
    }
}

#[on_sqlite]
async fn a_schedule_that_is_left_out_stays(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let path = webhook(taxpayer.id);
    let first = json!({ "webhook_url": URL, "retry_schedule_s": [0, 60, 2_678_400] });
    integrator
        .send("POST", &path, &first)
        .await
        .expect_status(200);
    let answer = integrator
        .set_webhook(taxpayer.id, URL, &[CREATED])
        .await
        .expect_status(200);
    assert_eq!(answer.data()["retry_schedule_s"], first["retry_schedule_s"]);
    let read = integrator.webhook(taxpayer.id).await.expect_status(200);
    assert_eq!(read.data()["retry_schedule_s"], first["retry_schedule_s"]);
    let enabled = integrator
        .enable_webhook(taxpayer.id, "none")
        .await
        .expect_status(200);
    assert_eq!(
        enabled.data()["retry_schedule_s"],
        first["retry_schedule_s"]
    );
}
