//! An import of a large file goes on after a kill in its midst: no invoice is missing, none is there twice, and the counts
//! are right.

use serde_json::{Value, json};
use testkit::documents::invoice_numbered;
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::{Backend, each_database};

use crate::support::client::Client;
use crate::support::deployment::Deployment;

const INVOICES: u64 = 3_000;
/// One invoice of this many is faulty.
const FAULTY: u64 = 100;
const IMPORT: &str = "/v1/tax-payers/invoices/import";

fn file() -> String {
    let lines = (0..INVOICES).map(|number| {
        let body = invoice_numbered(&format!("KILL{number}"));
        let body = match number % FAULTY {
            0 => with(&body, "currency", json!("NOWHERE")),
            _ => body,
        };
        format!("{body}\n")
    });
    lines.collect()
}

async fn read(client: &Client, path: &str) -> Option<Value> {
    let answer = client.get(path).await?;
    assert_eq!(answer.status, 200, "{answer:?}");
    Some(answer.body["data"].clone())
}

#[each_database]
async fn an_import_survives_a_kill_in_its_midst(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    let file = file();
    let started = deployment.taxpayer.send_file(IMPORT, &file).await;
    let started = started.expect("an answer to an import");
    assert_eq!(started.status, 202, "{started:?}");
    let path = started.header("location").to_owned();
    let done_before = eventually("a part of the import", async || {
        let done = read(&deployment.taxpayer, &path).await?["documents_done"].as_u64()?;
        (done > 0).then_some(done)
    })
    .await;
    deployment.restart_after_kill().await;
    let done = eventually("the end of the import", async || {
        let import = read(&deployment.taxpayer, &path).await?;
        (import["state"] == "done").then_some(import)
    })
    .await;
    let faulty = INVOICES / FAULTY;
    for (name, expected) in [
        ("documents", INVOICES),
        ("documents_done", INVOICES),
        ("created", INVOICES - faulty),
        ("duplicates", 0),
        ("failed", faulty),
    ] {
        assert_eq!(done[name], json!(expected), "{name}: {done}");
    }
    let batch_no = done["batch_no"].as_str().unwrap();
    let list = format!("/v1/tax-payers/invoices?per_page=1&batch_no={batch_no}");
    let listed = read(&deployment.taxpayer, &list).await.expect("a list");
    assert_eq!(listed["total"], json!(INVOICES - faulty));
    let errors = format!("{path}/errors");
    let errors = deployment.taxpayer.get(&errors).await.expect("a file");
    assert_eq!(
        errors.text.lines().count(),
        usize::try_from(faulty).unwrap() + 1
    );
    let again = deployment.taxpayer.send_file(IMPORT, &file).await;
    assert_eq!(again.expect("an answer").status, 200, "the same file");

    let events = deployment.intact_events().await;
    let completed = events
        .iter()
        .filter(|event| event["type"] == "invoice.batch-completed");
    assert_eq!(completed.count(), 1);
    let created = events.iter().filter(|event| {
        let number = event["data"]["invoice"]["external_invoice_no"].as_str();
        event["type"] == "invoice.created"
            && number.is_some_and(|number| number.starts_with("KILL"))
    });
    assert_eq!(created.count(), usize::try_from(INVOICES - faulty).unwrap());
    println!("{backend:?}: killed after {done_before} of {INVOICES} invoices");
}
