//! Two processes on one PostgreSQL: whichever is asked, there is one writer, one run and one log.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use reqwest::Method;
use sandbox::{FaultKind, Operation};
use serde_json::json;
use testkit::documents::{Registration, invoice_numbered, invoice_with_price, submission};
use testkit::patience::eventually;
use testkit::{Backend, on_postgresql};

use crate::support::client::{Client, Created, assert_gapless, kinds};
use crate::support::deployment::Deployment;
use crate::support::service::Service;

/// Requests under way at a time.
const AT_ONCE: usize = 64;
const RUNS: usize = 10;
/// As many calls of a kind as a process makes at once for one taxpayer before it knows how many the authority bears:
/// of four places one is for the others.
const HELD_UP_RUNS: usize = 3;
/// Rotations while requests go on, and how many requests are accepted before each.
const ROTATIONS: usize = 3;
const ACCEPTED_MIN: usize = 10;
/// Longer than it takes to have all runs under way.
const ANSWER_DELAY: Duration = Duration::from_secs(6);

#[on_postgresql]
async fn two_processes_share_one_database(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    let (mut second, client) = deployment.another_process("second").await;
    let both = [deployment.taxpayer.clone(), client];
    one_of_many_twins_is_created(&both).await;
    payments_stop_at_the_payable(&both).await;
    each_invoice_is_signed_once(&deployment, &both).await;
    a_process_that_wakes_too_late_changes_nothing(&deployment, (&second, &both[1])).await;
    the_runs_of_a_dead_process_are_finished(&deployment, &mut second, &both[1]).await;
    deployment.intact_events().await;
    second.restart().await;
    a_rotated_key_is_refused_at_once(&mut deployment, &second).await;
    a_stopped_process_does_not_keep_a_rotated_key(&mut deployment, &second).await;
    deployment.intact_events().await;
}

async fn one_of_many_twins_is_created(both: &[Client; 2]) {
    let body = invoice_numbered("TWIN1");
    let answers = join_all((0..AT_ONCE).map(|at| both[at % 2].create(&body))).await;
    let answers: Vec<_> = answers.into_iter().map(Option::unwrap).collect();
    assert_eq!(
        answers.iter().filter(|(status, _)| *status == 201).count(),
        1,
        "one is new"
    );
    assert!(
        answers.iter().all(|(_, created)| *created == answers[0].1),
        "all name the same invoice"
    );
    let [first, _] = both;
    let events = first.events().await;
    assert_eq!(kinds(&events, &answers[0].1.irn), ["invoice.created"]);
}

async fn payments_stop_at_the_payable(both: &[Client; 2]) {
    let created = both[0].create_invoice(&invoice_with_price("50", "2")).await;
    assert_eq!(
        both[1]
            .set_status(&created.irn, "approved")
            .await
            .unwrap()
            .status,
        200
    );
    let payments = stream::iter(0..500).map(|at| {
        let client = &both[at % 2];
        let irn = &created.irn;
        async move { client.pay_one(irn, &format!("P{at}")).await.unwrap() }
    });
    let answers: Vec<_> = payments.buffer_unordered(AT_ONCE).collect().await;
    let accepted = answers.iter().filter(|answer| answer.status == 200).count();
    let refused = answers
        .iter()
        .filter(|answer| answer.body["error_code"] == "PAYMENT_EXCEEDS_PAYABLE");
    assert_eq!((accepted, refused.count()), (100, 400));
}

async fn each_invoice_is_signed_once(deployment: &Deployment, both: &[Client; 2]) {
    let mut invoices = Vec::new();
    for number in 0..RUNS {
        let invoice_no = format!("SHARED{number}");
        let created = both[0].create_invoice(&invoice_numbered(&invoice_no)).await;
        let body = submission(&Registration::demo(), &invoice_no);
        join_all((0..4).map(|at| both[at % 2].start_run("submit", &body))).await;
        invoices.push(created);
    }
    for created in &invoices {
        both[1].wait_until_succeeded(&created.irn, "submit").await;
    }
    let events = both[0].events().await;
    assert_gapless(&events);
    let mut tried = 0;
    for created in &invoices {
        tried += deployment.assert_done(created, &events, false).await;
    }
    println!("two processes: {RUNS} invoices submitted over both, signatures tried {tried}");
}

/// Stopped for longer than its leases last, it finds its runs taken over: its late outcomes count for nothing.
async fn a_process_that_wakes_too_late_changes_nothing(
    deployment: &Deployment,
    second: (&Service, &Client),
) {
    let (service, client) = second;
    let invoices = start_held_up_runs(deployment, client, "SLEEPER").await;
    service.signal("STOP");
    let mut taken_over = 0;
    for created in &invoices {
        let run = deployment
            .taxpayer
            .wait_until_succeeded(&created.irn, "submit")
            .await;
        taken_over += usize::from(run["resolved_by"] == "download");
    }
    assert!(taken_over > 0, "the stopped process drove none");
    service.signal("CONT");
    let later = client.create_invoice(&invoice_numbered("AWAKE1")).await;
    client
        .start_run("submit", &submission(&Registration::demo(), "AWAKE1"))
        .await;
    client.wait_until_succeeded(&later.irn, "submit").await;
    let events = client.events().await;
    for created in invoices.iter().chain([&later]) {
        deployment.assert_done(created, &events, false).await;
    }
    println!(
        "two processes: {HELD_UP_RUNS} runs, {taken_over} of them taken over from a process that woke up later"
    );
}

