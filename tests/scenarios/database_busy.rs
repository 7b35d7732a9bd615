//! A database that others write to without a pause, or that takes no write at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sea_orm::ConnectionTrait;
use testkit::documents::invoice_numbered;
use testkit::patience::eventually;
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::database::{PostgresDatabase, connect};
use crate::support::deployment::Deployment;
use crate::support::service::output_of;

/// How long each of the others holds the database, and how short it lets it go.
const LOCK_HOLD: Duration = Duration::from_millis(40);
const WRITERS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_integrator_is_created_beside_a_database_that_is_written_to_without_a_pause() {
    let deployment = Deployment::open(Backend::Sqlite).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            tokio::spawn(hold_lock_repeatedly(
                deployment.sqlite_url(),
                Arc::clone(&is_over),
            ))
        })
        .collect();
    sleep(LOCK_HOLD).await;
    for number in 0..3 {
        let begun = Instant::now();
        let email = format!("it{number}@acme.example");
        let create =
            deployment
                .service
                .call(&["integrator", "create", "--name", "Acme", "--email", &email]);
        let created = output_of(create).await;
        println!(
            "an integrator beside {WRITERS} writers: {} after {:?}",
            created.status,
            begun.elapsed()
        );
        assert!(
            created.status.success(),
            "{}",
            String::from_utf8_lossy(&created.stderr)
        );
    }
    is_over.store(true, Ordering::SeqCst);
    for writer in writers {
        assert!(writer.await.unwrap() > 0);
    }
}

/// Takes the write lock again as soon as it has let it go. Gives how often.
async fn hold_lock_repeatedly(url: String, is_over: Arc<AtomicBool>) -> u32 {
    let connection = connect(&url).await;
    connection
        .execute_unprepared("PRAGMA busy_timeout = 20000")
        .await
        .unwrap();
    let mut taken = 0;
    while !is_over.load(Ordering::SeqCst) {
        if connection
            .execute_unprepared("BEGIN IMMEDIATE")
            .await
            .is_ok()
        {
            sleep(LOCK_HOLD).await;
            connection.execute_unprepared("COMMIT").await.unwrap();
            taken += 1;
        }
    }
    taken
}

#[each_database]
async fn a_process_whose_writes_all_fail_is_not_ready(backend: Backend) {
    let deployment = Deployment::open(backend).await;
    let url = deployment
        .postgres
        .as_ref()
        .map_or_else(|| deployment.sqlite_url(), PostgresDatabase::url);
    // Reads go on and transactions begin, as with a disk without room.
    let (full, free): (&[&str], &str) = match backend {
        Backend::Sqlite => (
            &[
                "CREATE TRIGGER no_room BEFORE UPDATE ON counters BEGIN SELECT RAISE(ABORT, 'no room'); END",
            ],
            "DROP TRIGGER no_room",
        ),
        Backend::Postgres => (
            &["ALTER TABLE counters ADD CONSTRAINT no_room CHECK (next < 0) NOT VALID"],
            "ALTER TABLE counters DROP CONSTRAINT no_room",
        ),
    };
    let beside = connect(&url).await;
    for statement in full {
        beside.execute_unprepared(statement).await.unwrap();
    }
    eventually("a process that is not ready", async || {
        deployment
            .taxpayer
            .get("/health/ready")
            .await
            .filter(|answer| answer.status == 503)
    })
    .await;
    assert_eq!(
        deployment
            .taxpayer
            .get("/health/live")
            .await
            .unwrap()
            .status,
        200
    );
    beside.execute_unprepared(free).await.unwrap();
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
        .create_invoice(&invoice_numbered("ROOM"))
        .await;
}
