//! A caller asks for lists of large invoices and reads nothing of them. The memory that they take has a bound, the
//! connections are closed after a while, and who reads gets every invoice with every line. Prints how much it took.
//!
//! `EINVOICE_UNREAD_INVOICES` says how many invoices of 1.9 MB are in a list (5 in the ordinary run), and
//! `EINVOICE_UNREAD_LISTS` how many lists are asked for (20).

use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::Backend;
use testkit::documents::invoice_numbered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Duration, sleep};

use crate::support::deployment::Deployment;
use crate::support::size::size;

const LIST: &str = "/v1/tax-payers/invoices?per_page=100";
/// Together 1.9 MB with the names of their fields.
const LINES_PER_INVOICE: usize = 7_000;
const MIB: u64 = 1 << 20;
/// The share of one key (`http.answers_bytes_per_account_max`), and as much beside it for what is being made.
const UNREAD_BYTES_MAX: u64 = (64 + 64) * MIB;
const STALLED_AFTER: (&str, &str) = ("EINVOICE__HTTP__ANSWER_STALLED_S", "3");
/// How long all answers may take to be given up.
const PATIENCE: Duration = Duration::from_mins(1);

fn large_invoice(number: usize) -> Value {
    let mut invoice = invoice_numbered(&format!("LARGE{number}"));
    let line = invoice["invoice_lines"][0].clone();
    let lines = (0..LINES_PER_INVOICE).map(|number| {
        let mut line = line.clone();
        line["item_name"] = json!(format!("Laptop {number} {}", "x".repeat(60)));
        line["item_no"] = json!(format!("LAP-{number}"));
        line
    });
    invoice["invoice_lines"] = lines.collect();
    invoice
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_nobody_reads_take_a_bounded_part_of_the_memory() {
    let invoices = size("EINVOICE_UNREAD_INVOICES", 5);
    let lists = size("EINVOICE_UNREAD_LISTS", 20);
    let deployment = Deployment::with(Backend::Sqlite, &[STALLED_AFTER]).await;
    for number in 0..invoices {
        deployment
            .taxpayer
            .create_invoice(&large_invoice(number))
            .await;
    }
    let before = deployment.service.memory_bytes();
    let mut unread = Vec::new();
    for _ in 0..lists {
        unread.push(ask_for_list(&deployment).await);
    }
    let callers: Vec<_> = unread
        .iter()
        .map(|stream| stream.local_addr().unwrap().port())
        .collect();
    let mut highest = 0;
    let begun = Instant::now();
    while deployment.service.connections(&callers) > 0 {
        assert!(
            begun.elapsed() < PATIENCE,
            "a connection whose client takes nothing is closed"
        );
        highest = highest.max(deployment.service.memory_bytes());
        sleep(Duration::from_millis(50)).await;
    }
    println!(
        "{lists} lists of {invoices} large invoices: {} MiB, before {} MiB",
        highest / MIB,
        before / MIB
    );
    assert!(
        highest.saturating_sub(before) < UNREAD_BYTES_MAX,
        "{highest} bytes, before {before}"
    );

    for mut stream in unread {
        let mut received = Vec::new();
        // The end is a reset where bytes were still on their way.
        let _ = stream.read_to_end(&mut received).await;
        assert!(
            !received.ends_with(b"0\r\n\r\n"),
            "an answer went on although nobody read it"
        );
    }
    assert_every_line_arrives(&deployment, invoices).await;
}

/// Asks for a list, and reads nothing.
async fn ask_for_list(deployment: &Deployment) -> TcpStream {
    let url = deployment.service.url();
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap())
        .await
        .unwrap();
    let key = deployment.taxpayer.key();
    let request = format!("GET {LIST} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn assert_every_line_arrives(deployment: &Deployment, invoices: usize) {
    let listed = deployment.taxpayer.get(LIST).await.unwrap().body["data"].clone();
    let rows = listed["data"].as_array().unwrap();
    assert_eq!(json!(rows.len()), listed["total"]);
    let large: Vec<_> = rows
        .iter()
        .filter(|row| row["invoice_no"].as_str().unwrap().starts_with("LARGE"))
        .collect();
    assert_eq!(large.len(), invoices);
    for row in large {
        assert_eq!(
            row["invoice_lines"].as_array().unwrap().len(),
            LINES_PER_INVOICE
        );
        let body = json!({ "unique_no": row["irn"], "unique_no_type": "IRN" });
        let path = "/v1/tax-payers/invoices/get-by-unique-no";
        let one = deployment
            .taxpayer
            .call(Method::POST, path, Some(&body))
            .await
            .unwrap();
        assert!(
            one.body["data"] == *row,
            "the list shows an invoice as it is"
        );
    }
}
