//! A correction that is killed at each of its steps ends by itself: the planned documents are there, each once, and the
//! credit note is signed before the replacement is created.

use std::time::Duration;

use reqwest::Method;
use sandbox::{FaultKind, Operation};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::invoice_numbered;
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::client::kinds;
use crate::support::deployment::Deployment;

/// Long enough that the answer never comes before the kill.
const ANSWER_DELAY: Duration = Duration::from_mins(2);
/// From the start of a correction to the kill: before its lane is claimed, and while its first steps are taken.
const DELAYS_MS: [u64; 4] = [0, 400, 1_200, 2_500];
/// The calls about a document in whose midst the process is killed.
const CALLS: [Operation; 3] = [Operation::IrnValidate, Operation::Sign, Operation::Confirm];

/// A signed invoice and what it should have been.
struct Original {
    number: String,
    path: String,
    wanted: Value,
}

/// A correction that was started, by the number of its original.
struct Corrected {
    number: String,
    path: String,
}

impl Original {
    async fn sign(deployment: &Deployment, number: &str) -> Self {
        let created = deployment.submit(number).await;
        let client = &deployment.taxpayer;
        client.wait_until_succeeded(&created.irn, "submit").await;
        let body = invoice_numbered(number);
        Self {
            number: number.to_owned(),
            path: format!("/v1/tax-payers/invoices/{}/correct", created.id),
            wanted: with(&body, "invoice_lines.0.quantity", json!(3)),
        }
    }

    async fn post(&self, deployment: &Deployment, query: &str) -> Answer {
        let path = format!("{}{query}", self.path);
        let client = &deployment.taxpayer;
        let answer = client.call(Method::POST, &path, Some(&self.wanted)).await;
        answer.expect("an answer")
    }

    /// Returns the IRNs of the documents of the plan.
    async fn planned_irns(&self, deployment: &Deployment) -> Vec<String> {
        let preview = self.post(deployment, "?preview=true").await;
        assert_eq!(preview.status, 200, "{preview:?}");
        let documents = preview.body["data"]["documents"].as_array().unwrap();
        documents
            .iter()
            .map(|document| document["irn"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn start(self, deployment: &Deployment) -> Corrected {
        let answer = self.post(deployment, "").await;
        assert_eq!(answer.status, 202, "{answer:?}");
        Corrected {
            number: self.number,
            path: answer.header("location").to_owned(),
        }
    }
}

async fn wait_until_done(deployment: &Deployment, correction: &Corrected) -> Value {
    eventually("the end of a correction", async || {
        let answer = deployment.taxpayer.get(&correction.path).await?;
        assert_eq!(answer.status, 200, "{answer:?}");
        let data = answer.body["data"].clone();
        (data["state"] == "done").then_some(data)
    })
    .await
}

/// Kills the process while the authority has a call about a document of the correction in hand, once for each document.
async fn kill_in_calls(deployment: &mut Deployment, operation: Operation) -> Corrected {
    let original = Original::sign(deployment, &format!("CALL{operation:?}")).await;
    let irns = original.planned_irns(deployment).await;
    for irn in &irns {
        deployment.order_late(FaultKind::Latency, operation, irn, ANSWER_DELAY);
    }
    let correction = original.start(deployment).await;
    for irn in &irns {
        eventually(&format!("{operation:?} in flight for {irn}"), async || {
            (deployment.pending_calls(operation, irn) > 0).then_some(())
        })
        .await;
        deployment.restart_after_kill().await;
    }
    correction
}

#[each_database]
async fn a_correction_killed_at_each_step_leaves_the_planned_documents(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    let mut corrections = Vec::new();
    for operation in CALLS {
        corrections.push(kill_in_calls(&mut deployment, operation).await);
    }
    for delay in DELAYS_MS {
        let original = Original::sign(&deployment, &format!("AFTER{delay}")).await;
        corrections.push(original.start(&deployment).await);
        sleep(Duration::from_millis(delay)).await;
        deployment.restart_after_kill().await;
    }
    let mut done = Vec::new();
    for correction in &corrections {
        done.push(wait_until_done(&deployment, correction).await);
    }
    let events = deployment.intact_events().await;
    for (correction, data) in corrections.iter().zip(&done) {
        let number = &correction.number;
        let documents = data["documents"].as_array().unwrap();
        let found: Vec<_> = documents
            .iter()
            .map(|document| {
                format!(
                    "{} {} {}",
                    document["kind"], document["invoice_no"], document["signed"]
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                format!("\"credit_note\" \"{number}CN1\" true"),
                format!("\"replacement\" \"{number}R1\" true"),
            ]
        );
        for document in documents {
            let irn = document["irn"].as_str().unwrap();
            let sheet = deployment.authority.state().invoice(irn).unwrap();
            assert_eq!(sheet.sign_count, 1, "one signature for {irn}");
            let created = kinds(&events, irn);
            let created = created.iter().filter(|kind| **kind == "invoice.created");
            assert_eq!(created.count(), 1, "{irn} was created once");
        }
        let at = |document: &Value, kind: &str| {
            let mut events = events.iter();
            events.position(|event| event["irn"] == document["irn"] && event["type"] == kind)
        };
        let signed_at = at(&documents[0], "invoice.submitted");
        assert!(
            signed_at.is_some() && signed_at < at(&documents[1], "invoice.created"),
            "{number}: the replacement came before the credit note was signed"
        );
        let query = format!("/v1/tax-payers/invoices?per_page=100&q={number}");
        let listed = deployment.taxpayer.get(&query).await.expect("a list");
        assert_eq!(
            listed.body["data"]["total"], 3,
            "{number}: no other document"
        );
    }
}
