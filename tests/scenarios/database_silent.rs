//! Sessions of PostgreSQL that fall silent: each costs those whose rows it holds a bounded time and an answer, nobody else
//! anything, and everything goes on without a restart.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use sea_orm::ConnectionTrait;
use testkit::answer::Answer;
use testkit::documents::invoice_numbered;
use testkit::patience::eventually;
use testkit::receiver::Receiver;
use testkit::{Backend, on_postgresql};
use tokio::time::sleep;

use crate::support::client::{Client, Created};
use crate::support::database::{connect, server};
use crate::support::database_queries::DatabaseQueries;
use crate::support::deployment::Deployment;
use crate::support::proxy::Proxy;

const INVOICES: &str = "/v1/tax-payers/invoices";
/// Fewer writers than lanes that are held: all of them wait.
const FEW_WRITERS: [(&str, &str); 1] = [("EINVOICE__DATABASE__WRITER_CONNECTIONS_MAX", "2")];
/// Taxpayers that write while the connections fall silent, more than there are connections.
const TAXPAYERS: usize = 18;
/// Beyond the lock timeout, and short of the deadline on our side: the database gives up, its connection is good.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(8);
/// How long they write before and at least after that.
const LOAD_SPAN: Duration = Duration::from_secs(2);

async fn post(client: &Client, invoice_no: &str) -> Answer {
    client
        .call(Method::POST, INVOICES, Some(&invoice_numbered(invoice_no)))
        .await
        .expect("an answer to a create")
}

fn assert_come_back(answer: &Answer) {
    assert_eq!(
        (answer.status, &answer.body["error_code"]),
        (503, &"OVERLOADED".into()),
        "{answer:?}"
    );
    assert!(
        answer.headers["retry-after"]
            .to_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            >= 1
    );
}

async fn measure_time<T>(call: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    (call.await, begun.elapsed())
}

fn lock_statement(taxpayers: &[i64]) -> String {
    let keys: Vec<_> = taxpayers.iter().map(|id| format!("'{id}'")).collect();
    format!(
        "BEGIN; UPDATE lanes SET epoch = epoch WHERE kind = 'taxpayer' AND key IN ({})",
        keys.join(", ")
    )
}

#[on_postgresql]
async fn a_silent_session_costs_its_taxpayers_a_503_and_nobody_else_anything(backend: Backend) {
    let deployment = Deployment::with(backend, &FEW_WRITERS).await;
    let held = [
        deployment.newcomer().await,
        deployment.newcomer().await,
        deployment.newcomer().await,
    ];
    let ids = held.each_ref().map(|one| one.id);
    for one in &held {
        assert_eq!(post(&one.client, "FIRST").await.status, 201);
    }
    let silent = connect(&deployment.postgres.as_ref().unwrap().url()).await;
    silent
        .execute_unprepared(&lock_statement(&ids[..1]))
        .await
        .unwrap();
    let (held_up, neighbour) = tokio::join!(measure_time(post(&held[0].client, "HELD")), async {
        sleep(Duration::from_millis(300)).await;
        measure_time(post(&deployment.taxpayer, "NEIGHBOUR")).await
    });
    assert_come_back(&held_up.0);
    assert!(held_up.1 < LOCK_WAIT_MAX, "{:?}", held_up.1);
    assert_eq!(neighbour.0.status, 201);
    println!(
        "one lane held: its create 503 after {:?}, a neighbour's 201 after {:?}",
        held_up.1, neighbour.1
    );

    silent.execute_unprepared("ROLLBACK").await.unwrap();
    silent
        .execute_unprepared(&lock_statement(&ids))
        .await
        .unwrap();
    let begun = Instant::now();
    let (held_up, read) = tokio::join!(
        join_all(
            held.iter()
                .map(async |one| (post(&one.client, "HELD").await, begun.elapsed()))
        ),
        async {
            sleep(Duration::from_millis(500)).await;
            (deployment.taxpayer.get(INVOICES).await, begun.elapsed())
        }
    );
    assert_eq!(read.0.unwrap().status, 200);
    for (answer, ended) in &held_up {
        assert_come_back(answer);
        assert!(
            read.1 < *ended,
            "a read waits for no writer: {:?} is after {ended:?}",
            read.1
        );
    }
    println!(
        "all writers wait for locks: a read is answered {:?} after their start",
        read.1
    );
    let ready = deployment.taxpayer.get("/health/ready").await.unwrap();
    assert_eq!(ready.status, 200, "{ready:?}");

    silent.execute_unprepared("ROLLBACK").await.unwrap();
    for one in &held {
        assert_eq!(
            post(&one.client, "HELD").await.status,
            201,
            "a refused create left nothing"
        );
    }
}

