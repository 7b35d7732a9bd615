//! What was answered with a 2xx is there after any kill, once; what was not answered may be sent again.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rust_decimal::Decimal;
use serde_json::Value;
use testkit::documents::invoice_numbered;
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::client::{Client, Created};
use crate::support::deployment::Deployment;

const WRITERS: usize = 4;
const KILLS: usize = 5;
const SEED: u64 = 20_260_115;
/// After no answer: the process may be down.
const PAUSE_WITHOUT_ANSWER: Duration = Duration::from_millis(40);

/// Lets writers write while the process is killed at moments left to chance; gives what each of them did.
async fn write_under_kills<T: Send + 'static>(
    deployment: &mut Deployment,
    write: impl Write<T>,
) -> Vec<T> {
    let is_over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let client = deployment.taxpayer.clone();
            let is_over = Arc::clone(&is_over);
            let write = write.clone();
            tokio::spawn(async move {
                let mut written = Vec::new();
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    number += 1;
                    let (done, is_answered) =
                        write.write(&client, format!("W{writer}N{number}")).await;
                    written.push(done);
                    if !is_answered {
                        sleep(PAUSE_WITHOUT_ANSWER).await;
                    }
                }
                written
            })
        })
        .collect();
    let mut chance = StdRng::seed_from_u64(SEED);
    for _ in 0..KILLS {
        sleep(Duration::from_millis(chance.random_range(100..500))).await;
        deployment.restart_after_kill().await;
    }
    is_over.store(true, Ordering::Relaxed);
    join_all(writers)
        .await
        .into_iter()
        .flat_map(Result::unwrap)
        .collect()
}

/// One write; with what it did comes whether it was answered.
trait Write<T>: Clone + Send + 'static {
    fn write(&self, client: &Client, name: String) -> impl Future<Output = (T, bool)> + Send;
}

#[derive(Clone)]
struct Create;

impl Write<(String, Option<(u16, Created)>)> for Create {
    async fn write(
        &self,
        client: &Client,
        name: String,
    ) -> ((String, Option<(u16, Created)>), bool) {
        let answer = client.create(&invoice_numbered(&name)).await;
        let is_answered = answer.is_some();
        ((name, answer), is_answered)
    }
}

#[each_database]
async fn creates_survive_kills(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    let written = write_under_kills(&mut deployment, Create).await;
    let stored = stored_invoices(&deployment.taxpayer).await;
    let mut unanswered = Vec::new();
    let mut answered = 0;
    for (invoice_no, answer) in &written {
        let Some((status, created)) = answer else {
            unanswered.push(invoice_no);
            continue;
        };
        answered += 1;
        assert_eq!(*status, 201, "{invoice_no} is new");
        assert_eq!(
            stored.get(invoice_no),
            Some(&created.id),
            "{invoice_no} was answered and must be there"
        );
    }
    assert!(answered > KILLS, "the writers came to write");
    let there = unanswered
        .iter()
        .filter(|invoice_no| stored.contains_key(**invoice_no))
        .count();
    for invoice_no in &unanswered {
        let (status, created) = deployment
            .taxpayer
            .create(&invoice_numbered(invoice_no))
            .await
            .unwrap();
        let known = stored.get(*invoice_no);
        assert_eq!(
            status,
            if known.is_some() { 200 } else { 201 },
            "{invoice_no} sent again"
        );
        assert!(
            known.is_none_or(|id| *id == created.id),
            "{invoice_no} has one id"
        );
        assert_eq!(
            (&created.invoice_no, created.irn.split('-').next()),
            (*invoice_no, Some(invoice_no.as_str()))
        );
    }
    let events = deployment.intact_events().await;
    let created = events
        .iter()
        .filter(|event| event["type"] == "invoice.created");
    let irns: Vec<_> = created
        .map(|event| event["irn"].as_str().unwrap())
        .collect();
    assert_eq!(
        irns.len(),
        stored_invoices(&deployment.taxpayer).await.len(),
        "an event for each invoice"
    );
    assert_eq!(
        irns.iter().collect::<BTreeSet<_>>().len(),
        irns.len(),
        "each was created once"
    );
    println!(
        "{backend:?}: {KILLS} kills, {answered} creates answered and there, {} unanswered, {there} of them there",
        unanswered.len()
    );
}

