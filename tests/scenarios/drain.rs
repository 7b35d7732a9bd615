//! SIGTERM: what is under way is finished, the exit is in order, and what could not be finished goes on later.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sandbox::{FaultKind, Operation};
use testkit::documents::{Registration, invoice_numbered, submission};
use testkit::patience::eventually;
use testkit::{Backend, each_database};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::support::deployment::Deployment;
use crate::support::receiver::Behaviour;

const WRITERS: usize = 4;
const WRITES: usize = 200;

#[each_database]
async fn a_process_asked_to_stop_ends_in_order(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    let brief_irn = "BRIEF1-94CD90AA-20260115";
    let long_irn = "LONG1-94CD90AA-20260115";
    deployment.order_late(
        FaultKind::Latency,
        Operation::Sign,
        brief_irn,
        Duration::from_millis(1_500),
    );
    deployment.order_late(
        FaultKind::Latency,
        Operation::Confirm,
        long_irn,
        Duration::from_mins(2),
    );
    let long = deployment.submit("LONG1").await;
    eventually("a confirmation", async || {
        (deployment.pending_calls(Operation::Confirm, &long.irn) == 1).then_some(())
    })
    .await;
    let brief = deployment.submit("BRIEF1").await;
    eventually("a signature", async || {
        (deployment.pending_calls(Operation::Sign, &brief.irn) == 1).then_some(())
    })
    .await;

    let write = async |writer: usize| {
        let mut answered = Vec::new();
        for number in 0..WRITES {
            let body = invoice_numbered(&format!("DRAIN{writer}N{number}"));
            match deployment.taxpayer.create(&body).await {
                Some((status, created)) => {
                    assert_eq!(status, 201);
                    answered.push(created);
                }
                None => break,
            }
        }
        answered
    };
    let stop = async {
        sleep(Duration::from_millis(300)).await;
        deployment.service.signal("TERM");
    };
    let (answered, ()) = tokio::join!(join_all((0..WRITERS).map(write)), stop);
    let status = deployment.service.wait_for_end().await;
    assert_eq!(status.code(), Some(0), "{}", deployment.service.output());

    deployment.service.restart().await;
    let answered: Vec<_> = answered.into_iter().flatten().collect();
    assert!(!answered.is_empty(), "there was something under way");
    for created in &answered {
        let (status, found) = deployment
            .taxpayer
            .create(&invoice_numbered(&created.invoice_no))
            .await
            .unwrap();
        assert_eq!(
            (status, &found),
            (200, created),
            "what was answered is there"
        );
    }
    for created in [&brief, &long] {
        deployment
            .taxpayer
            .wait_until_succeeded(&created.irn, "submit")
            .await;
    }
    let events = deployment.intact_events().await;
    for created in [&brief, &long] {
        deployment.assert_done(created, &events, false).await;
    }
    println!(
        "{backend:?}: exit 0 with {} creates answered before it",
        answered.len()
    );
}

/// A delivery in flight is finished at a stop: it does not come again at the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_in_flight_are_finished() {
    let receiver = Behaviour {
        latency: Duration::from_secs(2),
        ..Behaviour::PROMPT
    }
    .start();
    let mut deployment = Deployment::open(Backend::Sqlite).await;
    deployment.set_webhook(&receiver.url()).await;
    let bodies: Vec<_> = (0..5)
        .map(|number| invoice_numbered(&format!("LASTCALL{number}")))
        .collect();
    join_all(
        bodies
            .iter()
            .map(|body| deployment.taxpayer.create_invoice(body)),
    )
    .await;
    eventually("five notifications", async || {
        (receiver.requests() >= 5).then_some(())
    })
    .await;
    deployment.service.signal("TERM");
    let status = deployment.service.wait_for_end().await;
    assert_eq!(status.code(), Some(0), "{}", deployment.service.output());
    deployment.service.restart().await;
    let last = deployment
        .taxpayer
        .create_invoice(&invoice_numbered("AFTERWARDS"))
        .await;
    eventually("a notification after the start", async || {
        receiver
            .received_notifications()
            .iter()
            .any(|one| one.irn() == last.irn)
            .then_some(())
    })
    .await;
    let ids: Vec<_> = receiver
        .received_notifications()
        .into_iter()
        .map(|one| one.id)
        .collect();
    assert_eq!(
        ids.len(),
        ids.iter().collect::<BTreeSet<_>>().len(),
        "none came twice"
    );
}

