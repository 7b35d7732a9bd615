//! The database is away for a while: callers are asked to come back, and everything recovers by itself.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use sandbox::{FaultKind, Operation};
use sea_orm::ConnectionTrait;
use testkit::documents::invoice_numbered;
use testkit::patience::eventually;
use testkit::{Backend, on_postgresql};

use crate::support::client::Created;
use crate::support::database::connect;
use crate::support::deployment::Deployment;

const WRITES: usize = 8;
/// No caller waits longer, whatever the database does.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_sqlite_database_is_waited_for() {
    let deployment = Deployment::open(Backend::Sqlite).await;
    let (stored, running) = begin(&deployment).await;
    let lock = connect(&deployment.sqlite_url()).await;
    lock.execute_unprepared("BEGIN EXCLUSIVE").await.unwrap();
    assert_refused_in_time(&deployment).await;
    assert_not_ready(&deployment).await;
    lock.execute_unprepared("ROLLBACK").await.unwrap();
    assert_recovered(&deployment, &stored, &running).await;
}

#[on_postgresql]
async fn a_postgresql_database_that_goes_away_is_waited_for(backend: Backend) {
    let deployment = Deployment::open(backend).await;
    let (stored, running) = begin(&deployment).await;
    let database = deployment.postgres.as_ref().unwrap();
    // Some of these are under way when the database goes.
    let bodies: Vec<_> = (0..WRITES)
        .map(|number| invoice_numbered(&format!("CUT{number}")))
        .collect();
    let writes = join_all(bodies.iter().map(|body| deployment.taxpayer.create(body)));
    let (written, ()) = tokio::join!(writes, database.allow_connections(false));
    assert_refused_in_time(&deployment).await;
    assert_not_ready(&deployment).await;
    database.allow_connections(true).await;
    let accepted = written.into_iter().flatten().map(|(_, created)| created);
    let stored: Vec<_> = stored.into_iter().chain(accepted).collect();
    assert_recovered(&deployment, &stored, &running).await;
}

/// Some invoices, and one more whose run goes on while the database is away.
async fn begin(deployment: &Deployment) -> (Vec<Created>, Created) {
    let bodies: Vec<_> = (0..WRITES)
        .map(|number| invoice_numbered(&format!("BEFORE{number}")))
        .collect();
    let stored = join_all(
        bodies
            .iter()
            .map(|body| deployment.taxpayer.create_invoice(body)),
    )
    .await;
    let irn = "RUNNING1-94CD90AA-20260115";
    deployment.order_late(
        FaultKind::Latency,
        Operation::Sign,
        irn,
        Duration::from_secs(1),
    );
    let running = deployment.submit("RUNNING1").await;
    eventually("a signature in flight", async || {
        (deployment.pending_calls(Operation::Sign, &running.irn) == 1).then_some(())
    })
    .await;
    (stored, running)
}

/// Each write is answered with 503, Retry-After and the envelope, and before long.
async fn assert_refused_in_time(deployment: &Deployment) {
    let begun = Instant::now();
    let bodies: Vec<_> = (0..WRITES)
        .map(|number| invoice_numbered(&format!("AWAY{number}")))
        .collect();
    let path = "/v1/tax-payers/invoices";
    let answers = join_all(
        bodies
            .iter()
            .map(|body| deployment.taxpayer.call(Method::POST, path, Some(body))),
    )
    .await;
    for answer in answers {
        let answer = answer.expect("an answer although the database is away");
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(answer.body["error_code"], "OVERLOADED");
        assert_eq!(answer.body["success"], false);
        let wait = answer.headers["retry-after"]
            .to_str()
            .unwrap()
            .parse::<u64>()
            .unwrap();
        assert!(wait >= 1);
    }
    assert!(
        begun.elapsed() < ANSWER_WAIT_MAX,
        "answered after {:?}",
        begun.elapsed()
    );
    println!("refused in {:?}", begun.elapsed());
}

async fn assert_not_ready(deployment: &Deployment) {
    let answer = eventually("a process that is not ready", async || {
        deployment
            .taxpayer
            .get("/health/ready")
            .await
            .filter(|answer| answer.status == 503)
    })
    .await;
    assert_eq!(answer.body["checks"]["database"]["status"], "down");
    let reason = answer.body["checks"]["database"]["reason"]
        .as_str()
        .unwrap();
    assert!(reason.contains("database"), "{reason}");
    assert_eq!(
        deployment
            .taxpayer
            .get("/health/live")
            .await
            .unwrap()
            .status,
        200,
        "it is alive all the same"
    );
}

/// Ready again, the run ended, what was accepted is there, and what was refused can be sent again.
async fn assert_recovered(deployment: &Deployment, stored: &[Created], running: &Created) {
    eventually("a process that is ready again", async || {
        deployment
            .taxpayer
            .get("/health/ready")
            .await
            .filter(|answer| answer.status == 200)
    })
    .await;
    deployment
        .taxpayer
        .wait_until_succeeded(&running.irn, "submit")
        .await;
    for created in stored {
        let (status, found) = deployment
            .taxpayer
            .create(&invoice_numbered(&created.invoice_no))
            .await
            .unwrap();
        assert_eq!((status, &found), (200, created), "it is there");
    }
    for number in 0..WRITES {
        let (status, _) = deployment
            .taxpayer
            .create(&invoice_numbered(&format!("AWAY{number}")))
            .await
            .unwrap();
        assert_eq!(status, 201, "a refused create left nothing");
    }
    let events = deployment.intact_events().await;
    deployment.assert_done(running, &events, false).await;
}
