//! Callers that are answered before their body was read to its end: they are hung up on, whatever they go on to
//! send and however they send it. What little is left of a short body is read, so that its connection stays. Who writes
//! a whole long body before reading anything reads the answer after it.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use testkit::on_sqlite;
use testkit::roles::{BULK, INVOICES, TAXPAYERS};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::support::world::World;

/// More than the service drops and the buffers of both sides hold, and far less than a caller can send who is not
/// stopped.
const TAKEN_MAX: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_mins(1);
const SHORT_PAUSE: Duration = Duration::from_millis(50);
const CHUNKED: &str = "transfer-encoding: chunked";
const ENDLESS: &str = "content-length: 1000000000000";

/// A request that is refused, and the status it is refused with.
struct Refused {
    status: u16,
    line: String,
    headers: Vec<String>,
}

fn refused(status: u16, method: &str, path: &str, headers: &[String]) -> Refused {
    Refused {
        status,
        line: format!("{method} {path} HTTP/1.1"),
        headers: headers.to_vec(),
    }
}

async fn connect(world: &World) -> TcpStream {
    TcpStream::connect(world.root().strip_prefix("http://").unwrap())
        .await
        .unwrap()
}

/// Begins the request, sends one piece of a body after the other until the connection ends, and gives back the
/// answer.
async fn send_for_ever(
    world: &World,
    what: &Refused,
    framing: &str,
    pause: Option<Duration>,
) -> String {
    let mut stream = connect(world).await;
    let lines = [
        &[what.line.clone(), "host: x".to_owned()],
        what.headers.as_slice(),
        &[framing.to_owned()],
    ];
    let head = lines.concat().join("\r\n") + "\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let answer = async {
        let mut answer = Vec::new();
        // A reset after the answer ends it like a close.
        let _ = reader.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    };
    let size = if pause.is_some() { 1 } else { 64 << 10 };
    let piece = match framing {
        CHUNKED => format!("{size:x}\r\n{}\r\n", " ".repeat(size)),
        _ => " ".repeat(size),
    };
    let sending = async {
        let mut taken = 0;
        while let Ok(count) = writer.write(piece.as_bytes()).await {
            taken += count;
            // A piece that was taken in part is finished, so that the body stays well formed.
            if writer.write_all(&piece.as_bytes()[count..]).await.is_err() {
                break;
            }
            assert!(
                taken < TAKEN_MAX,
                "{} took {taken} bytes of a body that it had refused",
                what.line
            );
            if let Some(pause) = pause {
                sleep(pause).await;
            }
        }
    };
    let (answer, ()) = timeout(PATIENCE, async { tokio::join!(answer, sending) })
        .await
        .unwrap_or_else(|_| panic!("{} is never hung up on", what.line));
    answer
}

async fn expect_hung_up_on(world: &World, what: &Refused) {
    for framing in [CHUNKED, ENDLESS] {
        // They wait for the end of their connections together.
        let sending =
            [None, Some(SHORT_PAUSE)].map(|pause| send_for_ever(world, what, framing, pause));
        for answer in join_all(sending).await {
            let status = format!("HTTP/1.1 {} ", what.status);
            assert!(
                answer.starts_with(&status),
                "{}, {framing}: {answer:?}",
                what.line
            );
            assert!(
                answer.to_ascii_lowercase().contains("connection: close"),
                "{answer}"
            );
        }
    }
}

#[on_sqlite]
async fn who_is_refused_before_the_end_of_the_body_is_hung_up_on(world: &World) {
    let key = format!("x-api-key: {}", world.taxpayer().await.key());
    let keyed = [key.clone(), "idempotency-key: endless".to_owned()];
    let text = [key.clone(), "content-type: text/plain".to_owned()];
    let wrong = ["x-api-key: tpk_nobody".to_owned()];
    for what in [
        refused(401, "POST", INVOICES, &[]),
        refused(401, "POST", INVOICES, &wrong),
        refused(401, "POST", BULK, &wrong),
        refused(401, "POST", TAXPAYERS, std::slice::from_ref(&key)),
        refused(401, "POST", TAXPAYERS, &keyed),
        refused(401, "POST", "/ops/reconciliations", &wrong),
        refused(403, "POST", "/v1/app/invoices/submit", &wrong),
        refused(404, "POST", "/nowhere", &keyed),
        refused(404, "POST", "/authority/notifications/not-the-token", &[]),
        refused(405, "DELETE", INVOICES, &keyed),
        refused(415, "POST", INVOICES, &text),
    ] {
        expect_hung_up_on(world, &what).await;
    }
}

#[on_sqlite]
async fn a_body_that_is_too_large_is_read_no_further(world: &World) {
    let key = format!("x-api-key: {}", world.taxpayer().await.key());
    let keyed = [key.clone(), "idempotency-key: too-large".to_owned()];
    for what in [
        refused(413, "POST", INVOICES, &[key]),
        refused(413, "POST", INVOICES, &keyed),
    ] {
        for framing in [CHUNKED, ENDLESS] {
            let answer = send_for_ever(world, &what, framing, None).await;
            assert!(answer.starts_with("HTTP/1.1 413 "), "{framing}: {answer:?}");
        }
    }
}

