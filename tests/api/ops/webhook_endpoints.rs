//! GET /ops/webhooks/endpoints: endpoints of all taxpayers by their health.

use serde_json::{Value, json};
use testkit::receiver::Receiver;
use testkit::{each_database, on_sqlite};

use crate::ops::dead_letters::with_a_dead_letter;
use crate::support::world::World;

#[each_database]
async fn an_endpoint_that_fails_is_listed_with_its_failure_and_its_dead_letters(world: &World) {
    let operator = world.new_operator().await;
    let receiver = Receiver::start();
    let taxpayer = with_a_dead_letter(world, &receiver).await;
    let listed = async |query: &str| {
        let path = format!("/ops/webhooks/endpoints?taxpayer_id={}{query}", taxpayer.id);
        operator.get(&path).await.expect_status(200).data().clone()
    };
    let page = listed("").await;
    let endpoint = &page["data"][0];
    let fields: Vec<_> = endpoint
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "dead",
        "disabled_reason",
        "endpoint_id",
        "failures",
        "health",
        "last_failure",
        "last_failure_at",
        "last_status",
        "parked_until",
        "pending",
        "since",
        "taxpayer_id",
        "url",
    ];
    assert_eq!(fields, expected);
    let facts = [
        "health",
        "failures",
        "last_failure",
        "dead",
        "pending",
        "disabled_reason",
    ];
    let expected = [
        json!("failing"),
        json!(4),
        json!("rejected"),
        json!(1),
        json!(0),
        Value::Null,
    ];
    assert_eq!(facts.map(|fact| endpoint[fact].clone()), expected);
    assert!(
        endpoint["since"].is_string() && endpoint["last_failure_at"].is_string(),
        "{endpoint}"
    );
    assert_eq!(listed("&health=failing").await["total"], json!(1));
    assert_eq!(listed("&health=parked").await["total"], json!(0));
    let all = operator
        .get("/ops/webhooks/endpoints?health=failing&per_page=1")
        .await
        .expect_status(200);
    assert!(all.data()["total"].as_i64().unwrap() >= 1);
    operator
        .get("/ops/webhooks/endpoints?health=ill")
        .await
        .expect_faults(&["health"]);
}

#[on_sqlite]
async fn the_url_of_an_endpoint_is_shown_without_its_query(world: &World) {
    let operator = world.new_operator().await;
    let receiver = Receiver::start();
    let taxpayer = world.taxpayer().await;
    let url = format!("{}/?token=secret", receiver.url().trim_end_matches('/'));
    world
        .integrator()
        .set_webhook(taxpayer.id, &url, &["invoice.created"])
        .await
        .expect_status(200);
    let path = format!(
        "/ops/webhooks/endpoints?taxpayer_id={}&health=working",
        taxpayer.id
    );
    let answer = operator.get(&path).await.expect_status(200);
    assert_eq!(answer.data()["total"], json!(1));
    assert!(!answer.text.contains("secret"), "{}", answer.text);
}
