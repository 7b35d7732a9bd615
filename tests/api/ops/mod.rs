//! `/ops`: what operators read and do.

mod access;
mod accounts;
mod credentials;
mod dead_letters;
mod development;
mod held_runs;
mod incidents;
mod integration;
mod invitations;
mod limits;
mod networks;
mod outages;
mod overview;
mod quarantine;
mod reconciliations;
mod replicas;
mod run_moves;
mod runs;
mod supervision;
mod taxpayer_load;
mod webhook_endpoints;

use serde_json::json;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[on_sqlite]
async fn only_an_operators_key_opens_the_operators_surface(world: &World) {
    const AUDIT: &str = "/ops/audit";
    world
        .anonymous()
        .get(AUDIT)
        .await
        .expect_refusal(401, "UNAUTHENTICATED");
    world
        .newcomer()
        .await
        .get(AUDIT)
        .await
        .expect_refusal(401, "INVALID_API_KEY");
    world
        .integrator()
        .get(AUDIT)
        .await
        .expect_refusal(401, "INVALID_API_KEY");
    let unknown = world.anonymous().with_key("opk_unknown");
    unknown
        .get(AUDIT)
        .await
        .expect_refusal(401, "INVALID_API_KEY");
}

#[each_database]
async fn an_operator_sees_the_breaker_and_the_limit_of_each_operation(world: &World) {
    let answer = world
        .new_operator()
        .await
        .get("/ops/breakers")
        .await
        .expect_status(200);
    let breakers = answer.data().as_array().unwrap();
    assert_eq!(breakers.len(), 15);
    for breaker in breakers {
        let fields: Vec<_> = breaker
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            fields,
            [
                "calls",
                "failures",
                "held_taxpayers",
                "held_until",
                "in_flight",
                "is_tripped",
                "lasting_limit",
                "limit",
                "next_probe_at",
                "openings",
                "operation",
                "since",
                "state",
                "waiting"
            ]
        );
        let [limit, lasting_limit] =
            ["limit", "lasting_limit"].map(|field| breaker[field].as_u64().unwrap());
        assert!(
            (1..=lasting_limit).contains(&limit) && lasting_limit <= 64,
            "{breaker}"
        );
        assert!(
            breaker["in_flight"].is_u64() && breaker["waiting"].is_u64(),
            "{breaker}"
        );
        assert!(["closed", "open", "half_open"].contains(&breaker["state"].as_str().unwrap()));
    }
    assert!(
        breakers
            .iter()
            .any(|breaker| breaker["operation"] == json!("sign")),
        "{}",
        answer.text
    );
}
