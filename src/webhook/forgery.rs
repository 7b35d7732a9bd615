//! Server-side request forgery: the ways to name a private address that are known, each tried on the client as it
//! is in production. What is counted is connections to a canary.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::dns::Resolve;

use super::address::AddressPolicy;
use super::attempt::{Attempt, Outcome};
use super::client::{GuardedClient, Post};
use super::destination::UrlFault;
use super::gate::{Gate, Reach};
use super::resolver::{GuardedResolver, Lookup};
use super::testing::{Endpoint, Then};

/// Ways to write a host. `PORT` is the canary's; both schemes are tried before each.
const FORMS: &[&str] = &[
    // Loopback as numbers: decimal, octal, hexadecimal, short, mixed, with zeros and dots.
    "127.0.0.1:PORT/",
    "127.0.0.1.:PORT/",
    "127.0.0.1..:PORT/",
    "127.1:PORT/",
    "127.1.:PORT/",
    "127.0.1:PORT/",
    "127.255.255.254:PORT/",
    "2130706433:PORT/",
    "2130706433.:PORT/",
    "6425673729:PORT/",
    "017700000001:PORT/",
    "0x7f000001:PORT/",
    "0X7F000001:PORT/",
    "0x7f.0x0.0x0.0x1:PORT/",
    "0x7f.1:PORT/",
    "0x0000007f.1:PORT/",
    "0x7F.0.0.01:PORT/",
    "0177.0.0.1:PORT/",
    "0177.0.0.01:PORT/",
    "0177.1:PORT/",
    "00000177.0.0.1:PORT/",
    "127.0.0.0x1:PORT/",
    "127.0x1:PORT/",
    "127.000.000.001:PORT/",
    "383.0.0.1:PORT/",
    "0:PORT/",
    "00:PORT/",
    "0x0:PORT/",
    "0.0.0.0:PORT/",
    "0.0.0.0.:PORT/",
    // Percent-encoded, of full width, with the dots and digits that IDNA maps.
    "%31%32%37.0.0.1:PORT/",
    "127%2e0%2e0%2e1:PORT/",
    "127.0.0.1%2e:PORT/",
    "127.0.0.1%00:PORT/",
    "127.0.0.1%00.example.com:PORT/",
    "127.0.0.1%20:PORT/",
    "127.0.0.1%23.example.com:PORT/",
    "127.0.0.1%2f.example.com:PORT/",
    "127.0.0.1%5c.example.com:PORT/",
    "①②⑦.⓪.⓪.①:PORT/",
    "１２７.０.０.１:PORT/",
    "𝟏𝟐𝟕.𝟎.𝟎.𝟏:PORT/",
    "127。0。0。1:PORT/",
    "127．0．0．1:PORT/",
    "127｡0｡0｡1:PORT/",
    "127.0.0.1\u{ad}:PORT/",
    "127.0.\u{200b}0.1:PORT/",
    // IPv6: loopback, unspecified, and IPv4 inside it.
    "[::1]:PORT/",
    "[0:0:0:0:0:0:0:1]:PORT/",
    "[0000:0000:0000:0000:0000:0000:0000:0001]:PORT/",
    "[::]:PORT/",
    "[::127.0.0.1]:PORT/",
    "[::7f00:1]:PORT/",
    "[::ffff:127.0.0.1]:PORT/",
    "[::ffff:7f00:1]:PORT/",
    "[::FFFF:7F00:1]:PORT/",
    "[0:0:0:0:0:ffff:7f00:0001]:PORT/",
    "[::ffff:0.0.0.0]:PORT/",
    "[::ffff:0:127.0.0.1]:PORT/",
    "[64:ff9b::127.0.0.1]:PORT/",
    "[64:ff9b::7f00:1]:PORT/",
    "[64:ff9b:1::7f00:1]:PORT/",
    "[64:ff9b:1:7f00:0:100::]:PORT/",
    "[2002:7f00:1::]:PORT/",
    "[2002:7f00:1::1]:PORT/",
    "[2001:0:7f00:1::]:PORT/",
    "[2001:0:4136:e378:8000:63bf:80ff:fffe]:PORT/",
    "[fe80::5efe:127.0.0.1]:PORT/",
    "[2606:4700::5efe:7f00:1]:PORT/",
    "[2606:4700::200:5efe:7f00:1]:PORT/",
    "[::1%25lo]:PORT/",
    "[::1%lo]:PORT/",
    "[fe80::1%25eth0]:PORT/",
    "[fe80::1%eth0]:PORT/",
    "[::1].:PORT/",
    "[127.0.0.1]:PORT/",
    "::1:PORT/",
    // Names of this machine and of private networks.
    "localhost:PORT/",
    "LOCALHOST:PORT/",
    "LocalHost:PORT/",
    "localhost.:PORT/",
    "localhost..:PORT/",
    "a.localhost:PORT/",
    "a.b.localhost.:PORT/",
    "loc%61lhost:PORT/",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/",
    "ｌｏｃａｌｈｏｓｔ:PORT/",
    "lo\u{ad}calhost:PORT/",
    "localhost.localdomain:PORT/",
    "localhost6:PORT/",
    "ip6-localhost:PORT/",
    "ip6-loopback:PORT/",
    "kubernetes.default.svc.cluster.local:PORT/",
    "host.docker.internal:PORT/",
    "printer.local:PORT/",
    // Names that anybody may point anywhere: here all lead to the canary.
    "127.0.0.1.nip.example:PORT/",
    "rebind.example:PORT/",
    "xn--bcher-kva.example:PORT/",
    "example.com.:PORT/",
    // Metadata of clouds.
    "169.254.169.254/latest/meta-data/",
    "169.254.169.254./",
    "0xa9fea9fe/",
    "2852039166/",
    "169.254.43518/",
    "0251.0376.0251.0376/",
    "⑯⑨。②⑤④。⑯⑨。②⑤④/",
    "[::ffff:a9fe:a9fe]/",
    "[::ffff:169.254.169.254]/",
    "[64:ff9b::a9fe:a9fe]/",
    "[fd00:ec2::254]/",
    "[fd20:ce::254]/",
    "100.100.100.200/",
    "168.63.129.16/",
    "192.0.0.192/",
    "metadata.google.internal/",
    "metadata/",
    "instance-data/",
    // Private networks.
    "10.0.0.1/",
    "012.1/",
    "172.16.0.1/",
    "172.31.255.255/",
    "192.168.0.1/",
    "3232235521/",
    "100.64.0.1/",
    "198.18.0.1/",
    "224.0.0.1/",
    "240.0.0.1/",
    "255.255.255.255/",
    "[fc00::1]/",
    "[fd12:3456::1]/",
    "[fec0::1]/",
    "[ff02::1]/",
    // Users, backslashes, blanks and what else parsers disagree about.
    "user:pass@127.0.0.1:PORT/",
    "@127.0.0.1:PORT/",
    ":@127.0.0.1:PORT/",
    "example.com@127.0.0.1:PORT/",
    "example.com:443@127.0.0.1:PORT/",
    "127.0.0.1:PORT@example.com/",
    "example.com%40127.0.0.1:PORT/",
    "example.com\\@127.0.0.1:PORT/",
    "127.0.0.1:PORT\\@example.com/",
    "127.0.0.1:PORT#@example.com/",
    "127.0.0.1:PORT?@example.com/",
    "\\127.0.0.1:PORT/",
    "\\\\127.0.0.1:PORT/",
    "/127.0.0.1:PORT/",
    " 127.0.0.1:PORT/",
    "127.0.0.1 :PORT/",
    "127.0.0.1:PORT/\r\nx-injected: 1",
    "127.0.\t0.1:PORT/",
    "127.0.\n0.1:PORT/",
    "example.com\r\n@127.0.0.1:PORT/",
    "127.0.0.1:0/",
    "127.0.0.1:/",
    "127.0.0.1:0PORT/",
    "127.0.0.1:PORT:80/",
];