#[on_postgresql]
async fn a_silent_session_that_holds_an_endpoint_delays_its_taxpayer_only(backend: Backend) {
    let deployment = Deployment::open(backend).await;
    let held = deployment.newcomer().await;
    let neighbours = join_all((1..=TAXPAYERS).map(|_| deployment.newcomer())).await;
    let receiver = Receiver::start();
    deployment
        .set_webhook_for(held.id, &receiver.url_at("/"))
        .await;
    assert_eq!(post(&held.client, "FIRST").await.status, 201);
    let silent = connect(&deployment.postgres.as_ref().unwrap().url()).await;
    let lock_endpoint = format!(
        "BEGIN; UPDATE lanes SET epoch = epoch WHERE kind = 'endpoint' AND key = '{}'",
        held.id
    );
    silent.execute_unprepared(&lock_endpoint).await.unwrap();
    let is_over = AtomicBool::new(false);
    let post_held = async {
        let answer = measure_time(post(&held.client, "HELD")).await;
        is_over.store(true, Ordering::SeqCst);
        answer
    };
    let creates = neighbours.iter().map(async |one| {
        let mut slowest = Duration::ZERO;
        for number in 0.. {
            if is_over.load(Ordering::SeqCst) {
                break;
            }
            let (answer, elapsed) =
                measure_time(post(&one.client, &format!("NEIGHBOUR{number}"))).await;
            assert_eq!(answer.status, 201, "{answer:?}");
            slowest = slowest.max(elapsed);
        }
        slowest
    });
    let (delayed, slowest) = tokio::join!(post_held, join_all(creates));
    let slowest = slowest.into_iter().max().unwrap();
    assert_come_back(&delayed.0);
    println!(
        "an endpoint's lane held: its taxpayer's create 503 after {:?}, the slowest of the others {slowest:?}",
        delayed.1
    );
    assert!(
        slowest < delayed.1 / 2,
        "nobody else waits for the lane: {slowest:?}"
    );
    silent.execute_unprepared("ROLLBACK").await.unwrap();
    assert_eq!(
        post(&held.client, "HELD").await.status,
        201,
        "a refused create left nothing"
    );
    deployment.intact_events().await;
}

#[on_postgresql]
async fn a_replica_frozen_inside_a_transaction_holds_its_taxpayer_up_for_seconds(backend: Backend) {
    let deployment = Deployment::open(backend).await;
    let (second, there) = deployment.another_process("second").await;
    let before = there.create_invoice(&invoice_numbered("BEFORE")).await;
    let url = deployment.postgres.as_ref().unwrap().url();
    let gate = connect(&url).await;
    let queries = DatabaseQueries::open(&deployment).await;
    // The replica waits inside its transaction, which holds the lane, is frozen, and only then is given the lock.
    gate.execute_unprepared("BEGIN; LOCK TABLE invoices IN SHARE MODE")
        .await
        .unwrap();
    let frozen = tokio::spawn({
        let there = there.clone();
        async move { there.create(&invoice_numbered("FROZEN")).await }
    });
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("a transaction that waits", async || {
        (queries.number(waiting).await > 0).then_some(())
    })
    .await;
    second.signal("STOP");
    gate.execute_unprepared("ROLLBACK").await.unwrap();
    let idle = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
        AND state = 'idle in transaction' AND pid <> pg_backend_pid()";
    eventually("a frozen transaction", async || {
        (queries.number(idle).await > 0).then_some(())
    })
    .await;

    let begun = Instant::now();
    let mut refused = 0;
    let created = eventually("a create at the other replica", async || {
        let answer = post(&deployment.taxpayer, "ELSEWHERE").await;
        if answer.status == 503 {
            assert_come_back(&answer);
            refused += 1;
        }
        (answer.status == 201).then_some(answer)
    })
    .await;
    println!(
        "a replica frozen in a transaction: 201 at the other after {:?}, 503 before that: {refused}",
        begun.elapsed()
    );
    second.signal("CONT");
    // Its own caller gets an answer, and the same call gives the one invoice that there is.
    let _ = frozen.await.unwrap();
    let again = eventually("a create at the replica that goes on", async || {
        there.create(&invoice_numbered("FROZEN")).await
    })
    .await;
    assert_eq!(
        deployment
            .taxpayer
            .create(&invoice_numbered("FROZEN"))
            .await
            .unwrap()
            .1,
        again.1
    );
    assert_eq!(
        there.create(&invoice_numbered("BEFORE")).await.unwrap().1,
        before
    );
    assert_eq!(created.body["data"]["invoice_no"], "ELSEWHERE");
    deployment.intact_events().await;
}

