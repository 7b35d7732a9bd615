//! Incidents of the process: its database, actors, requests, memory and files.

use std::fs;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use sea_orm::ConnectionTrait;
use serde_json::json;
use testkit::documents::invoice_numbered;
use testkit::{Backend, each_database, on_postgresql};
use tokio::time::sleep;

use super::{Expected, SETTINGS};
use crate::support::database::{connect, server};
use crate::support::database_queries::DatabaseQueries;
use crate::support::deployment::Deployment;
use crate::support::machine::{self, SmallDisk};
use crate::support::proxy::Proxy;
use crate::support::service::MEMORY_BYTES;

/// More memory than any process has.
const PLENTY: u64 = 1 << 42;
/// The health check writes every three seconds.
const CHECKED_TWICE_WITHIN: Duration = Duration::from_secs(8);
/// An actor that gave up may start again after a minute.
const RESTARTED_WITHIN: Duration = Duration::from_secs(100);

#[on_postgresql]
async fn operators_see_what_the_process_knows_while_the_database_is_silent(backend: Backend) {
    let proxy = Proxy::start(&server()).await;
    let deployment = Deployment::behind(&proxy, backend).await;
    let watch = deployment.watch().await;
    // Whoever was there before is known without the database.
    assert!(watch.incidents().await.is_some());
    assert!(watch.console.page("/console").await.is_some());
    proxy.freeze();
    let silent = Expected::new("database-silent", "does not answer")
        .caused_by("silent")
        .entailing(&["reads-wait"]);
    watch.appears(silent).await;
    let ready = deployment.taxpayer.get("/health/ready").await.unwrap();
    assert_eq!(ready.status, 503, "{ready:?}");
    let tree = watch.operator.get("/ops/supervision").await.unwrap();
    assert_eq!(tree.status, 200, "{tree:?}");
    proxy.thaw();
    watch.is_gone("database-silent").await;
}

/// Makes the database refuse each write of the health check with the code of a standby.
const REFUSE_WRITES: &str = "\
CREATE FUNCTION refuse_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
RAISE EXCEPTION 'cannot execute INSERT in a read-only transaction' USING ERRCODE = '25006'; END $$; \
CREATE TRIGGER refuse_write BEFORE INSERT OR UPDATE ON counters \
FOR EACH STATEMENT EXECUTE FUNCTION refuse_write()";
const ACCEPT_WRITES: &str = "DROP FUNCTION refuse_write CASCADE";

#[on_postgresql]
async fn a_standby_is_told_as_a_database_that_takes_no_write(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS).await;
    let watch = deployment.watch().await;
    let database = DatabaseQueries::open(&deployment).await;
    database.execute(REFUSE_WRITES).await;
    let standby = Expected::new("database-silent", "it is read-only").caused_by("read-only");
    watch.appears(standby).await;
    database.execute(ACCEPT_WRITES).await;
    watch.is_gone("database-silent").await;
}

