//! The networks that an operator opens to one taxpayer's ERP.

use serde_json::{Value, json};
use testkit::documents;
use testkit::on_sqlite;
use testkit::patience::eventually;
use testkit::roles::Operator;

use crate::support::erp::{Erp, Gate};
use crate::support::world::{ALONE, World};

const CREATED: &[&str] = &["invoice.created"];

async fn set(operator: &Operator, taxpayer: i64, networks: Value) -> testkit::answer::Answer {
    let body = json!({ "auth_type": "none", "data_format": "rest", "allowed_networks": networks });
    operator
        .send(
            "PUT",
            &format!("/ops/taxpayers/{taxpayer}/integration"),
            &body,
        )
        .await
}

#[on_sqlite(&[("WEBHOOKS__ALLOWED_NETWORKS", "[]")])]
async fn a_network_is_open_to_its_taxpayer_at_its_port(world: &World) {
    let operator = world.new_operator().await;
    let integrator = world.integrator();
    let one = world.taxpayer().await;
    let other = world.taxpayer().await;
    let erp = Erp::start(Gate::Open);
    let beside = Erp::start(Gate::Open);
    let network = format!("127.0.0.0/8:{}", erp.port());
    integrator
        .set_webhook(one.id, &erp.url(), CREATED)
        .await
        .expect_faults(&["webhook_url"]);

    let shown = set(&operator, one.id, json!([network]))
        .await
        .expect_status(200);
    assert_eq!(shown.data()["allowed_networks"], json!([network]));
    integrator
        .set_webhook(one.id, &erp.url(), CREATED)
        .await
        .expect_status(200);
    integrator.test_webhook(one.id).await.expect_status(200);
    one.invoice(&documents::invoice()).await;
    eventually("a notification", async || {
        (erp.accepted().len() == 2).then_some(())
    })
    .await;

    // Neither to another port nor to another taxpayer, though a connection is open.
    integrator
        .set_webhook(one.id, &beside.url(), CREATED)
        .await
        .expect_faults(&["webhook_url"]);
    integrator
        .set_webhook(other.id, &erp.url(), CREATED)
        .await
        .expect_faults(&["webhook_url"]);
    integrator
        .set_webhook(other.id, "https://hooks.example.com/", CREATED)
        .await
        .expect_status(200);
    world.plant_webhook_url(other.id, &erp.url()).await;
    integrator
        .test_webhook(other.id)
        .await
        .expect_refusal(502, "WEBHOOK_UNREACHABLE");
    world.plant_webhook_url(one.id, &beside.url()).await;
    integrator
        .test_webhook(one.id)
        .await
        .expect_refusal(502, "WEBHOOK_UNREACHABLE");
    assert_eq!((erp.accepted().len(), beside.accepted().len()), (2, 0));

    // Each change is in the audit; what is left out is closed.
    world.plant_webhook_url(one.id, &erp.url()).await;
    integrator.test_webhook(one.id).await.expect_status(200);
    set(&operator, one.id, Value::Null).await.expect_status(200);
    integrator
        .test_webhook(one.id)
        .await
        .expect_refusal(502, "WEBHOOK_UNREACHABLE");
    let audit = operator
        .audit(&format!("?actor=operator&taxpayer_id={}", one.id))
        .await
        .expect_status(200);
    let entry = &audit.data()["data"][0];
    let closed = (
        "none, rest, no system named",
        format!("none, rest, no system named, in {network}"),
    );
    assert_eq!(
        (&entry["to_state"], &entry["from_state"]),
        (&json!(closed.0), &json!(closed.1))
    );
}

#[on_sqlite(&[("WEBHOOKS__ALLOWED_NETWORKS", "[]")])]
async fn a_token_endpoint_may_be_in_the_networks_of_its_taxpayer(world: &World) {
    let operator = world.new_operator().await;
    let taxpayer = world.taxpayer().await;
    let erp = Erp::start(Gate::Token);
    let client = json!({ "token_url": erp.token_url(), "client_id": "c1", "client_secret": "s1" });
    let mut body =
        json!({ "auth_type": "client_credentials", "data_format": "rest", "auth": client });
    let path = format!("/ops/taxpayers/{}/integration", taxpayer.id);
    body["origin"] = json!(erp.url().trim_end_matches("/erp"));
    operator
        .send("PUT", &path, &body)
        .await
        .expect_faults(&["auth.token_url", "origin"]);
    body["allowed_networks"] = json!(["127.0.0.1/32"]);
    operator.send("PUT", &path, &body).await.expect_status(200);
    let integrator = world.integrator();
    integrator
        .set_webhook(taxpayer.id, &erp.url(), CREATED)
        .await
        .expect_status(200);
    let answer = integrator
        .test_webhook(taxpayer.id)
        .await
        .expect_status(200);
    assert_eq!(
        answer.message(),
        "Connection test successful! Response code: 204"
    );
}

#[on_sqlite(ALONE)]
async fn metadata_and_link_local_networks_are_refused(world: &World) {
    let operator = world.new_operator().await;
    let taxpayer = world.newcomer().await;
    let networks = json!(["10.1.2.0/24:8443", "169.254.169.254/32:80", "fe80::/10"]);
    let answer = set(&operator, taxpayer.id, networks).await;
    answer.expect_faults(&["allowed_networks.1", "allowed_networks.2"]);
    // A wider network is taken, and metadata in it is closed all the same.
    set(&operator, taxpayer.id, json!(["100.64.0.0/10", "fd00::/8"]))
        .await
        .expect_status(200);
    let integrator = world.integrator();
    for url in [
        "http://100.100.100.200/latest",
        "http://[fd00:ec2::254]/latest",
    ] {
        integrator
            .set_webhook(taxpayer.id, url, CREATED)
            .await
            .expect_faults(&["webhook_url"]);
    }
}