/// Many clients, such as Python's urllib, read nothing before they have written everything.
#[on_sqlite]
async fn who_reads_only_after_the_whole_body_reads_the_refusal(world: &World) {
    let key = format!("x-api-key: {}", world.taxpayer().await.key());
    let keyed = [key.clone(), "idempotency-key: late".to_owned()];
    let wrong = ["x-api-key: tpk_nobody".to_owned()];
    let text = [key.clone(), "content-type: text/plain".to_owned()];
    for (what, length) in [
        (refused(401, "POST", INVOICES, &[]), 6_000_000),
        (refused(401, "POST", INVOICES, &wrong), 6_000_000),
        (refused(401, "POST", TAXPAYERS, &keyed), 6_000_000),
        (refused(404, "POST", "/nowhere", &keyed), 6_000_000),
        (refused(405, "DELETE", INVOICES, &keyed), 6_000_000),
        (refused(413, "POST", INVOICES, &keyed), 6_000_000),
        (refused(413, "POST", BULK, &keyed), 10_485_761),
        (refused(415, "POST", INVOICES, &text), 6_000_000),
    ] {
        let mut stream = connect(world).await;
        let lines = [
            &[what.line.clone(), "host: x".to_owned()],
            what.headers.as_slice(),
            &[format!("content-length: {length}")],
        ];
        let mut request = (lines.concat().join("\r\n") + "\r\n\r\n").into_bytes();
        request.resize(request.len() + length, b' ');
        stream.write_all(&request).await.unwrap_or_else(|error| {
            panic!("{} is hung up on while it writes: {error}", what.line);
        });
        let mut answer = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut answer))
            .await
            .unwrap()
            .unwrap();
        let answer = String::from_utf8_lossy(&answer);
        let status = format!("HTTP/1.1 {} ", what.status);
        assert!(answer.starts_with(&status), "{}: {answer}", what.line);
    }
}

#[on_sqlite(&[("RATE_LIMIT__REQUESTS_PER_S", "1"), ("RATE_LIMIT__BURST", "20")])]
async fn who_asks_too_often_is_hung_up_on(world: &World) {
    let taxpayer = world.taxpayer().await;
    let key = format!("x-api-key: {}", taxpayer.key());
    let what = refused(
        429,
        "POST",
        INVOICES,
        &[key, "idempotency-key: too-often".to_owned()],
    );
    join_all((0..60).map(async |_| taxpayer.create_invoice(&json!({})).await)).await;
    // Who is let through, since a moment has passed, is refused for the size.
    for _ in 0..5 {
        let answer = send_for_ever(world, &what, CHUNKED, None).await;
        assert!(
            ["HTTP/1.1 413 ", "HTTP/1.1 429 "]
                .iter()
                .any(|line| answer.starts_with(line)),
            "{answer:?}"
        );
    }
}

#[on_sqlite(&[("HTTP__BODY_TIMEOUT_S", "1")])]
async fn who_stalls_in_a_body_is_told_so_and_hung_up_on(world: &World) {
    let key = format!("x-api-key: {}\r\n", world.taxpayer().await.key());
    for (header, status) in [(key.as_str(), "HTTP/1.1 408 "), ("", "HTTP/1.1 401 ")] {
        let mut stream = connect(world).await;
        let head =
            format!("POST {INVOICES} HTTP/1.1\r\nhost: x\r\n{header}content-length: 100\r\n\r\n{{");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A reset after the answer ends it like a close.
        let _ = timeout(PATIENCE, stream.read_to_end(&mut answer))
            .await
            .unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(status), "{answer}");
        assert_eq!(
            answer.contains("REQUEST_TIMEOUT"),
            status.contains("408"),
            "{answer}"
        );
    }
}

/// The connection of a caller that sends little is good for its next request.
#[on_sqlite]
async fn a_short_body_that_nobody_wanted_costs_no_connection(world: &World) {
    let mut stream = connect(world).await;
    for (body, framing) in [
        ("{}", "content-length: 2"),
        ("2\r\n{}\r\n0\r\n\r\n", CHUNKED),
    ] {
        for _ in 0..3 {
            let request = format!("POST {INVOICES} HTTP/1.1\r\nhost: x\r\n{framing}\r\n\r\n{body}");
            stream.write_all(request.as_bytes()).await.unwrap();
            let answer = answer(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 401 "), "{framing}: {answer:?}");
            assert!(
                !answer.to_ascii_lowercase().contains("connection: close"),
                "{answer}"
            );
        }
    }
}

/// One answer whose body is JSON.
async fn answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut piece = [0; 4_096];
    while !text.ends_with('}') {
        let count = timeout(PATIENCE, stream.read(&mut piece))
            .await
            .unwrap()
            .unwrap();
        assert!(count > 0, "the connection has ended: {text:?}");
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    text
}