/// A connection that is in use is closed by an answer that says so, never while its client sends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_in_use_are_closed_by_an_answer() {
    let mut deployment = Deployment::open(Backend::Sqlite).await;
    let mut connections = Vec::new();
    for _ in 0..WRITERS {
        connections.push(connect(&deployment).await);
    }
    let clients = connections.into_iter().map(async |mut connection| {
        let mut answers = 0;
        loop {
            connection
                .write_all(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n")
                .await
                .unwrap();
            let mut answer = [0; 4_096];
            let length = connection.read(&mut answer).await.unwrap();
            let answer = String::from_utf8_lossy(&answer[..length]).to_ascii_lowercase();
            assert!(
                answer.starts_with("http/1.1 200 "),
                "after {answers} answers: {answer:?}"
            );
            answers += 1;
            if answer.contains("connection: close") {
                return answers;
            }
            sleep(Duration::from_millis(5)).await;
        }
    });
    let stop = async {
        sleep(Duration::from_millis(100)).await;
        deployment.service.signal("TERM");
    };
    let (answers, ()) = tokio::join!(join_all(clients), stop);
    assert!(
        answers.iter().all(|answers| *answers > 1),
        "they were in use: {answers:?}"
    );
    let status = deployment.service.wait_for_end().await;
    assert_eq!(status.code(), Some(0), "{}", deployment.service.output());
}

/// Idle connections are closed soon, while what is under way is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_do_not_hold_up_the_stop() {
    let mut deployment = Deployment::open(Backend::Sqlite).await;
    let irn = "SLOW1-94CD90AA-20260115";
    let late = Duration::from_secs(3);
    deployment.order_late(FaultKind::Latency, Operation::IrnValidate, irn, late);
    let mut idle = connect(&deployment).await;
    let mut unused = connect(&deployment).await;
    idle.write_all(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut answer = [0; 15];
    idle.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    let body = submission(&Registration::demo(), "SLOW1").to_string();
    let mut waiting = deployment
        .taxpayer
        .begin("/v1/app/invoices/submit", "", body.as_bytes(), body.len())
        .await;
    eventually("a call", async || {
        (deployment.pending_calls(Operation::IrnValidate, irn) == 1).then_some(())
    })
    .await;
    let begun = Instant::now();
    deployment.service.signal("TERM");
    for connection in [&mut idle, &mut unused] {
        let mut rest = Vec::new();
        connection.read_to_end(&mut rest).await.unwrap();
    }
    let closed = begun.elapsed();
    assert_eq!(
        deployment.pending_calls(Operation::IrnValidate, irn),
        1,
        "the request is still under way"
    );
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(
        answer.to_ascii_lowercase().contains("connection: close"),
        "{answer}"
    );
    let status = deployment.service.wait_for_end().await;
    assert_eq!(status.code(), Some(0), "{}", deployment.service.output());
    println!(
        "idle connections were closed after {closed:?}; the process ended after {:?}",
        begun.elapsed()
    );
}

async fn connect(deployment: &Deployment) -> TcpStream {
    TcpStream::connect(deployment.service.url().strip_prefix("http://").unwrap())
        .await
        .unwrap()
}

/// A load balancer has time to take a replica out, in which it is not ready and still serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_not_ready_before_it_stops_to_serve() {
    // Longer than the test. A second signal ends the delay.
    let delay = [("EINVOICE__HTTP__DRAIN_DELAY_S", "300")];
    let mut deployment = Deployment::with(Backend::Sqlite, &delay).await;
    deployment.service.signal("TERM");
    eventually("a process that is not ready", async || {
        let ready = deployment.taxpayer.get("/health/ready").await?;
        (ready.status == 503 && ready.body["status"] == "stopping").then_some(())
    })
    .await;
    for number in 0..3 {
        let body = invoice_numbered(&format!("DRAINING{number}"));
        let (status, _) = deployment.taxpayer.create(&body).await.unwrap();
        assert_eq!(status, 201);
    }
    let created = deployment.submit("DRAINING9").await;
    deployment
        .taxpayer
        .wait_until_succeeded(&created.irn, "submit")
        .await;
    deployment.service.signal("TERM");
    let status = deployment.service.wait_for_end().await;
    assert_eq!(status.code(), Some(0), "{}", deployment.service.output());
}
