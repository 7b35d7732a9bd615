//! The check of the receivers of webhooks: their names are looked up, and nothing is sent. Only hosts are shown, no
//! paths, which may hold secrets.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use address_policy::AddressPolicy;
use database::StoreError;
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::net::lookup_host;
use tokio::time::timeout;
use url::{Host, Url};

use crate::app::composition::webhook_addresses;
use crate::app::doctor::report::{CheckResult, Verdict};
use crate::config::Settings;
use crate::store::Store;
use crate::store::webhooks::endpoint_list;
use crate::store::webhooks::integrations;

pub(super) const CHECK: &str = "receivers";
/// The time limit of the whole check. It is longer than the lookups of `ENDPOINTS_MAX` names can take.
pub(super) const WAIT: Duration = Duration::from_secs(45);
/// The maximum number of endpoints that are checked.
const ENDPOINTS_MAX: u64 = 200;
/// The time limit for the lookup of one name.
const LOOKUP_WAIT: Duration = Duration::from_secs(5);
const LOOKUPS_MAX: usize = 32;
/// At most this many hosts of a group are shown.
const SHOWN_HOSTS_MAX: usize = 5;

/// An enabled endpoint, and the addresses that it may have.
#[derive(Debug)]
struct Receiver {
    url: String,
    policy: AddressPolicy,
}

/// The reason why a receiver cannot be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReceiverProblem {
    Unresolved,
    Refused,
}

/// The checked hosts that have a problem, grouped by the problem.
#[derive(Debug, Default, PartialEq, Eq)]
struct ReceiverGroups {
    checked_count: usize,
    unresolved: BTreeSet<String>,
    refused: BTreeSet<String>,
}

pub(super) async fn check(settings: &Settings, store: &Store) -> CheckResult {
    match load_receivers(settings, store).await {
        Ok(receivers) => judge_groups(&group_by_problem(receivers, look_up).await),
        Err(error) => CheckResult::fail(CHECK, format!("the endpoints cannot be read: {error}")),
    }
}

async fn load_receivers(settings: &Settings, store: &Store) -> Result<Vec<Receiver>, StoreError> {
    let policy = webhook_addresses(settings);
    let mut receivers = Vec::new();
    for (taxpayer, url) in endpoint_list::load_enabled_urls(store, ENDPOINTS_MAX).await? {
        let networks = integrations::networks_owned_by(store.reader(), taxpayer).await?;
        let policy = policy.with_networks(&networks);
        receivers.push(Receiver { url, policy });
    }
    Ok(receivers)
}

async fn look_up(host: String, port: u16) -> io::Result<Vec<IpAddr>> {
    let addresses = timeout(LOOKUP_WAIT, lookup_host((host, port))).await??;
    Ok(addresses.map(|address| address.ip()).collect())
}

/// Checks the receivers, up to `LOOKUPS_MAX` at a time, and groups the hosts with a problem.
async fn group_by_problem<L>(receivers: Vec<Receiver>, look_up: L) -> ReceiverGroups
where
    L: AsyncFn(String, u16) -> io::Result<Vec<IpAddr>>,
{
    let look_up = &look_up;
    let problems = stream::iter(receivers)
        .map(async |receiver| find_problem(&receiver, look_up).await)
        .buffer_unordered(LOOKUPS_MAX)
        .collect::<Vec<_>>()
        .await;
    let mut groups = ReceiverGroups::default();
    for (host, problem) in problems {
        groups.checked_count += 1;
        match problem {
            None => {}
            Some(ReceiverProblem::Unresolved) => drop(groups.unresolved.insert(host)),
            Some(ReceiverProblem::Refused) => drop(groups.refused.insert(host)),
        }
    }
    groups
}