/// The service writes although the sessions of others only read, so nothing is told.
#[on_postgresql]
async fn a_database_that_is_read_only_by_default_takes_writes_and_nothing_is_told(
    backend: Backend,
) {
    let deployment = Deployment::with(backend, &SETTINGS).await;
    let watch = deployment.watch().await;
    let postgres = deployment.postgres.as_ref().unwrap();
    postgres.set_read_only_by_default().await;
    // All sessions were ended. Whatever is told of that is gone before the health check has run twice.
    sleep(CHECKED_TWICE_WITHIN).await;
    assert_eq!(watch.find("database-silent").await, None);
    deployment.submit("WRITTEN").await;
    watch.is_calm().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_told_until_there_is_room_again() {
    if !machine::may_mount() {
        println!("SKIPPED: this user may not mount a small disk");
        return;
    }
    let disk = SmallDisk::mount(24);
    let url = format!("sqlite://{}", disk.path().join("einvoice.db").display());
    let own = [("EINVOICE__DATABASE__URL", url.as_str())];
    let deployment = Deployment::with(Backend::Sqlite, &own).await;
    let watch = deployment.watch().await;
    let filler = disk.fill();
    let full = Expected::new("disk-full", "no write succeeds");
    watch.appears(full).await;
    let invoice = invoice_numbered("NOROOM");
    let create = deployment
        .taxpayer
        .call(Method::POST, "/v1/tax-payers/invoices", Some(&invoice));
    let refused = create.await.unwrap().expect_refusal(503, "OVERLOADED");
    assert!(refused.headers.contains_key("retry-after"));
    fs::remove_file(filler).unwrap();
    watch.is_gone("disk-full").await;
    let invoice = invoice_numbered("ROOM");
    deployment.taxpayer.create_invoice(&invoice).await;
}

/// One command of a taxpayer waits for a lock of another program, and the process takes few more.
#[on_postgresql]
async fn a_locked_taxpayer_is_told_as_stuck_and_as_refused_writes(backend: Backend) {
    let own = [
        ("EINVOICE__TAXPAYERS__COMMANDS_MAX", "4"),
        ("EINVOICE__DATABASE__LOCK_TIMEOUT_S", "40"),
        ("EINVOICE__DATABASE__STATEMENT_TIMEOUT_S", "60"),
    ];
    let deployment = Deployment::with(backend, &[&SETTINGS[..], &own].concat()).await;
    let watch = deployment.watch().await;
    let program = connect(&deployment.postgres.as_ref().unwrap().url()).await;
    program.execute_unprepared("BEGIN").await.unwrap();
    let id = deployment.taxpayer_id();
    let lock = format!("SELECT 1 FROM lanes WHERE kind = 'taxpayer' AND key = '{id}' FOR UPDATE");
    program.execute_unprepared(&lock).await.unwrap();
    let bodies: Vec<_> = (0..12)
        .map(|number| invoice_numbered(&format!("LOCKED{number}")))
        .collect();
    let creates = bodies.iter().map(|body| deployment.taxpayer.create(body));
    let watching = async {
        let refused = Expected::new("commands-refused", "because too many wait");
        let refused = watch.appears(refused).await;
        watch
            .lasts(&refused, "a minute after the last refusal")
            .await;
        let stuck = Expected::new(
            "actors-stuck",
            "1 actor has worked on one batch for too long",
        );
        watch.appears(stuck.seen_within_s(25)).await;
        program.execute_unprepared("ROLLBACK").await.unwrap();
        watch.is_gone("actors-stuck").await;
        watch.is_calm().await;
    };
    tokio::join!(join_all(creates), watching);
}

/// Queries of a table that another program locks occupy all connections.
#[on_postgresql]
async fn queries_that_wait_for_a_connection_are_told(backend: Backend) {
    let own = [("EINVOICE__DATABASE__READER_CONNECTIONS_MAX", "2")];
    let deployment = Deployment::with(backend, &[&SETTINGS[..], &own].concat()).await;
    let watch = deployment.watch().await;
    let program = connect(&deployment.postgres.as_ref().unwrap().url()).await;
    program.execute_unprepared("BEGIN").await.unwrap();
    let lock = "LOCK TABLE supplier_invoices IN ACCESS EXCLUSIVE MODE";
    program.execute_unprepared(lock).await.unwrap();
    let path = "/v1/tax-payers/supplier-invoices";
    let reads = (0..12).map(|_| deployment.taxpayer.get(path));
    let watching = async {
        let waits = Expected::new(
            "reads-wait",
            "waited for a connection for more than a second",
        );
        let waits = watch.appears(waits).await;
        watch
            .lasts(&waits, "a minute after the last long wait")
            .await;
        program.execute_unprepared("ROLLBACK").await.unwrap();
    };
    tokio::join!(join_all(reads), watching);
    watch.is_calm().await;
}

#[each_database]
async fn requests_that_a_defect_breaks_are_told(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS).await;
    let watch = deployment.watch().await;
    let database = DatabaseQueries::open(&deployment).await;
    let rename = "ALTER TABLE supplier_invoices RENAME TO hidden_invoices";
    database.execute(rename).await;
    let path = "/v1/tax-payers/supplier-invoices";
    let answer = deployment.taxpayer.get(path).await.unwrap();
    assert_eq!(answer.status, 500, "{answer:?}");
    let back = "ALTER TABLE hidden_invoices RENAME TO supplier_invoices";
    database.execute(back).await;
    let broken = Expected::new("answers-broken", "1 request was answered with 500");
    let broken = watch.appears(broken).await;
    watch
        .lasts(&broken, "Five minutes after the last such answer")
        .await;
}