/// A resolver that answers as it is told: of each name the next answer, and the last for ever.
#[derive(Debug, Default)]
struct Told(Mutex<HashMap<&'static str, Vec<Vec<IpAddr>>>>);

/// A resolver that knows one answer.
#[derive(Debug)]
struct Always(Vec<IpAddr>);

impl Lookup for Told {
    fn addresses(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let mut told = self.0.lock().unwrap();
        let answers = told.get_mut(name.as_str()).unwrap();
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        Box::pin(async { Ok(answer) })
    }
}

impl Lookup for Always {
    fn addresses(&self, _: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let answer = self.0.clone();
        Box::pin(async { Ok(answer) })
    }
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn client(lookup: impl Lookup + 'static, allowed: &[&str]) -> GuardedClient {
    let policy = AddressPolicy::new(allowed.iter().map(|network| network.parse().unwrap()).collect());
    GuardedClient::asking(Arc::new(lookup), policy, Duration::from_secs(30), 64 * 1_024).unwrap()
}

async fn post(client: &GuardedClient, url: &str) -> Attempt {
    client.post(Post { url, headers: &[], body: b"{}", keep: 0 }).await
}

/// Listens on every address of this machine.
async fn canary() -> Endpoint {
    let everywhere: [SocketAddr; 2] = ["[::]:0".parse().unwrap(), "0.0.0.0:0".parse().unwrap()];
    let has_v6 = std::net::TcpListener::bind(everywhere[0]).is_ok();
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    Endpoint::at(everywhere[usize::from(!has_v6)], answer, Then::Close).await
}

#[tokio::test]
async fn no_form_of_a_private_address_reaches_a_canary() {
    let canary = canary().await;
    let port = canary.address.port().to_string();
    let client = client(Always(addresses(&["127.0.0.1", "::1", "0.0.0.0"])), &[]);
    let mut tried = std::collections::HashSet::new();
    for form in FORMS {
        assert!(tried.insert(form), "{form} stands there twice");
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{}", form.replace("PORT", &port));
            let outcome = post(&client, &url).await.outcome;
            assert!(matches!(outcome, Outcome::Forbidden(_)), "{url:?}: {outcome:?}");
        }
    }
    assert!(tried.len() > 60);
    assert_eq!(canary.calls(), 0);
}

#[tokio::test]
async fn the_forms_would_reach_it_if_they_were_allowed() {
    let canary = canary().await;
    let port = canary.address.port();
    let client = client(Always(addresses(&["127.0.0.1"])), &["127.0.0.0/8", "0.0.0.0/8"]);
    for host in ["127.0.0.1", "2130706433", "0177.1", "0x7f.1", "127。0。0。1", "localhost", "0.0.0.0"] {
        let outcome = post(&client, &format!("http://{host}:{port}/")).await.outcome;
        assert_eq!(outcome, Outcome::Delivered, "{host}");
    }
    assert_eq!(canary.calls(), 7);
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_of_any_kind_is_not_called() {
    let canary = canary().await;
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
        let client = client(Always(addresses(&[address])), &[]);
        let attempt = post(&client, &format!("https://hooks.example:{port}/")).await;
        assert_eq!(attempt.outcome, Outcome::Forbidden(UrlFault::AddressRefused), "{address}");
    }
    assert_eq!(canary.calls(), 0);
}

#[tokio::test]
async fn of_the_addresses_of_a_name_only_those_that_are_permitted_are_tried() {
    let mixed = ["127.0.0.1", "1.1.1.1", "::1", "2606:4700::1", "10.0.0.1", "::ffff:1.1.1.1"];
    let found = async |reach, allowed: &[&str]| {
        let allowed = allowed.iter().map(|network| network.parse().unwrap()).collect();
        let gate = Gate { policy: Arc::new(AddressPolicy::new(allowed)), reach };
        let resolver = GuardedResolver { gate, lookup: Arc::new(Always(addresses(&mixed))) };
        let found = resolver.resolve("hooks.example".parse().unwrap()).await;
        found.map(|found| found.map(|address| address.ip()).collect::<Vec<_>>()).ok()
    };
    assert_eq!(found(Reach::Public, &[]).await, Some(addresses(&["1.1.1.1", "2606:4700::1"])));
    assert_eq!(found(Reach::Allowed, &[]).await, None);
    assert_eq!(found(Reach::Allowed, &["10.0.0.0/8"]).await, Some(addresses(&["10.0.0.1"])));

    let (endpoint, canary) = neighbours().await;
    let client = client(Always(addresses(&["127.0.0.1", "127.0.0.2"])), &["127.0.0.2/32"]);
    let url = format!("http://hooks.internal:{}/", endpoint.address.port());
    assert_eq!(post(&client, &url).await.outcome, Outcome::Delivered);
    assert_eq!((endpoint.calls(), canary.calls()), (1, 0));
}

#[tokio::test]
async fn a_name_that_changes_what_it_leads_to_is_called_no_more() {
    let (endpoint, canary) = neighbours().await;
    let answers = vec![addresses(&["127.0.0.2"]), addresses(&["127.0.0.1"])];
    let told = Told(Mutex::new(HashMap::from([("hooks.internal", answers)])));
    let client = client(told, &["127.0.0.2/32"]);
    let url = format!("http://hooks.internal:{}/", endpoint.address.port());
    assert_eq!(post(&client, &url).await.outcome, Outcome::Delivered);
    for _ in 0..3 {
        let refused = post(&client, &url).await.outcome;
        assert_eq!(refused, Outcome::Forbidden(UrlFault::AddressRefused));
    }
    assert_eq!((endpoint.calls(), canary.calls()), (1, 0));
}

/// An endpoint whose address is allowed, and a canary at the same port of one that is not. Either closes its
/// connections, so that a name is looked up each time.
async fn neighbours() -> (Endpoint, Endpoint) {
    let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    loop {
        let endpoint = Endpoint::at("127.0.0.2:0".parse().unwrap(), answer, Then::Close).await;
        let beside = SocketAddr::new([127, 0, 0, 1].into(), endpoint.address.port());
        // Somebody else may have the port there.
        if std::net::TcpListener::bind(beside).is_ok() {
            return (endpoint, Endpoint::at(beside, answer, Then::Close).await);
        }
    }
}

#[tokio::test]
async fn no_redirect_is_followed_wherever_it_leads() {
    let canary = canary().await;
    let port = canary.address.port();
    let client = client(Always(addresses(&["127.0.0.1"])), &["127.0.0.0/8", "::1/128", "0.0.0.0/8"]);
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
            let endpoint = Endpoint::answering(status, &headers, "").await;
            let outcome = post(&client, &endpoint.url("/")).await.outcome;
            assert_eq!(outcome, Outcome::Rejected(status), "{to}");
            assert_eq!(endpoint.calls(), 1);
        }
    }
    assert_eq!(canary.calls(), 0);
}
