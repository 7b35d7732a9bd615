//! `/health`, `/metrics` and `/ops`: what probes, scrapers and operators read.

use sandbox::{FaultKind, FaultOrder};
use serde_json::{Value, json};
use testkit::documents::{self, submission};
use testkit::patience::eventually;
use testkit::roles::INVOICES;
use testkit::{each_database, on_sqlite};

use crate::support::world::{ALONE, World};

const SUPERVISION: &str = "/ops/supervision";

#[on_sqlite]
async fn a_process_that_answers_is_alive(world: &World) {
    let answer = world
        .anonymous()
        .get("/health/live")
        .await
        .expect_status(200);
    assert_eq!(answer.body["status"], json!("ok"));
    let trace = answer.header("traceresponse");
    assert!(trace.starts_with("00-") && trace.len() == 55, "{trace}");
}

#[each_database(ALONE)]
async fn a_process_with_its_database_and_actors_is_ready(world: &World) {
    let answer = world
        .anonymous()
        .get("/health/ready")
        .await
        .expect_status(200);
    assert_eq!(
        answer.body,
        json!({
            "status": "ok",
            "checks": {
                "database": { "status": "ok" }, "actors": { "status": "ok" }, "authority": { "status": "ok" },
            },
        })
    );
}

#[on_sqlite(ALONE)]
async fn a_dead_authority_is_shown_and_the_process_stays_ready(world: &World) {
    world
        .authority
        .add_fault(FaultOrder::new(FaultKind::Outage))
        .unwrap();
    let degraded = async || {
        let answer = world
            .anonymous()
            .get("/health/ready")
            .await
            .expect_status(200);
        (answer.body["checks"]["authority"]["status"] == json!("degraded")).then_some(answer)
    };
    let answer = eventually("a degraded authority", degraded).await;
    assert_eq!(answer.body["checks"]["database"]["status"], json!("ok"));
}

#[each_database]
async fn the_metrics_count_what_was_answered(world: &World) {
    let taxpayer = world.taxpayer().await;
    taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .get_invoice(&json!(999_999_999))
        .await
        .expect_status(404);
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &documents::invoice_no()))
        .await
        .expect_status(200);
    let answer = world.anonymous().get("/metrics").await.expect_status(200);
    assert!(
        answer.header("content-type").contains("text"),
        "{}",
        answer.header("content-type")
    );
    for name in [
        "einvoice_http_requests_total",
        "einvoice_http_request_duration_seconds_bucket",
        "einvoice_actors{",
        "einvoice_actor_mailbox_depth{kind=\"taxpayer\"} ",
        "einvoice_command_batch_size_count{kind=\"taxpayer\"} ",
        "einvoice_actor_restarts_total{kind=\"taxpayer\"} ",
        "einvoice_build_info{version=\"",
        "einvoice_authority_call_duration_seconds_bucket{le=",
        "einvoice_command_wait_seconds_count{kind=\"taxpayer\",command=\"create\"} ",
        "einvoice_command_duration_seconds_count{kind=\"taxpayer\",command=\"create\",outcome=\"done\"} ",
        "einvoice_signature_seconds_count ",
        "einvoice_prediction_error_ratio_count ",
        "einvoice_database_read_wait_seconds_count ",
        "einvoice_database_write_wait_seconds_count ",
        "einvoice_database_transaction_commands_count ",
        "\nprocess_cpu_seconds_total ",
        "\nprocess_resident_memory_bytes ",
        "\nprocess_open_fds ",
        "einvoice_commands_in_flight",
        "einvoice_authority_calls_total",
        "einvoice_authority_breaker_state",
        "einvoice_authority_call_limit{operation=\"sign\"}",
        "einvoice_authority_calls_in_flight{operation=\"sign\"} ",
        "einvoice_authority_calls_waiting{operation=\"sign\"} ",
        "einvoice_authority_outage 0",
        "einvoice_lanes_due",
        "einvoice_quarantined{kind=\"task\"} ",
        "einvoice_runs_paused_total{reason=\"quarantined\"} ",
        "einvoice_dead_letters_total{reason=\"given_up\"} ",
        "einvoice_endpoints_parked_total ",
        "einvoice_endpoints_disabled_total ",
        "einvoice_deliveries_pending",
        "einvoice_catalog_age_seconds",
        "einvoice_database_up 1",
    ] {
        assert!(
            answer.text.contains(name),
            "{name} is missing in\n{}",
            answer.text
        );
    }
    let created = answer.text.lines().find(|line| {
        [
            "http_requests_total",
            "\"POST\"",
            "\"/v1/tax-payers/invoices\"",
            "\"2xx\"",
        ]
        .iter()
        .all(|part| line.contains(part))
    });
    assert!(created.is_some(), "{}", answer.text);
    assert!(answer.text.trim_end().ends_with("# EOF"));
}

#[on_sqlite]
async fn the_metrics_hold_no_names(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    taxpayer.reread(&invoice).await;
    world
        .anonymous()
        .get("/v1/nowhere/in-particular")
        .await
        .expect_status(404);
    let text = world.anonymous().get("/metrics").await.text;
    for secret in [
        invoice["irn"].as_str().unwrap(),
        &taxpayer.registration.tin,
        "tpk_",
        "in-particular",
    ] {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(!text.contains(&format!("{INVOICES}/{}", invoice["id"])));
}

#[on_sqlite(&[("METRICS__PUBLIC", "false")])]
async fn metrics_that_are_not_public_need_an_operators_key(world: &World) {
    world
        .anonymous()
        .get("/metrics")
        .await
        .expect_refusal(401, "UNAUTHENTICATED");
    world
        .taxpayer()
        .await
        .get("/metrics")
        .await
        .expect_refusal(401, "INVALID_API_KEY");
    world
        .new_operator()
        .await
        .get("/metrics")
        .await
        .expect_status(200);
}

#[each_database]
async fn an_operator_sees_the_actors_and_nobody_else_does(world: &World) {
    let taxpayer = world.taxpayer().await;
    taxpayer.invoice(&documents::invoice()).await;
    world
        .anonymous()
        .get(SUPERVISION)
        .await
        .expect_refusal(401, "UNAUTHENTICATED");
    taxpayer
        .get(SUPERVISION)
        .await
        .expect_refusal(401, "INVALID_API_KEY");
    world
        .integrator()
        .get(SUPERVISION)
        .await
        .expect_refusal(401, "INVALID_API_KEY");
    let answer = world
        .new_operator()
        .await
        .get(SUPERVISION)
        .await
        .expect_status(200);
    assert_eq!(answer.body["success"], json!(true));
    let actors = answer.data()["top"].as_array().unwrap();
    // Other tests have taxpayers in this process, too.
    let has_worked = |actor: &Value| {
        actor["kind"] == "taxpayer"
            && actor["last_batch_us"].as_u64() > Some(0)
            && actor["last_hour"]["handle_max_us"].as_u64() > Some(0)
    };
    assert!(actors.iter().any(has_worked), "{}", answer.text);
}
