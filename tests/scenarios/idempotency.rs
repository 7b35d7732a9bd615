//! A payment with an `Idempotency-Key` is paid once: also when the process is killed after the commit and before
//! the answer, and when two processes are asked at once.

use std::collections::BTreeMap;
use std::time::Instant;

use futures_util::future::join_all;
use sea_orm::{ConnectionTrait, DatabaseConnection, Statement};
use serde_json::Value;
use testkit::answer::Answer;
use testkit::documents::invoice_numbered;
use testkit::patience::{PATIENCE, eventually};
use testkit::{Backend, each_database, on_postgresql};
use tokio::task::JoinHandle;

use crate::support::client::{Client, Created};
use crate::support::database::{PostgresDatabase, connect};
use crate::support::deployment::Deployment;

/// Payments under way when the process is killed.
const AT_ONCE: usize = 16;
const ROUNDS: usize = 40;

#[each_database]
async fn a_payment_whose_answer_was_killed_is_paid_once(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    let url = deployment
        .postgres
        .as_ref()
        .map_or_else(|| deployment.sqlite_url(), PostgresDatabase::url);
    let database = connect(&url).await;
    let mut kills = 0;
    let mut repeated = 0;
    let begun = Instant::now();
    while repeated == 0 {
        assert!(
            begun.elapsed() < PATIENCE,
            "of {kills} kills none fell between a commit and its answer"
        );
        kills += 1;
        let created = create_approved(&deployment.taxpayer, &format!("KEYED{kills}")).await;
        let references: Vec<_> = (0..AT_ONCE).map(|n| format!("K{kills}N{n}")).collect();
        let last = last_event(&database).await;
        let payments = pay_all(&deployment.taxpayer, &created, &references);
        while last_event(&database).await == last {}
        deployment.restart_after_kill().await;
        let booked = load_payments(&database).await;
        for (reference, answer) in references.iter().zip(join_all(payments).await) {
            let is_answered = answer.unwrap().is_some();
            let again = pay_until_answered(&deployment.taxpayer, &created, reference).await;
            let Some(payment) = booked.get(reference) else {
                assert!(!is_answered, "{reference} was answered and must be there");
                continue;
            };
            assert_eq!(
                again.headers["idempotent-replayed"], "true",
                "{reference}: {again:?}"
            );
            assert_eq!(
                again.body["data"], payment["invoice"],
                "the answer of that moment"
            );
            repeated += usize::from(!is_answered);
        }
    }
    assert_paid_once(&deployment, kills * AT_ONCE).await;
    println!(
        "{backend:?}: {kills} kills, {repeated} payments committed, not answered, and asked for again"
    );
}

/// The number of the last event, read beside the process.
async fn last_event(database: &DatabaseConnection) -> i64 {
    let text = "SELECT COALESCE(MAX(sequence), 0) AS last FROM events WHERE taxpayer_id = 1";
    let statement = Statement::from_string(database.get_database_backend(), text);
    database
        .query_one_raw(statement)
        .await
        .unwrap()
        .unwrap()
        .try_get("", "last")
        .unwrap()
}

async fn create_approved(client: &Client, invoice_no: &str) -> Created {
    let created = client.create_invoice(&invoice_numbered(invoice_no)).await;
    assert_eq!(
        client
            .set_status(&created.irn, "approved")
            .await
            .unwrap()
            .status,
        200
    );
    created
}

fn pay_all(
    client: &Client,
    created: &Created,
    references: &[String],
) -> Vec<JoinHandle<Option<Answer>>> {
    let pay = |reference: &String| {
        let client = client.clone();
        let irn = created.irn.clone();
        let reference = reference.clone();
        tokio::spawn(async move { client.pay_one_once(&irn, &reference).await })
    };
    references.iter().map(pay).collect()
}

/// The payments of the log by their references, read beside the process.
async fn load_payments(database: &DatabaseConnection) -> BTreeMap<String, Value> {
    let text = "SELECT data FROM events WHERE kind = 'payment.status-updated'";
    let statement = Statement::from_string(database.get_database_backend(), text);
    let rows = database.query_all_raw(statement).await.unwrap();
    let events = rows
        .iter()
        .map(|row| row.try_get::<String>("", "data").unwrap());
    let events = events.map(|data| strict_json::from_trusted::<Value>(&data).unwrap());
    events
        .map(|data| (data["reference"].as_str().unwrap().to_owned(), data))
        .collect()
}

/// Asks until there is the payment's answer.
async fn pay_until_answered(client: &Client, created: &Created, reference: &str) -> Answer {
    eventually("the answer of a payment", async || {
        let answer = client.pay_one_once(&created.irn, reference).await?;
        assert!([200, 409, 503].contains(&answer.status), "{answer:?}");
        (answer.status == 200).then_some(answer)
    })
    .await
}

/// Each reference stands once in the log, and nothing else was paid.
async fn assert_paid_once(deployment: &Deployment, count: usize) {
    let events = deployment.intact_events().await;
    let payments: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "payment.status-updated")
        .collect();
    let mut references: Vec<_> = payments
        .iter()
        .map(|event| event["data"]["reference"].as_str().unwrap())
        .collect();
    references.sort_unstable();
    references.dedup();
    assert_eq!(
        (payments.len(), references.len()),
        (count, count),
        "paid once each"
    );
}

#[on_postgresql]
async fn two_processes_that_are_asked_at_once_pay_once(backend: Backend) {
    let deployment = Deployment::open(backend).await;
    let (_second, elsewhere) = deployment.another_process("second").await;
    let created = create_approved(&deployment.taxpayer, "SHARED1").await;
    let mut carried_out = 0;
    let mut repeated = 0;
    let mut in_progress = 0;
    for round in 0..ROUNDS {
        let reference = format!("R{round}");
        let asked = [
            &deployment.taxpayer,
            &elsewhere,
            &deployment.taxpayer,
            &elsewhere,
        ];
        let answers =
            join_all(asked.map(|client| client.pay_one_once(&created.irn, &reference))).await;
        let answers: Vec<_> = answers.into_iter().map(Option::unwrap).collect();
        let body = &answers
            .iter()
            .find(|answer| answer.status == 200)
            .expect("one is answered")
            .body;
        for answer in &answers {
            match (
                answer.status,
                answer.headers.contains_key("idempotent-replayed"),
            ) {
                (200, is_replayed) => {
                    assert_eq!(answer.body, *body, "one answer");
                    *if is_replayed {
                        &mut repeated
                    } else {
                        &mut carried_out
                    } += 1;
                }
                (409, _) => {
                    assert_eq!(
                        answer.body["error_code"], "IDEMPOTENCY_IN_PROGRESS",
                        "{answer:?}"
                    );
                    in_progress += 1;
                }
                _ => panic!("{answer:?}"),
            }
        }
    }
    assert_eq!(carried_out, ROUNDS);
    assert_paid_once(&deployment, ROUNDS).await;
    println!(
        "two processes: {carried_out} paid once, {repeated} answers given again, {in_progress} asked to wait"
    );
}
