//! Work that was in flight when the process ended. After the first end all of it goes on at once, after the second each
//! piece begins alone, after the third it is put aside. Work that ends the process each time, such as a notification whose
//! receiver brings the process down, stays aside; innocent work goes on when the process has lived for a while.
//!
//! `EINVOICE_QUICK_KILLS` says how many kills follow each other quickly: 6 in the ordinary run.

use std::process::Command;
use std::time::{Duration, Instant};

use reqwest::Method;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::documents::{Registration, invoice_numbered, submission};
use testkit::patience::eventually;
use testkit::receiver::Receiver;
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::client::Client;
use crate::support::database_queries::DatabaseQueries;
use crate::support::deployment::Deployment;
use crate::support::size::size;

/// The number of pieces of each kind of work that are in flight at a kill.
const PIECES_IN_FLIGHT: usize = 4;
/// Longer than a scene needs to see the quarantine before it is lifted.
const LIFT_AFTER: (&str, &str) = ("EINVOICE__CLUSTER__QUARANTINE_LIFT_S", "10");
const RECEIVER_DELAY: Duration = Duration::from_millis(300);
/// Long enough that the answer never comes before the kill.
const ANSWER_DELAY: Duration = Duration::from_mins(2);
/// A reconciliation asks the authority about every invoice, whatever the state of its run.
const NO_RECONCILIATION: (&str, &str) = ("EINVOICE__RECONCILE__EVERY_S", "0");
/// Longer than a lane waits that is due.
const LANE_WAIT: Duration = Duration::from_secs(3);

