//! Somebody without a key opens more connections than the process may open files, each with a form that never comes to
//! its end. Health probes, calls of the API and the sign-in of an operator are answered all the same, from the same
//! address. Prints how long they took.
//!
//! `EINVOICE_UNFINISHED_FORMS` says how many forms: 2,300 in the ordinary run.

use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use reqwest::StatusCode;
use reqwest::redirect::Policy;
use serde_json::Value;
use testkit::Backend;
use testkit::each_database;
use testkit::patience::PATIENCE;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::deployment::Deployment;
use crate::support::service::OPEN_FILES;
use crate::support::size::size;

const FORM: &str = "POST /sign-in HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\n\
                    content-length: 60000\r\n\r\nemail=";
const AT_ONCE: usize = 64;

#[each_database]
async fn unfinished_forms_keep_nobody_out(backend: Backend) {
    let forms = size("EINVOICE_UNFINISHED_FORMS", 2_300);
    rlimit::increase_nofile_limit(forms as u64 + 1_024).unwrap();
    let deployment = Deployment::with(backend, &[(OPEN_FILES, "2048")]).await;
    let (email, password) = operator(&deployment);
    let address = deployment
        .service
        .url()
        .strip_prefix("http://")
        .unwrap()
        .to_owned();
    let open = async || {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        // The service may have closed the connection already, since its place was needed.
        let _ = stream.write_all(FORM.as_bytes()).await;
        stream
    };
    let held: Vec<_> = stream::iter(0..forms)
        .map(|_| open())
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;

    for _ in 0..3 {
        let slowest = everybody_is_served(&deployment, &email, &password).await;
        println!(
            "{backend:?}: {} forms open, the slowest answer after {slowest:?}",
            held.len()
        );
    }
    let more = async {
        let again = stream::iter(0..forms)
            .map(|_| open())
            .buffer_unordered(AT_ONCE);
        again.collect::<Vec<_>>().await.len()
    };
    let (more, slowest) = tokio::join!(more, everybody_is_served(&deployment, &email, &password));
    println!("{backend:?}: while {more} more came, the slowest answer after {slowest:?}");
}

/// Email and password of a new operator.
fn operator(deployment: &Deployment) -> (String, String) {
    let email = "door@einvoice.example";
    let done = deployment
        .service
        .call(&["operator", "create", "--email", email])
        .output()
        .unwrap();
    let made: Value = strict_json::from_untrusted(&done.stdout).expect("an operator");
    (
        email.to_owned(),
        made["password"].as_str().unwrap().to_owned(),
    )
}

/// A probe, a call of the API and a sign-in, each on a connection of its own. Gives the slowest.
async fn everybody_is_served(deployment: &Deployment, email: &str, password: &str) -> Duration {
    let client = || {
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .timeout(PATIENCE);
        client.redirect(Policy::none()).build().unwrap()
    };
    let root = deployment.service.url();
    let invoices = client().get(format!("{root}/v1/tax-payers/invoices"));
    let form = url::form_urlencoded::Serializer::new(String::new());
    let form = { form }
        .extend_pairs([("email", email), ("password", password)])
        .finish();
    let sign_in = client().post(format!("{root}/sign-in")).body(form);
    let requests = [
        (client().get(format!("{root}/health/live")), StatusCode::OK),
        (
            invoices.header("x-api-key", deployment.taxpayer.key()),
            StatusCode::OK,
        ),
        (
            sign_in.header("content-type", "application/x-www-form-urlencoded"),
            StatusCode::SEE_OTHER,
        ),
    ];
    let mut slowest = Duration::ZERO;
    for (request, expected) in requests {
        let begun = Instant::now();
        assert_eq!(request.send().await.unwrap().status(), expected);
        slowest = slowest.max(begun.elapsed());
    }
    slowest
}