#[on_postgresql]
async fn when_all_connections_fall_silent_creates_flow_again_without_a_restart(backend: Backend) {
    let proxy = Proxy::start(&server()).await;
    let deployment = Deployment::behind(&proxy, backend).await;
    let taxpayers = join_all((1..=TAXPAYERS).map(|_| deployment.newcomer())).await;
    let clients: Vec<_> = taxpayers.into_iter().map(|one| one.client).collect();
    let is_over = AtomicBool::new(false);
    let load = join_all(clients.iter().map(|client| write_until(client, &is_over)));
    let silenced = async {
        sleep(LOAD_SPAN).await;
        let at = Instant::now();
        println!("{} connections fall silent under load", proxy.silence());
        eventually("a create at each taxpayer", async || {
            let answers = join_all((0..).zip(&clients).map(
                async |(number, client): (usize, _)| post(client, &format!("PROBE{number}")).await,
            ))
            .await;
            answers
                .iter()
                .all(|answer| answer.status < 300)
                .then_some(())
        })
        .await;
        println!(
            "creates of all {TAXPAYERS} taxpayers flow again after {:?}",
            at.elapsed()
        );
        sleep(LOAD_SPAN).await;
        is_over.store(true, Ordering::SeqCst);
    };
    let (written, ()) = tokio::join!(load, silenced);
    let mut acknowledged = 0;
    for (client, created) in clients.iter().zip(written) {
        acknowledged += created.len();
        for one in &created {
            let (status, found) = client
                .create(&invoice_numbered(&one.invoice_no))
                .await
                .unwrap();
            assert_eq!(
                (status, &found),
                (200, one),
                "what was acknowledged is there"
            );
        }
        let ids: BTreeSet<_> = created.iter().map(|one| one.id).collect();
        assert_eq!(ids.len(), created.len(), "and once");
    }
    println!("{acknowledged} creates acknowledged, none lost or doubled");
    deployment.intact_events().await;
}

/// Creates invoices one after the other; gives those that were acknowledged. Each call has an answer.
async fn write_until(client: &Client, is_over: &AtomicBool) -> Vec<Created> {
    let mut created = Vec::new();
    for number in 0.. {
        if is_over.load(Ordering::SeqCst) {
            break;
        }
        let answer = post(client, &format!("LOAD{number}")).await;
        assert!([200, 201, 500, 503].contains(&answer.status), "{answer:?}");
        if answer.status == 201 {
            let text = |field: &str| answer.body["data"][field].as_str().unwrap().to_owned();
            let id = answer.body["data"]["id"].as_i64().unwrap();
            created.push(Created {
                id,
                irn: text("irn"),
                invoice_no: text("invoice_no"),
            });
        }
    }
    created
}

#[on_postgresql]
async fn a_process_whose_database_is_frozen_stops_in_bounded_time(backend: Backend) {
    let proxy = Proxy::start(&server()).await;
    let mut deployment = Deployment::behind(&proxy, backend).await;
    let is_over = AtomicBool::new(false);
    let clients: Vec<_> = join_all((1..=4).map(|_| deployment.newcomer())).await;
    let load = join_all(clients.iter().map(|one| call_until(&one.client, &is_over)));
    let stop = async {
        sleep(LOAD_SPAN).await;
        proxy.freeze();
        sleep(Duration::from_millis(200)).await;
        let begun = Instant::now();
        deployment.service.signal("TERM");
        let status = deployment.service.wait_for_end().await;
        is_over.store(true, Ordering::SeqCst);
        println!(
            "a stop with a frozen database: {status} after {:?}",
            begun.elapsed()
        );
        status
    };
    let (_, status) = tokio::join!(load, stop);
    let output = deployment.service.output();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(!output.contains("panicked"), "{output}");
}

#[on_postgresql]
async fn a_process_that_is_stopped_under_load_drops_nothing_outside_of_its_runtime(
    backend: Backend,
) {
    let mut deployment = Deployment::open(backend).await;
    let clients: Vec<_> = join_all((1..=6).map(|_| deployment.newcomer())).await;
    for round in 0..3 {
        let is_over = AtomicBool::new(false);
        let load = join_all(clients.iter().flat_map(|one| {
            [
                call_until(&one.client, &is_over),
                call_until(&one.client, &is_over),
            ]
        }));
        let stop = async {
            sleep(LOAD_SPAN).await;
            let begun = Instant::now();
            deployment.service.signal("TERM");
            let status = deployment.service.wait_for_end().await;
            is_over.store(true, Ordering::SeqCst);
            println!(
                "stop {round} under load: {status} after {:?}",
                begun.elapsed()
            );
            status
        };
        let (_, status) = tokio::join!(load, stop);
        let output = deployment.service.output();
        assert_eq!(status.code(), Some(0), "{output}");
        assert!(!output.contains("panicked"), "{output}");
        assert!(!output.contains("failed to give back"), "{output}");
        deployment.service.restart().await;
    }
    deployment.intact_events().await;
}

/// Creates and lists without a pause until it is over; calls that find nobody are made again.
async fn call_until(client: &Client, is_over: &AtomicBool) {
    for number in 0.. {
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        let body = invoice_numbered(&format!("STOP{number}"));
        let (created, listed) = tokio::join!(
            client.call(Method::POST, INVOICES, Some(&body)),
            client.get(INVOICES)
        );
        if created.is_none() && listed.is_none() {
            sleep(Duration::from_millis(20)).await;
        }
    }
}
