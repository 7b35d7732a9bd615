//! GET /v1/system-integrators/audit, and the same entries under /ops/audit.

use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::roles::{Integrator, TAXPAYERS};

use crate::support::world::World;

const AUDIT: &str = "/v1/system-integrators/audit";

async fn entries(integrator: &Integrator, query: &str) -> Vec<Value> {
    let answer = integrator
        .get(&format!("{AUDIT}{query}"))
        .await
        .expect_status(200);
    answer.data()["data"].as_array().unwrap().clone()
}

fn actions(entries: &[Value]) -> Vec<&str> {
    entries
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect()
}

#[each_database]
async fn each_security_change_of_an_integrator_is_in_its_audit(world: &World) {
    let integrator = world.new_integrator().await;
    let created = integrator
        .create_taxpayer(&documents::taxpayer())
        .await
        .expect_status(201);
    let id = created.data()["id"].as_i64().unwrap();
    integrator
        .change_profile(id, &json!({ "city": "Lagos", "state": "Lagos" }))
        .await
        .expect_status(200);
    integrator.rotate_api_key(id).await.expect_status(200);
    let (one, other) = (
        "http://127.0.0.1:9/hook/path-token-1",
        "http://127.0.0.1:10/hook",
    );
    integrator
        .set_webhook(id, one, &["invoice.created"])
        .await
        .expect_status(200);
    integrator
        .set_webhook(id, other, &["invoice.created"])
        .await
        .expect_status(200);
    integrator
        .set_webhook(id, other, &["invoice.created"])
        .await
        .expect_status(200);
    let secret = integrator.rotate_secret(id).await;

    let all = entries(&integrator, "").await;
    let expected = [
        "webhook.rotate-secret",
        "webhook.update",
        "webhook.update",
        "taxpayer.rotate-key",
        "taxpayer.update-profile",
        "taxpayer.create",
        "integrator.create",
    ];
    assert_eq!(
        actions(&all),
        expected,
        "newest first, and nothing for a call that changed nothing"
    );
    for (index, entry) in all[..6].iter().enumerate() {
        let by = ["actor", "subject", "taxpayer_id"].map(|name| entry[name].clone());
        let subject = match index {
            0..3 => "default".to_owned(),
            _ => id.to_string(),
        };
        assert_eq!(json!(by), json!(["integrator", subject, id]), "{entry}");
    }
    assert_eq!(all[6]["actor"], "command-line");
    let states = |entry: &Value| (entry["from_state"].clone(), entry["to_state"].clone());
    let moved = (
        json!("http://127.0.0.1:9"),
        json!("http://127.0.0.1:10 (webhook_url)"),
    );
    assert_eq!(states(&all[1]), moved);
    let first = (
        Value::Null,
        json!("http://127.0.0.1:9 (webhook_url, enabled_events)"),
    );
    assert_eq!(states(&all[2]), first);
    assert_eq!(states(&all[4]), (Value::Null, json!("city, state")));
    let text = json!(all).to_string();
    for hidden in ["tpk_", "path-token", secret.as_str()] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
    let page = integrator
        .get(&format!("{AUDIT}?page=2&per_page=2"))
        .await
        .expect_status(200);
    assert_eq!(
        actions(page.data()["data"].as_array().unwrap()),
        expected[2..4]
    );
    assert_eq!(
        entries(&integrator, &format!("?taxpayer_id={id}"))
            .await
            .len(),
        6
    );
}

#[each_database]
async fn an_integrator_reads_its_own_entries_and_operators_read_all(world: &World) {
    let one = world.new_integrator().await;
    let other = world.new_integrator().await;
    let created = one
        .create_taxpayer(&documents::taxpayer())
        .await
        .expect_status(201);
    let id = created.data()["id"].as_i64().unwrap();
    assert_eq!(actions(&entries(&other, "").await), ["integrator.create"]);
    assert_eq!(
        entries(&other, &format!("?taxpayer_id={id}")).await,
        [json!(null); 0]
    );
    for list in [AUDIT, "/v1/system-integrators/requests"] {
        let odd = one.get(&format!("{list}?taxpayer_id=abc")).await;
        odd.expect_faults(&["taxpayer_id"]);
        let blank = one.get(&format!("{list}?taxpayer_id=")).await;
        blank.expect_status(200);
    }
    let operator = world.new_operator().await;
    let answer = operator
        .audit(&format!("?taxpayer_id={id}"))
        .await
        .expect_status(200);
    let entry = &answer.data()["data"][0];
    let said = ["action", "actor", "operator_id", "operator"].map(|name| entry[name].clone());
    assert_eq!(
        json!(said),
        json!(["taxpayer.create", "integrator", null, null])
    );
    let of_integrator = format!("?integrator_id={}", entry["integrator_id"]);
    let read = operator.audit(&of_integrator).await.expect_status(200);
    let read = read.data()["data"].as_array().unwrap().clone();
    assert_eq!(actions(&read), ["taxpayer.create", "integrator.create"]);
    let command_line = operator
        .audit("?actor=command-line&per_page=100")
        .await
        .expect_status(200);
    let entries_of_all = command_line.data()["data"].as_array().unwrap();
    assert!(
        actions(entries_of_all).contains(&"operator.create"),
        "{}",
        command_line.text
    );
    // What an operator does to a taxpayer is not the integrator's to read.
    let path = format!("/ops/taxpayers/{id}/integration");
    let body = json!({ "auth_type": "none", "data_format": "rest", "reason": "a secret reason" });
    operator.send("PUT", &path, &body).await.expect_status(200);
    assert_eq!(
        actions(&entries(&one, "").await),
        ["taxpayer.create", "integrator.create"]
    );
}

#[each_database]
async fn a_refused_change_leaves_no_entry(world: &World) {
    let integrator = world.new_integrator().await;
    let body = documents::taxpayer();
    let created = integrator.create_taxpayer(&body).await.expect_status(201);
    let id = created.data()["id"].as_i64().unwrap();
    let before = entries(&integrator, "").await;
    integrator.create_taxpayer(&body).await.expect_status(422);
    integrator
        .set_webhook(id, "nowhere", &[])
        .await
        .expect_status(422);
    integrator
        .call("POST", &format!("{TAXPAYERS}/{id}/webhook/secret"))
        .await
        .expect_status(422);
    integrator
        .call("POST", &format!("{TAXPAYERS}/999999999/api-key/rotate"))
        .await
        .expect_status(404);
    assert_eq!(entries(&integrator, "").await, before);
}

#[each_database]
async fn a_changed_webhook_is_an_event_without_secrets(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let url = "http://127.0.0.1:9/hook/path-token-1";
    for _ in 0..2 {
        integrator
            .set_webhook(taxpayer.id, url, &[])
            .await
            .expect_status(200);
    }
    let secret = integrator.rotate_secret(taxpayer.id).await;
    let events = taxpayer.events().await;
    let updates: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "webhook.updated")
        .collect();
    let changed: Vec<_> = updates
        .iter()
        .map(|event| event["data"]["changed"].clone())
        .collect();
    assert_eq!(changed, [json!(["webhook_url"]), json!(["secret"])]);
    for event in updates {
        assert_eq!(event["data"]["taxpayer_id"], json!(taxpayer.id));
        assert_eq!(event["data"]["webhook_origin"], "http://127.0.0.1:9");
        assert!(
            event["data"]["webhook_id"].is_i64() && event["irn"].is_null(),
            "{event}"
        );
        assert!(!event.to_string().contains("path-token") && !event.to_string().contains(&secret));
    }
}