/// Starts runs at one process and waits until the authority works on all their signatures.
async fn start_held_up_runs(deployment: &Deployment, client: &Client, name: &str) -> Vec<Created> {
    let mut invoices = Vec::new();
    for number in 0..HELD_UP_RUNS {
        let invoice_no = format!("{name}{number}");
        let created = client.create_invoice(&invoice_numbered(&invoice_no)).await;
        deployment.order_late(
            FaultKind::Latency,
            Operation::Sign,
            &created.irn,
            ANSWER_DELAY,
        );
        client
            .start_run("submit", &submission(&Registration::demo(), &invoice_no))
            .await;
        invoices.push(created);
    }
    eventually("every signature in flight", async || {
        let mut pending = invoices
            .iter()
            .map(|created| deployment.pending_calls(Operation::Sign, &created.irn));
        pending.all(|count| count == 1).then_some(())
    })
    .await;
    invoices
}

async fn the_runs_of_a_dead_process_are_finished(
    deployment: &Deployment,
    second: &mut Service,
    client: &Client,
) {
    let invoices = start_held_up_runs(deployment, client, "ORPHAN").await;
    second.kill_9();
    let mut taken_over = 0;
    for created in &invoices {
        let run = deployment
            .taxpayer
            .wait_until_succeeded(&created.irn, "submit")
            .await;
        taken_over += usize::from(run["resolved_by"] == "download");
    }
    assert!(taken_over > 0, "the dead process drove none");
    let events = deployment.taxpayer.events().await;
    for created in &invoices {
        deployment.assert_done(created, &events, false).await;
    }
    println!(
        "two processes: {HELD_UP_RUNS} runs, {taken_over} of them taken over from a dead process"
    );
}

async fn a_rotated_key_is_refused_at_once(deployment: &mut Deployment, second: &Service) {
    for _ in 0..ROTATIONS {
        let old = [
            deployment.taxpayer.clone(),
            deployment.taxpayer.at(second.url()),
        ];
        let requests = Requests::default();
        let ((), new) = tokio::join!(requests.send_until_over(&old), async {
            requests.wait_until_accepted().await;
            let new = rotate_key(deployment).await;
            let answers = join_all(old.iter().map(may_read)).await;
            requests.stop();
            assert_eq!(answers, [false, false], "the old key, here and elsewhere");
            new
        });
        deployment.taxpayer = Client::new(deployment.service.url(), &new);
        assert!(
            may_read(&deployment.taxpayer.at(second.url())).await,
            "the new key elsewhere"
        );
    }
}

/// A process that cannot answer delays the rotation until it has lost its lease.
async fn a_stopped_process_does_not_keep_a_rotated_key(
    deployment: &mut Deployment,
    second: &Service,
) {
    let old = [
        deployment.taxpayer.clone(),
        deployment.taxpayer.at(second.url()),
    ];
    let requests = Requests::default();
    tokio::join!(requests.send_until_over(&old), async {
        requests.wait_until_accepted().await;
        requests.stop();
    });
    second.signal("STOP");
    let begun = Instant::now();
    let new = rotate_key(deployment).await;
    println!(
        "two processes: a rotation beside a stopped process took {:?}",
        begun.elapsed()
    );
    second.signal("CONT");
    assert_eq!(
        join_all(old.iter().map(may_read)).await,
        [false, false],
        "the old key, here and elsewhere"
    );
    deployment.taxpayer = Client::new(deployment.service.url(), &new);
}

async fn rotate_key(deployment: &Deployment) -> String {
    let path = format!(
        "/v1/system-integrators/taxpayers/{}/api-key/rotate",
        deployment.taxpayer_id()
    );
    let answer = deployment
        .integrator
        .call(Method::POST, &path, Some(&json!({})))
        .await
        .unwrap();
    assert_eq!(answer.status, 200);
    answer.body["data"]["api_key"]
        .as_str()
        .expect("the new key")
        .to_owned()
}

async fn may_read(client: &Client) -> bool {
    let status = client.get("/v1/tax-payers/invoices").await.unwrap().status;
    // Too many refused requests are answered with 429.
    assert!([200, 401, 429].contains(&status), "{status}");
    status == 200
}

/// Requests that go on beside what a test does.
#[derive(Default)]
struct Requests {
    accepted: AtomicUsize,
    is_over: AtomicBool,
}

impl Requests {
    /// Asks both processes in turn, so that both have the key in memory.
    async fn send_until_over(&self, both: &[Client; 2]) {
        while !self.is_over.load(Ordering::SeqCst) {
            for client in both {
                self.accepted
                    .fetch_add(usize::from(may_read(client).await), Ordering::SeqCst);
            }
        }
    }

    async fn wait_until_accepted(&self) {
        let look = async || (self.accepted.load(Ordering::SeqCst) >= ACCEPTED_MIN).then_some(());
        eventually("accepted requests", look).await;
    }

    fn stop(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}