/// Panics cannot be caused from outside, so they are ordered, which only development allows.
#[each_database]
async fn panics_are_told_as_quarantine_and_then_as_an_actor_that_gave_up(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS).await;
    let watch = deployment.watch().await;
    let order = json!({ "taxpayer_id": deployment.taxpayer_id(), "panics": 2 });
    let panic_twice = async |number: &str| {
        let path = "/ops/development/panic";
        let ordered = watch.operator.call(Method::POST, path, Some(&order)).await;
        assert_eq!(ordered.unwrap().status, 200);
        deployment.taxpayer.create(&invoice_numbered(number)).await;
    };
    panic_twice("FIRST").await;
    let kept = Expected::new("work-quarantined", "1 command is in quarantine").caused_by("command");
    let kept = kept.entailing(&["answers-broken"]);
    watch.appears(kept.seen_within_s(20)).await;
    let broken = Expected::new("answers-broken", "answered with 500");
    let broken = watch.appears(broken.entailing(&["work-quarantined"])).await;
    watch
        .lasts(&broken, "Five minutes after the last such answer")
        .await;
    panic_twice("SECOND").await;
    let panics = Expected::new("actors-panic", "4 times within a quarter of an hour")
        .entailing(&["work-quarantined", "actors-failed"]);
    let panics = watch.appears(panics).await;
    watch
        .lasts(&panics, "A quarter of an hour after the last panic")
        .await;
    let failed =
        Expected::new("actors-failed", "An actor has given up").entailing(&["work-quarantined"]);
    watch.appears(failed).await;

    let path = "/ops/quarantine?state=kept&kind=command";
    let listed = watch.operator.get(path).await.unwrap();
    let kept = listed.body["data"]["data"].as_array().unwrap().clone();
    assert!(!kept.is_empty(), "{listed:?}");
    for work in kept {
        let drop = work["drop"].as_str().unwrap();
        let dropped = watch
            .operator
            .call(Method::POST, drop, Some(&json!({})))
            .await
            .unwrap();
        assert_eq!(dropped.status, 200, "{dropped:?}");
    }
    watch.is_gone("work-quarantined").await;
    watch
        .is_gone_within("actors-failed", RESTARTED_WITHIN)
        .await;
    watch.is_calm().await;
}

#[each_database]
async fn taxpayers_that_operators_have_paused_are_told_until_they_are_resumed(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS).await;
    let watch = deployment.watch().await;
    let listed = watch.operator.get("/ops/taxpayers").await.unwrap();
    let page = format!(
        "/console/taxpayers/{}",
        listed.body["data"]["data"][0]["id"]
    );
    let reason = [("reason", "a drill")];
    let order = async |to: &str| watch.console.submit(&format!("{page}/{to}"), &reason).await;
    order("pause").await;
    watch
        .appears(Expected::new("taxpayers-paused", "is paused by operators"))
        .await;
    order("resume").await;
    watch.is_gone("taxpayers-paused").await;
}

#[each_database]
async fn memory_and_files_that_are_nearly_used_up_are_told(backend: Backend) {
    let plenty = PLENTY.to_string();
    let limited = [(MEMORY_BYTES, plenty.as_str())];
    let own = if machine::may_mount() {
        &limited[..]
    } else {
        println!("SKIPPED: this user may not limit the memory of a process");
        &[]
    };
    let deployment = Deployment::with(backend, own).await;
    let watch = deployment.watch().await;
    let process = deployment.service.id();
    if !own.is_empty() {
        // After a sign-in it gives up to a fifth back, and is near a limit of three quarters still.
        machine::set_memory_max(process, deployment.service.memory_bytes() * 3 / 4);
        watch
            .appears(Expected::new(
                "memory-near-limit",
                "of the memory that it may have",
            ))
            .await;
        machine::set_memory_max(process, PLENTY);
        watch.is_gone("memory-near-limit").await;
    }

    let open = deployment.open_files().await;
    machine::set_open_files_max(process, open * 100 / 90);
    watch
        .appears(Expected::new(
            "files-near-limit",
            "of the files and connections open",
        ))
        .await;
    machine::set_open_files_max(process, open * 10);
    watch.is_gone("files-near-limit").await;
    watch.is_calm().await;
}

impl Deployment {
    /// The files and connections that the process has open.
    async fn open_files(&self) -> u64 {
        self.metric("process_open_fds").await.parse().unwrap()
    }
}
