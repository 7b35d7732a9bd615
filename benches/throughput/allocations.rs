//! Counts the memory allocations of a request. The service runs in this process, which does nothing else meanwhile.
//! The requests come one after the other from a client that does not allocate.

use std::alloc::System;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use einvoice::app::{self, Application, ServeMode};
use einvoice::config::Settings;
use einvoice::internals::KeyTerms;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use testkit::client::Client;
use testkit::roles::Integrator;

use crate::cases::{Case, Prepared};
use crate::load::Requests;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The number of requests that fill caches first, and of the counted requests after them.
const WARM_UP_REQUESTS: usize = 20;
const COUNTED_REQUESTS: usize = 100;
/// The number of taxpayers that send requests in turn.
const TAXPAYERS: usize = 8;
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The longest wait for an answer.
const ANSWER_WAIT_MAX: Duration = Duration::from_mins(1);

/// Returns the allocations for one item of each wanted case, by the name of the case.
pub(crate) async fn count_for_each_case(
    settings: &Settings,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<(&'static str, f64)> {
    let made = app::create_integrator(
        settings.clone(),
        "Bench".into(),
        "a@bench.example".into(),
        KeyTerms::default(),
    );
    let key = made.await.unwrap()["api_key"].as_str().unwrap().to_owned();
    let application = Application::build(settings, ServeMode::Normal)
        .await
        .unwrap();
    let address = application.address();
    let handle = application.handle();
    let service = actix_rt::spawn(application.run_until_stopped());
    let client = Client::new(format!("http://{address}"));
    let prepared = Prepared::prepare(&client, &Integrator::new(&client, &key), TAXPAYERS).await;
    let mut counts = Vec::new();
    for case in prepared
        .cases()
        .into_iter()
        .filter(|case| is_wanted(case.name))
    {
        let requests: Vec<_> = (0..WARM_UP_REQUESTS + COUNTED_REQUESTS)
            .map(|number| request_bytes(&case.requests, number))
            .collect();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(ANSWER_WAIT_MAX)).unwrap();
        let count = tokio::task::spawn_blocking(move || count_allocations(stream, &requests))
            .await
            .unwrap();
        counts.push((case.name, count / counted_items(&case)));
    }
    handle.stop(true).await;
    service.await.unwrap().unwrap();
    counts
}

fn counted_items(case: &Case) -> f64 {
    f64::from(u32::try_from(COUNTED_REQUESTS * case.items).unwrap())
}

/// Returns the total number of allocations of this process during the counted requests.
fn count_allocations(mut stream: TcpStream, requests: &[Vec<u8>]) -> f64 {
    let mut answer = vec![0; ANSWER_BYTES_MAX];
    let (warm_up, counted) = requests.split_at(WARM_UP_REQUESTS);
    for request in warm_up {
        exchange(&mut stream, request, &mut answer);
    }
    let region = Region::new(ALLOCATOR);
    for request in counted {
        exchange(&mut stream, request, &mut answer);
    }
    f64::from(u32::try_from(region.change().allocations).unwrap())
}

/// Sends a request and reads its answer to the end.
fn exchange(stream: &mut TcpStream, request: &[u8], answer: &mut [u8]) {
    stream.write_all(request).unwrap();
    let mut read = 0;
    let mut end = None;
    while end.is_none_or(|end| read < end) {
        let received = stream.read(&mut answer[read..]).unwrap();
        assert_ne!(
            received,
            0,
            "the service hung up after {}",
            String::from_utf8_lossy(&answer[..read])
        );
        read += received;
        end = end.or_else(|| answer_length(&answer[..read]));
    }
    assert!(
        answer.starts_with(b"HTTP/1.1 20"),
        "{}",
        String::from_utf8_lossy(&answer[..read])
    );
}

/// Returns the length of an answer with its head; `None` if the head has not arrived as a whole.
fn answer_length(answer: &[u8]) -> Option<usize> {
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let name = b"content-length: ";
    let start = answer
        .windows(name.len())
        .position(|window| window.eq_ignore_ascii_case(name))?
        + name.len();
    let digits = answer[start..].split(|byte| *byte == b'\r').next()?;
    Some(head + std::str::from_utf8(digits).ok()?.parse::<usize>().ok()?)
}

/// Returns the bytes of the request with this number.
fn request_bytes(requests: &Requests, number: usize) -> Vec<u8> {
    let (head, body) = requests(number).into_parts();
    let body = body.collect().now_or_never().unwrap().unwrap().to_bytes();
    let mut text = format!(
        "{} {} HTTP/1.1\r\ncontent-length: {}\r\n",
        head.method,
        head.uri,
        body.len()
    )
    .into_bytes();
    for (name, value) in &head.headers {
        text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    text.extend(b"\r\n");
    text.extend(body);
    text
}
