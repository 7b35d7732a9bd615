//! Tests against server-side request forgery: a private address, however it is written, must get no connection.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use address_policy::{AddressPolicy, UrlFault};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tower::Service;

use crate::attempt::{AttemptOutcome, AttemptResult};
use crate::http::client::{GuardedClient, PostRequest};
use crate::http::connect_policy::{ConnectPolicy, ConnectScope};
use crate::http::request_context::RequestContext;
use crate::http::resolver::{GuardedResolver, Lookup};
use crate::testing::{AfterResponse, TestReceiver};

/// Returns URLs without a scheme. `PORT` stands for the port of the server that must not be reached.
fn address_forms() -> Vec<String> {
    let forms: Value =
        strict_json::from_trusted(include_str!("../../../../tests/forgery/urls.json")).unwrap();
    let groups = forms["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| &group["urls"]);
    let all = groups
        .chain([&forms["names"]])
        .flat_map(|urls| urls.as_array().unwrap());
    all.map(|url| url.as_str().unwrap().to_owned()).collect()
}

/// A resolver that gives the answers listed for a name one after another. The last answer repeats.
#[derive(Debug, Default)]
struct ScriptedLookup(Mutex<HashMap<&'static str, Vec<Vec<IpAddr>>>>);

/// A resolver that gives the same answer for every name.
#[derive(Debug)]
struct FixedLookup(Vec<IpAddr>);

impl Lookup for ScriptedLookup {
    fn addresses(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let mut scripts = self.0.lock().unwrap();
        let answers = scripts.get_mut(name.as_str()).unwrap();
        let answer = if answers.len() > 1 {
            answers.remove(0)
        } else {
            answers[0].clone()
        };
        Box::pin(async { Ok(answer) })
    }
}

impl Lookup for FixedLookup {
    fn addresses(&self, _: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let answer = self.0.clone();
        Box::pin(async { Ok(answer) })
    }
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn client(lookup: impl Lookup + 'static, allowed: &[&str]) -> GuardedClient {
    let policy = AddressPolicy::new(
        allowed
            .iter()
            .map(|network| network.parse().unwrap())
            .collect(),
    );
    let lookup: Arc<dyn Lookup> = Arc::new(lookup);
    let timeout = Duration::from_secs(30);
    GuardedClient::with_lookup(&lookup, policy, timeout, 64 * 1_024, "caller/1.0").unwrap()
}

async fn post(client: &GuardedClient, url: &str) -> AttemptResult {
    client
        .post(PostRequest {
            url,
            headers: &[],
            body: b"{}",
            keep_bytes: 0,
        })
        .await
}

/// Starts a server that no call may reach. It listens on every address of this machine.
async fn start_canary() -> TestReceiver {
    let everywhere: [SocketAddr; 2] = ["[::]:0".parse().unwrap(), "0.0.0.0:0".parse().unwrap()];
    let has_v6 = std::net::TcpListener::bind(everywhere[0]).is_ok();
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    TestReceiver::at(
        everywhere[usize::from(!has_v6)],
        answer,
        AfterResponse::Close,
    )
    .await
}

#[tokio::test]
async fn no_form_of_a_private_address_reaches_a_canary() {
    let canary = start_canary().await;
    let port = canary.address.port().to_string();
    let client = client(
        FixedLookup(addresses(&["127.0.0.1", "::1", "0.0.0.0"])),
        &[],
    );
    let mut tried = HashSet::new();
    let mut odd = Vec::new();
    for form in address_forms() {
        assert!(tried.insert(form.clone()), "{form} is listed twice");
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{}", form.replace("PORT", &port));
            let outcome = post(&client, &url).await.outcome;
            if !matches!(outcome, AttemptOutcome::Forbidden(_)) {
                odd.push(format!("{url:?}: {outcome:?}"));
            }
        }
    }
    assert!(odd.is_empty(), "{odd:#?}");
    assert!(tried.len() > 60);
    assert_eq!(canary.calls(), 0);
}

#[tokio::test]
async fn the_forms_would_reach_it_if_they_were_allowed() {
    let canary = start_canary().await;
    let port = canary.address.port();
    let client = client(
        FixedLookup(addresses(&["127.0.0.1"])),
        &["127.0.0.0/8", "0.0.0.0/8"],
    );
    for host in [
        "127.0.0.1",
        "2130706433",
        "0177.1",
        "0x7f.1",
        "127。0。0。1",
        "localhost",
        "0.0.0.0",
    ] {
        let outcome = post(&client, &format!("http://{host}:{port}/"))
            .await
            .outcome;
        assert_eq!(outcome, AttemptOutcome::Delivered, "{host}");
    }
    assert_eq!(canary.calls(), 7);
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_of_any_kind_is_not_called() {
    let canary = start_canary().await;
    let port = canary.address.port();
    for address in [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.1.1",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::1",
        "2001:0:7f00:1::",
        "fe80::5efe:127.0.0.1",
        "2606:4700::5efe:7f00:1",
        "fd00:ec2::254",
        "fe80::1",
    ] {
        let client = client(FixedLookup(addresses(&[address])), &[]);
        let attempt = post(&client, &format!("https://hooks.example:{port}/")).await;
        assert_eq!(
            attempt.outcome,
            AttemptOutcome::Forbidden(UrlFault::AddressRefused),
            "{address}"
        );
    }
    assert_eq!(canary.calls(), 0);
}

#[tokio::test]
async fn only_the_permitted_addresses_of_a_name_are_tried() {
    let mixed = [
        "127.0.0.1",
        "1.1.1.1",
        "::1",
        "2606:4700::1",
        "10.0.0.1",
        "::ffff:1.1.1.1",
    ];
    let found = async |scope, allowed: &[&str]| {
        let allowed = allowed
            .iter()
            .map(|network| network.parse().unwrap())
            .collect();
        let policy = ConnectPolicy {
            addresses: Arc::new(AddressPolicy::new(allowed)),
            scope,
        };
        let mut resolver = GuardedResolver {
            policy,
            lookup: Arc::new(FixedLookup(addresses(&mixed))),
        };
        let context = RequestContext::start(&"https://hooks.example/".parse().unwrap());
        let found = context
            .scope(async { resolver.call("hooks.example".parse().unwrap()).await })
            .await;
        found
            .map(|found| found.map(|address| address.ip()).collect::<Vec<_>>())
            .ok()
    };
    assert_eq!(
        found(ConnectScope::Public, &[]).await,
        Some(addresses(&["1.1.1.1", "2606:4700::1"]))
    );
    assert_eq!(found(ConnectScope::AllowList, &[]).await, None);
    assert_eq!(
        found(ConnectScope::AllowList, &["10.0.0.0/8"]).await,
        Some(addresses(&["10.0.0.1"]))
    );

    let (endpoint, canary) = endpoint_and_canary().await;
    let client = client(
        FixedLookup(addresses(&["127.0.0.1", "127.0.0.2"])),
        &["127.0.0.2/32"],
    );
    let url = format!("http://hooks.internal:{}/", endpoint.address.port());
    assert_eq!(post(&client, &url).await.outcome, AttemptOutcome::Delivered);
    assert_eq!((endpoint.calls(), canary.calls()), (1, 0));
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_not_called_again() {
    let (endpoint, canary) = endpoint_and_canary().await;
    let answers = vec![addresses(&["127.0.0.2"]), addresses(&["127.0.0.1"])];
    let lookup = ScriptedLookup(Mutex::new(HashMap::from([("hooks.internal", answers)])));
    let client = client(lookup, &["127.0.0.2/32"]);
    let url = format!("http://hooks.internal:{}/", endpoint.address.port());
    assert_eq!(post(&client, &url).await.outcome, AttemptOutcome::Delivered);
    for _ in 0..3 {
        let refused = post(&client, &url).await.outcome;
        assert_eq!(refused, AttemptOutcome::Forbidden(UrlFault::AddressRefused));
    }
    assert_eq!((endpoint.calls(), canary.calls()), (1, 0));
}

/// Starts two servers with the same port, at an allowed and a refused address. Both close each connection.
async fn endpoint_and_canary() -> (TestReceiver, TestReceiver) {
    let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    loop {
        let endpoint =
            TestReceiver::at("127.0.0.2:0".parse().unwrap(), answer, AfterResponse::Close).await;
        let beside = SocketAddr::new([127, 0, 0, 1].into(), endpoint.address.port());
        // If the port is in use at the other address, another port is tried.
        if std::net::TcpListener::bind(beside).is_ok() {
            return (
                endpoint,
                TestReceiver::at(beside, answer, AfterResponse::Close).await,
            );
        }
    }
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let canary = start_canary().await;
    let port = canary.address.port();
    let client = client(
        FixedLookup(addresses(&["127.0.0.1"])),
        &["127.0.0.0/8", "::1/128", "0.0.0.0/8"],
    );
    for status in [300, 301, 302, 303, 304, 305, 306, 307, 308] {
        for to in [
            format!("http://127.0.0.1:{port}/"),
            format!("http://2130706433:{port}/"),
            format!("http://0.0.0.0:{port}/"),
            format!("http://[::1]:{port}/"),
            format!("http://[::ffff:127.0.0.1]:{port}/"),
            format!("http://localhost:{port}/"),
            format!("https://rebind.example:{port}/"),
            format!("//127.0.0.1:{port}/"),
        ] {
            let headers = format!("location: {to}\r\nrefresh: 0; url={to}\r\n");
            let endpoint = TestReceiver::with_answer(status, &headers, "").await;
            let outcome = post(&client, &endpoint.url("/")).await.outcome;
            assert_eq!(outcome, AttemptOutcome::Rejected(status), "{to}");
            assert_eq!(endpoint.calls(), 1);
        }
    }
    assert_eq!(canary.calls(), 0);
}

#[tokio::test]
async fn a_network_of_one_port_is_called_at_that_port_alone() {
    let endpoint = TestReceiver::with_answer(200, "", "").await;
    let canary = TestReceiver::with_answer(200, "", "").await;
    let network = format!("127.0.0.0/8:{}", endpoint.address.port());
    let client = client(FixedLookup(addresses(&["127.0.0.1"])), &[&network]);
    for host in ["127.0.0.1", "hooks.internal", "localhost"] {
        let url = |port: u16| format!("http://{host}:{port}/");
        assert_eq!(
            post(&client, &url(endpoint.address.port())).await.outcome,
            AttemptOutcome::Delivered,
            "{host}"
        );
        let refused = post(&client, &url(canary.address.port())).await.outcome;
        assert_eq!(
            refused,
            AttemptOutcome::Forbidden(UrlFault::AddressRefused),
            "{host}"
        );
    }
    // A public name may be called at any port, but not if it resolves to a private address.
    let url = format!("https://hooks.example:{}/", canary.address.port());
    assert_eq!(
        post(&client, &url).await.outcome,
        AttemptOutcome::Forbidden(UrlFault::AddressRefused)
    );
    assert_eq!((endpoint.calls(), canary.calls()), (3, 0));
}

#[tokio::test]
async fn the_networks_of_one_client_open_nothing_to_another() {
    let endpoint = TestReceiver::with_answer(200, "", "").await;
    let shared = client(FixedLookup(addresses(&["127.0.0.1"])), &[]);
    let own = shared
        .for_networks(&["127.0.0.0/8".parse().unwrap()])
        .unwrap();
    for url in [
        endpoint.url("/"),
        format!("http://hooks.internal:{}/", endpoint.address.port()),
    ] {
        assert_eq!(
            post(&own, &url).await.outcome,
            AttemptOutcome::Delivered,
            "{url}"
        );
        // The connection of `own` is still open, but another client must not use it.
        let refused = post(&shared, &url).await.outcome;
        assert_eq!(
            refused,
            AttemptOutcome::Forbidden(UrlFault::AddressRefused),
            "{url}"
        );
        let elsewhere = shared
            .for_networks(&["10.0.0.0/8".parse().unwrap()])
            .unwrap();
        let refused = post(&elsewhere, &url).await.outcome;
        assert_eq!(
            refused,
            AttemptOutcome::Forbidden(UrlFault::AddressRefused),
            "{url}"
        );
    }
}

#[tokio::test]
async fn a_metadata_address_is_not_called_even_if_its_network_is_allowed() {
    let metadata = [
        "169.254.169.254",
        "100.100.100.200",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
    ];
    let client = client(
        FixedLookup(addresses(&metadata)),
        &["100.64.0.0/10", "fd00::/8"],
    );
    for url in [
        "http://metadata.internal/",
        "https://metadata.example/",
        "http://100.100.100.200/",
    ] {
        let refused = post(&client, url).await.outcome;
        assert_eq!(
            refused,
            AttemptOutcome::Forbidden(UrlFault::AddressRefused),
            "{url}"
        );
    }
}