/// The ids of all invoices by their numbers; a number that comes twice fails.
async fn stored_invoices(client: &Client) -> BTreeMap<String, i64> {
    let mut stored = BTreeMap::new();
    for page in 1.. {
        let path = format!("/v1/tax-payers/invoices?per_page=100&page={page}");
        let answer = client.get(&path).await.unwrap();
        let rows = rows(&answer.body).clone();
        for row in &rows {
            let number = row["invoice_no"].as_str().unwrap().to_owned();
            let twin = stored.insert(number, row["id"].as_i64().unwrap());
            assert_eq!(twin, None, "{} is there twice", row["invoice_no"]);
        }
        if rows.is_empty() {
            break;
        }
    }
    stored
}

/// The rows of a page.
fn rows(body: &Value) -> &Vec<Value> {
    body["data"]
        .as_array()
        .or_else(|| body["data"]["data"].as_array())
        .expect("a list")
}

#[derive(Clone)]
struct Pay {
    irn: String,
}

impl Write<(String, Option<u16>)> for Pay {
    async fn write(&self, client: &Client, name: String) -> ((String, Option<u16>), bool) {
        let status = client
            .pay_one(&self.irn, &name)
            .await
            .map(|answer| answer.status);
        ((name, status), status == Some(200))
    }
}

#[each_database]
async fn payments_survive_kills(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    let created = deployment
        .taxpayer
        .create_invoice(&invoice_numbered("PAID1"))
        .await;
    assert_eq!(
        deployment
            .taxpayer
            .set_status(&created.irn, "approved")
            .await
            .unwrap()
            .status,
        200
    );
    let written = write_under_kills(
        &mut deployment,
        Pay {
            irn: created.irn.clone(),
        },
    )
    .await;

    let events = deployment.intact_events().await;
    let payments: Vec<_> = events
        .iter()
        .filter(|event| {
            event["type"] == "payment.status-updated" && event["irn"] == created.irn.as_str()
        })
        .map(|event| &event["data"])
        .collect();
    let references: Vec<_> = payments
        .iter()
        .map(|payment| payment["reference"].as_str().unwrap())
        .collect();
    let distinct: BTreeSet<_> = references.iter().copied().collect();
    assert_eq!(
        distinct.len(),
        references.len(),
        "no payment is recorded twice"
    );
    let mut accepted = 0;
    let mut unanswered = 0;
    for (reference, status) in &written {
        match status {
            Some(200) => {
                accepted += 1;
                assert!(
                    distinct.contains(reference.as_str()),
                    "{reference} was accepted and must be there"
                );
            }
            Some(422) => assert!(
                !distinct.contains(reference.as_str()),
                "{reference} was refused"
            ),
            _ => unanswered += 1,
        }
    }
    let last = payments.last().expect("payments");
    let paid = amount(&last["amount_paid"]);
    let payable = amount(&last["payable_amount"]);
    assert_eq!(paid, Decimal::from(payments.len()), "each was 1.00");
    assert_eq!(payable, Decimal::from(1075));
    assert!(paid <= payable, "{paid} of {payable}");
    assert!(
        Decimal::from(accepted) <= paid && paid <= Decimal::from(accepted + unanswered),
        "{accepted} ≤ {paid}"
    );
    println!(
        "{backend:?}: {KILLS} kills, {accepted} payments answered, {unanswered} not, {paid} paid of {payable}"
    );
}

pub(crate) fn amount(value: &Value) -> Decimal {
    Decimal::from_str(value.to_string().trim_matches('"')).unwrap()
}
