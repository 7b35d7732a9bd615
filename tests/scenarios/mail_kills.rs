//! kill -9 while refused invoices are told by mail: each refusal is in one mail, and no mail is there twice.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use testkit::patience::eventually;
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::database_queries::DatabaseQueries;
use crate::support::deployment::Deployment;

const REFUSALS: usize = 12;
const KILLS: usize = 3;
/// Every look of the mailer may write a mail, so that the kills come between several.
const AT_ONCE: [(&str, &str); 2] = [
    ("EINVOICE__MAIL__GATHER_S", "0"),
    ("EINVOICE__MAIL__REPEAT_S", "0"),
];

/// Returns the mails about invoices: their messages, without the soft ends of lines that mails have.
fn messages(deployment: &Deployment) -> Vec<String> {
    let files = fs::read_dir(deployment.directory().join("mails"));
    let files = files.into_iter().flatten();
    let texts = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    texts
        .map(|text| text.replace("=\r\n", ""))
        .filter(|text| text.contains("The authority rejected invoice"))
        .collect()
}

/// Returns the numbers of the invoices that a message tells, from its part without markup.
fn rejected_numbers(message: &str) -> Vec<String> {
    let plain = message.split("text/html").next().unwrap();
    let lines = plain.lines().filter(|line| line.starts_with("- "));
    let numbers = lines.filter_map(|line| {
        let (_, rest) = line.split_once("rejected invoice ")?;
        Some(rest.split([':', '.']).next()?.to_owned())
    });
    numbers.collect()
}

/// On PostgreSQL with a second process beside the one that is killed.
#[each_database]
async fn each_refusal_is_told_once(backend: Backend) {
    let mut deployment = Deployment::with(backend, &AT_ONCE).await;
    let second = if backend == Backend::Postgres {
        Some(deployment.another_process("second").await)
    } else {
        None
    };
    // A mail goes only to people who have chosen a password.
    let database = DatabaseQueries::open(&deployment).await;
    database
        .execute("UPDATE contacts SET password_hash = 'x'")
        .await;
    drop(database);
    let numbers: BTreeSet<_> = (0..REFUSALS)
        .map(|number| format!("SBXREJECT{number}"))
        .collect();
    for (index, number) in numbers.iter().enumerate() {
        deployment.submit(number).await;
        if index % (REFUSALS / KILLS) == 1 {
            eventually("the first mail", async || {
                (!messages(&deployment).is_empty()).then_some(())
            })
            .await;
            sleep(Duration::from_millis(200)).await;
            deployment.restart_after_kill().await;
        }
    }
    let all = async || {
        let mails = messages(&deployment);
        let told: Vec<_> = mails
            .iter()
            .flat_map(|mail| rejected_numbers(mail))
            .collect();
        (told.iter().cloned().collect::<BTreeSet<_>>() == numbers).then_some(told)
    };
    let told = eventually("all refusals to be told", all).await;
    assert_eq!(told.len(), REFUSALS, "each is told once: {told:?}");
    drop(second);
}