/// Returns the host of a receiver, and its problem if it has one.
async fn find_problem<L>(receiver: &Receiver, look_up: &L) -> (String, Option<ReceiverProblem>)
where
    L: AsyncFn(String, u16) -> io::Result<Vec<IpAddr>>,
{
    let Receiver { url, policy } = receiver;
    let checked_url = policy.check_url(url);
    let parsed = Url::parse(url).ok();
    let host = parsed
        .as_ref()
        .and_then(Url::host_str)
        .unwrap_or("?")
        .to_owned();
    let Ok(url) = checked_url else {
        return (host, Some(ReceiverProblem::Refused));
    };
    let port = url.port_or_known_default().unwrap_or_default();
    let Some(Host::Domain(name)) = url.host() else {
        return (host, None);
    };
    let problem = match look_up(name.to_owned(), port).await {
        Err(_) => Some(ReceiverProblem::Unresolved),
        Ok(addresses) if addresses.is_empty() => Some(ReceiverProblem::Unresolved),
        Ok(addresses)
            if addresses
                .iter()
                .any(|address| policy.permits(*address, port)) =>
        {
            None
        }
        Ok(_) => Some(ReceiverProblem::Refused),
    };
    (host, problem)
}

fn judge_groups(groups: &ReceiverGroups) -> CheckResult {
    let ReceiverGroups {
        checked_count,
        unresolved,
        refused,
    } = groups;
    if *checked_count == 0 {
        return CheckResult::ok(CHECK, "no endpoint is enabled");
    }
    let scope = format!("of {checked_count} enabled endpoints");
    if unresolved.is_empty() && refused.is_empty() {
        return CheckResult::ok(
            CHECK,
            format!("the hosts {scope} resolve to permitted addresses"),
        );
    }
    let mut found = Vec::new();
    if !unresolved.is_empty() {
        found.push(format!("{} do not resolve", hosts_text(unresolved)));
    }
    if !refused.is_empty() {
        found.push(format!("{} have no permitted address", hosts_text(refused)));
    }
    let found = format!("{scope}, {}", found.join("; "));
    CheckResult::new(CHECK, Verdict::Warn, found).advise(
        "if it is most of them, check the name server of this machine; otherwise tell the integrators, or set webhooks.allowed_networks",
    )
}

fn hosts_text(hosts: &BTreeSet<String>) -> String {
    let shown = hosts.iter().take(SHOWN_HOSTS_MAX).cloned();
    let shown = shown.collect::<Vec<_>>().join(", ");
    match hosts.len().saturating_sub(SHOWN_HOSTS_MAX) {
        0 => format!("{} hosts ({shown})", hosts.len()),
        more => format!("{} hosts ({shown} and {more} more)", hosts.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(url: &str) -> Receiver {
        Receiver {
            url: url.to_owned(),
            policy: AddressPolicy::default(),
        }
    }

    async fn fake_lookup(host: String, _: u16) -> io::Result<Vec<IpAddr>> {
        match host.as_str() {
            "gone.example" => Err(io::Error::other("no such name")),
            "empty.example" => Ok(Vec::new()),
            "inside.example" => Ok(vec!["10.0.0.1".parse().unwrap()]),
            "mixed.example" => Ok(vec![
                "10.0.0.1".parse().unwrap(),
                "1.1.1.1".parse().unwrap(),
            ]),
            _ => Ok(vec!["1.1.1.1".parse().unwrap()]),
        }
    }

    #[tokio::test]
    async fn hosts_are_grouped_by_their_problem_and_shown_without_paths() {
        let urls = [
            "https://good.example/hook?token=s3cret",
            "https://mixed.example/hook",
            "https://1.1.1.1/hook",
            "https://gone.example/a?token=s3cret",
            "https://gone.example/b",
            "https://empty.example/",
            "https://inside.example/",
            "https://127.0.0.1/",
        ];
        let groups = group_by_problem(urls.map(receiver).into(), fake_lookup).await;
        let set = |hosts: &[&str]| hosts.iter().map(|host| (*host).to_owned()).collect();
        let expected = ReceiverGroups {
            checked_count: 8,
            unresolved: set(&["empty.example", "gone.example"]),
            refused: set(&["127.0.0.1", "inside.example"]),
        };
        assert_eq!(groups, expected);
        let judged = judge_groups(&groups);
        assert_eq!(judged.result, Verdict::Warn);
        assert_eq!(
            judged.found,
            "of 8 enabled endpoints, 2 hosts (empty.example, gone.example) do not resolve; \
             2 hosts (127.0.0.1, inside.example) have no permitted address"
        );
        let good = group_by_problem(vec![receiver("https://good.example/")], fake_lookup).await;
        assert_eq!(judge_groups(&good).result, Verdict::Ok);
    }
}
