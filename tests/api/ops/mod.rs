//! `/ops`: what operators read and do.

mod access;
mod accounts;
mod credentials;
mod dead_letters;
mod development;
mod integration;
mod invitations;
mod limits;
mod networks;
mod outages;
mod overview;
mod quarantine;
mod reconciliations;
mod run_moves;
mod runs;
mod webhook_endpoints;

use serde_json::json;
use testkit::each_database;

use crate::support::world::World;

const ID: &str = "00000000-0000-7000-8000-000000000000";

/// Every path of operators, with its method.
fn paths() -> Vec<(&'static str, String)> {
    let mut paths: Vec<_> = [
        "/ops/overview",
        "/ops/search?q=x",
        "/ops/pipeline/runs",
        "/ops/webhooks/endpoints",
        "/ops/webhooks/dead-letters",
        "/ops/breakers",
        "/ops/outages",
        "/ops/audit",
        "/ops/integrators",
        "/ops/operators",
        "/ops/reconciliations",
    ]
    .map(|path| ("GET", path.to_owned()))
    .into();
    paths.push(("GET", "/ops/invoices/A-94AD90FB-20260115".to_owned()));
    paths.push(("GET", format!("/ops/pipeline/runs/{ID}")));
    for to in ["pause", "resume", "retry", "cancel"] {
        paths.push(("POST", format!("/ops/pipeline/runs/{ID}/{to}")));
    }
    paths.push(("POST", "/ops/pipeline/runs/move".to_owned()));
    paths.push(("POST", format!("/ops/webhooks/dead-letters/{ID}/replay")));
    for accounts in ["integrators", "operators"] {
        for to in ["rotate", "revoke"] {
            paths.push(("POST", format!("/ops/{accounts}/1/api-key/{to}")));
        }
    }
    paths.push(("POST", "/ops/reconciliations".to_owned()));
    paths.push(("GET", "/ops/taxpayers/1/integration".to_owned()));
    paths.push(("PUT", "/ops/taxpayers/1/integration".to_owned()));
    paths.push(("GET", format!("/ops/reconciliations/{ID}")));
    paths
}

#[each_database]
async fn only_an_operators_key_opens_the_operators_paths(world: &World) {
    let taxpayer = world.newcomer().await;
    for (method, path) in paths() {
        let body = json!({});
        world.anonymous().send(method, &path, &body).await.expect_refusal(401, "UNAUTHENTICATED");
        taxpayer.send(method, &path, &body).await.expect_refusal(401, "INVALID_API_KEY");
        world.integrator().send(method, &path, &body).await.expect_refusal(401, "INVALID_API_KEY");
        let unknown = world.anonymous().with_key("opk_unknown");
        unknown.send(method, &path, &body).await.expect_refusal(401, "INVALID_API_KEY");
    }
}

#[each_database]
async fn an_operator_sees_the_breaker_and_the_limit_of_each_operation(world: &World) {
    let answer = world.new_operator().await.get("/ops/breakers").await.expect_status(200);
    let breakers = answer.data().as_array().unwrap();
    assert_eq!(breakers.len(), 15);
    for breaker in breakers {
        let fields: Vec<_> = breaker.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            fields,
            [
                "calls",
                "failures",
                "held_taxpayers",
                "held_until",
                "in_flight",
                "limit",
                "next_probe_at",
                "openings",
                "operation",
                "since",
                "state",
                "waiting"
            ]
        );
        assert!((1..=64).contains(&breaker["limit"].as_u64().unwrap()), "{breaker}");
        assert!(breaker["in_flight"].is_u64() && breaker["waiting"].is_u64(), "{breaker}");
        assert!(["closed", "open", "half_open"].contains(&breaker["state"].as_str().unwrap()));
    }
    assert!(breakers.iter().any(|breaker| breaker["operation"] == json!("sign")), "{}", answer.text);
}
