//! An hour in which nothing is the matter: mixed load from all sides, and no incident at any look. Ten seconds in the
//! ordinary run; `EINVOICE_CALM_S` says how many.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use einvoice::internals::day_at;
use futures_util::future::join_all;
use jiff::tz::Offset;
use serde_json::json;
use testkit::documents::{Registration, invoice_numbered, submission};
use testkit::edit::with;
use testkit::{Backend, each_database};
use timing::clock::{Clock, SystemClock};
use tokio::time::sleep;

use crate::support::client::Client;
use crate::support::deployment::Deployment;
use crate::support::receiver::Behaviour;
use crate::support::size::size;

/// Taxpayers that work at the same time.
const TAXPAYERS: usize = 4;
/// The pause between two rounds of a taxpayer: people and programs do not work without a break.
const PAUSE: Duration = Duration::from_millis(250);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a taxpayer of the load needs.
struct Worker {
    client: Client,
    registration: Registration,
    name: String,
}

impl Worker {
    /// Works until the end, and counts the rounds.
    async fn work(&self, is_over: &AtomicBool, rounds: &AtomicUsize) {
        let mut number = 0;
        while !is_over.load(Ordering::SeqCst) {
            self.round(number).await;
            number += 1;
            rounds.fetch_add(1, Ordering::SeqCst);
            sleep(PAUSE).await;
        }
    }

    /// Creates, submits and pays an invoice and reads what came of it.
    async fn round(&self, number: usize) {
        let invoice_no = format!("{}X{number}", self.name);
        // Older invoices would have missed their deadlines.
        let today = json!(day_at(SystemClock.now(), Offset::UTC).to_string());
        let invoice = with(
            &invoice_numbered(&invoice_no),
            "invoice_date",
            today.clone(),
        );
        let invoice = with(&invoice, "due_date", today.clone());
        let created = self.client.create_invoice(&invoice).await;
        let body = submission(&self.registration, &invoice_no);
        let body = with(&body, "issue_date", today.clone());
        let body = with(&body, "due_date", today);
        let body = with(&body, "irn", json!(created.irn));
        self.client.start_run("submit", &body).await;
        self.client
            .wait_until_succeeded(&created.irn, "submit")
            .await;
        let paid = self
            .client
            .pay_one(&created.irn, &format!("{invoice_no}-1"))
            .await;
        assert!(
            paid.is_some_and(|answer| answer.status < 300),
            "{invoice_no} is paid"
        );
        for path in [
            format!("/v1/tax-payers/invoices/{}", created.id),
            "/v1/tax-payers/invoices".to_owned(),
            "/v1/tax-payers/events?limit=10&after=0".to_owned(),
            "/v1/core/resources/currencies".to_owned(),
        ] {
            let read = self.client.get(&path).await.expect("an answer to a read");
            assert_eq!(read.status, 200, "{path}: {read:?}");
        }
    }
}

#[each_database]
async fn nothing_is_told_while_nothing_is_the_matter(backend: Backend) {
    let span = Duration::from_secs(u64::try_from(size("EINVOICE_CALM_S", 10)).unwrap());
    let deployment = Deployment::open(backend).await;
    let operator = deployment.operator();
    let receiver = Behaviour::PROMPT.start();
    let mut workers = vec![Worker {
        client: deployment.taxpayer.clone(),
        registration: Registration::demo(),
        name: "CALM0".to_owned(),
    }];
    deployment.set_webhook(&receiver.url()).await;
    for number in 1..TAXPAYERS {
        let newcomer = deployment.newcomer().await;
        deployment
            .set_webhook_for(newcomer.id, &receiver.url())
            .await;
        workers.push(Worker {
            client: newcomer.client,
            registration: newcomer.registration,
            name: format!("CALM{number}"),
        });
    }
    let is_over = AtomicBool::new(false);
    let rounds = AtomicUsize::new(0);
    let look = async {
        let begun = Instant::now();
        let mut looks = 0_u32;
        while begun.elapsed() < span {
            let answer = operator.get("/ops/incidents").await.expect("the incidents");
            let told = &answer.body["data"]["incidents"];
            assert_eq!(told, &json!([]), "after {:?}", begun.elapsed());
            looks += 1;
            sleep(LOOK_EVERY).await;
        }
        is_over.store(true, Ordering::SeqCst);
        looks
    };
    let (looks, _) = tokio::join!(
        look,
        join_all(workers.iter().map(|worker| worker.work(&is_over, &rounds)))
    );
    let rounds = rounds.into_inner();
    println!(
        "calm for {span:?}: {rounds} invoices of {TAXPAYERS} taxpayers, {} notifications, {looks} looks, no incident",
        receiver.accepted_count()
    );
    assert!(rounds > 0 && looks > 0 && receiver.accepted_count() > 0);
}