#[each_database]
async fn a_notification_that_ends_the_process_three_times_is_put_aside(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    let receiver = Receiver::start();
    deployment.set_webhook(&receiver.url()).await;
    let neighbour = deployment.newcomer().await;
    deployment
        .set_webhook_for(neighbour.id, &receiver.url())
        .await;
    end_process_on_arrival(&receiver, deployment.service.id());
    // Beside it others are under way at the same endpoint.
    for number in 0..4 {
        deployment
            .taxpayer
            .create_invoice(&invoice_numbered(&format!("BEFORE{number}")))
            .await;
    }
    // The answer may not come: the process ends.
    deployment
        .taxpayer
        .create(&invoice_numbered("FATAL1"))
        .await;
    for _ in 0..3 {
        deployment.service.wait_for_end().await;
        deployment.service.launch();
        end_process_on_arrival(&receiver, deployment.service.id());
    }
    deployment.service.wait_until_ready().await;
    let after = deployment
        .taxpayer
        .create_invoice(&invoice_numbered("AFTER1"))
        .await;
    let beside = neighbour
        .client
        .create_invoice(&invoice_numbered("BESIDE1"))
        .await;
    eventually("the notifications of others", async || {
        let arrivals = receiver.received_notifications();
        [&after.irn, &beside.irn]
            .iter()
            .all(|irn| arrivals.iter().any(|one| one.irn() == **irn))
            .then_some(())
    })
    .await;
    let operator = deployment.operator();
    let listed = eventually("a dead letter", async || {
        let listed = operator.get("/ops/webhooks/dead-letters").await?.body["data"]["data"].clone();
        (!listed.as_array()?.is_empty()).then_some(listed)
    })
    .await;
    let letters = listed.as_array().unwrap();
    assert_eq!(letters.len(), 1, "innocent ones go on: {listed}");
    assert!(letters[0].to_string().contains("quarantined"), "{listed}");
    sleep(LANE_WAIT).await;
    let fatal = |receiver: &Receiver| {
        receiver
            .received_notifications()
            .iter()
            .filter(|one| one.irn().starts_with("FATAL"))
            .count()
    };
    assert_eq!(
        fatal(&receiver),
        3,
        "it ended the process three times and not once more"
    );
    assert_eq!(
        deployment
            .metric(r#"einvoice_dead_letters_total{reason="quarantined"}"#)
            .await,
        "1"
    );
    assert!(
        deployment
            .service
            .output()
            .contains("gave up on a delivery"),
        "one line says so"
    );

    // An operator may have it sent again.
    receiver.on_arrival(|_| {});
    replay_dead_letter(&operator, &letters[0]).await;
    eventually("the notification", async || {
        (fatal(&receiver) == 4).then_some(())
    })
    .await;
    let queries = DatabaseQueries::open(&deployment).await;
    eventually("the end of all notifications", async || {
        let open = "SELECT COUNT(*) FROM deliveries WHERE state <> 'delivered'";
        (queries.number(open).await == 0).then_some(())
    })
    .await;
    deployment.intact_events().await;
}

#[each_database]
async fn a_run_whose_step_ends_the_process_three_times_is_paused(backend: Backend) {
    let mut deployment = Deployment::with(backend, &[NO_RECONCILIATION]).await;
    let fatal = "FATAL2";
    let irn = "FATAL2-94CD90AA-20260115";
    // While it is signed, and twice while it is asked whether it was.
    let calls = [
        (Operation::Sign, 1),
        (Operation::Confirm, 1),
        (Operation::Confirm, 2),
    ];
    for (operation, _) in calls {
        deployment.order_late(FaultKind::Latency, operation, irn, ANSWER_DELAY);
    }
    let created = deployment.submit(fatal).await;
    assert_eq!(created.irn, irn);
    for (operation, count) in calls {
        let what = format!("call {count} of {operation:?} in the hands of the authority");
        eventually(&what, async || {
            (deployment.calls(operation, irn).len() >= count).then_some(())
        })
        .await;
        deployment.restart_after_kill().await;
    }
    let other = deployment.submit("OTHER2").await;
    let run = eventually("the run to be paused", async || {
        let run = deployment.taxpayer.run(irn, "submit").await?;
        (run["state"] == "paused").then_some(run)
    })
    .await;
    assert!(
        run["last_error"]
            .as_str()
            .unwrap()
            .contains("the process ended three times"),
        "{run}"
    );
    deployment
        .taxpayer
        .wait_until_succeeded(&other.irn, "submit")
        .await;
    let calls = deployment.authority.state().calls().len();
    let again = deployment
        .taxpayer
        .call(
            Method::POST,
            "/v1/app/invoices/submit",
            Some(&submission(&Registration::demo(), fatal)),
        )
        .await;
    assert!(again.is_some());
    sleep(LANE_WAIT).await;
    assert_eq!(
        deployment.taxpayer.run(irn, "submit").await.unwrap()["state"],
        "paused",
        "only an operator moves it"
    );
    let about = |call: &sandbox::CallRecord| call.irn.as_deref() == Some(irn);
    assert!(
        !deployment.authority.state().calls()[calls..]
            .iter()
            .any(about),
        "it is not called again"
    );
    assert_eq!(
        deployment
            .metric(r#"einvoice_runs_paused_total{reason="quarantined"}"#)
            .await,
        "1"
    );
    assert!(
        deployment
            .service
            .output()
            .contains("paused a run for an operator")
    );

    resume_paused_run(&deployment).await;
    deployment
        .taxpayer
        .wait_until_succeeded(irn, "submit")
        .await;
    assert_eq!(
        deployment
            .authority
            .state()
            .invoice(irn)
            .unwrap()
            .sign_count,
        1
    );
    deployment.intact_events().await;
}

/// Kills that follow each other before the work has ended, such as those of a deployment that runs out of memory.
#[each_database]
async fn kills_in_quick_succession_leave_nothing_in_quarantine(backend: Backend) {
    let kills = size("EINVOICE_QUICK_KILLS", 6);
    let mut deployment = Deployment::with(backend, &[NO_RECONCILIATION, LIFT_AFTER]).await;
    let receiver = Receiver::start();
    receiver.delay(RECEIVER_DELAY);
    let neighbour = deployment.newcomer().await;
    deployment.set_webhook(&receiver.url()).await;
    deployment
        .set_webhook_for(neighbour.id, &receiver.url())
        .await;
    deployment
        .authority
        .state()
        .add_fault(slow_signatures())
        .unwrap();
    let begun = Instant::now();
    let mut irns = Vec::new();
    for kill in 0..kills {
        for number in 0..PIECES_IN_FLIGHT {
            irns.push(
                deployment
                    .submit(&format!("QUICK{kill}N{number}"))
                    .await
                    .irn,
            );
            neighbour
                .client
                .create_invoice(&invoice_numbered(&format!("BESIDE{kill}N{number}")))
                .await;
        }
        deployment.restart_after_kill().await;
    }
    let killed = begun.elapsed();
    receiver.delay(Duration::ZERO);
    let queries = DatabaseQueries::open(&deployment).await;
    eventually("the end of all work, without an operator", async || {
        let runs = queries
            .number("SELECT COUNT(*) FROM pipeline_runs WHERE state <> 'succeeded'")
            .await;
        let deliveries = queries
            .number("SELECT COUNT(*) FROM deliveries WHERE state <> 'delivered'")
            .await;
        (runs == 0 && deliveries == 0).then_some(())
    })
    .await;
    let lifted = queries
        .number("SELECT COUNT(*) FROM attempts WHERE failure = 'quarantined'")
        .await;
    println!("{backend:?}: {kills} kills in {killed:?}, {lifted} notifications were in quarantine");
    let ended = queries
        .number("SELECT COUNT(*) FROM pipeline_runs WHERE state = 'succeeded'")
        .await;
    assert_eq!(usize::try_from(ended).unwrap(), irns.len());
    for irn in &irns {
        assert_eq!(
            deployment
                .authority
                .state()
                .invoice(irn)
                .unwrap()
                .sign_count,
            1,
            "{irn}"
        );
    }
    deployment.intact_events().await;
}

async fn replay_dead_letter(operator: &Client, letter: &Value) {
    let path = format!(
        "/ops/webhooks/dead-letters/{}/replay",
        letter["id"].as_str().unwrap()
    );
    let answer = operator
        .call(Method::POST, &path, Some(&json!({})))
        .await
        .unwrap();
    assert!(answer.status < 300, "{answer:?}");
}

/// Has an operator resume the only paused run.
async fn resume_paused_run(deployment: &Deployment) {
    let operator = deployment.operator();
    let paused = operator
        .get("/ops/pipeline/runs?state=paused")
        .await
        .unwrap()
        .body["data"]["data"]
        .clone();
    assert_eq!(paused.as_array().unwrap().len(), 1, "{paused}");
    let path = format!(
        "/ops/pipeline/runs/{}/resume",
        paused[0]["id"].as_str().unwrap()
    );
    let answer = operator
        .call(Method::POST, &path, Some(&json!({})))
        .await
        .unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Each signature takes a while, so that a kill meets some.
fn slow_signatures() -> FaultOrder {
    let mut order = FaultOrder::new(FaultKind::Latency)
        .on(Operation::Sign)
        .times(u32::MAX);
    order.latency_ms = Some(u64::try_from(RECEIVER_DELAY.as_millis()).unwrap());
    order
}

/// Has the process end at once when a notification of a fatal IRN arrives.
fn end_process_on_arrival(receiver: &Receiver, process: u32) {
    receiver.on_arrival(move |one| {
        if one.irn().starts_with("FATAL") {
            let killed = Command::new("kill")
                .args(["-s", "KILL", &process.to_string()])
                .status();
            assert!(killed.unwrap().success());
        }
    });
}
