//! An authority of which about 30 of 100 calls are struck, in every way there is.

use futures_util::stream::{self, StreamExt};
use sandbox::{FaultKind, FaultOrder};
use serde_json::Value;

use crate::support::client::Created;
use crate::support::deployment::Deployment;

/// A stall is over when the service gives it up.
pub(crate) const TIMEOUT: (&str, &str) = ("EINVOICE__AUTHORITY__TIMEOUT_S", "1");
/// Requests under way at a time.
const AT_ONCE: usize = 16;

/// Each kind, another status than its usual one, and its chance. The first that fires is the one that happens,
/// so together they strike less often than their sum.
const FAULTS: [(FaultKind, Option<u16>, &str); 12] = [
    (FaultKind::ServerError, None, "0.06"),
    (FaultKind::Busy, None, "0.03"),
    (FaultKind::Busy, Some(422), "0.03"),
    (FaultKind::Throttled, None, "0.03"),
    (FaultKind::CommitThenDrop, None, "0.06"),
    (FaultKind::Reset, None, "0.04"),
    (FaultKind::Garbage, None, "0.03"),
    (FaultKind::Xml, None, "0.02"),
    (FaultKind::MissingFields, None, "0.03"),
    (FaultKind::Stall, None, "0.01"),
    (FaultKind::CommitThenStall, None, "0.01"),
    (FaultKind::WrongKey, None, "0.01"),
];

/// Puts the faults in force, drawn with this seed.
pub(crate) fn begin(deployment: &Deployment, seed: u64) {
    let state = deployment.authority.state();
    state.set_seed(seed);
    state.clear_calls();
    for (kind, status, chance) in FAULTS {
        let probability = Some(chance.parse().unwrap());
        state
            .add_fault(FaultOrder {
                probability,
                status,
                ..FaultOrder::new(kind)
            })
            .unwrap();
    }
}

/// Ends them and says how many of how many calls they struck.
pub(crate) async fn end(deployment: &Deployment) -> (u64, usize) {
    let address = format!("{}/sandbox/faults", deployment.authority.base_url());
    let listed = reqwest::get(address).await.unwrap().bytes().await.unwrap();
    let listed: Value = strict_json::from_untrusted(&listed).unwrap();
    let struck = listed["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["hits"].as_u64().unwrap())
        .sum();
    deployment.authority.state().clear_faults();
    (struck, deployment.authority.state().calls().len())
}

/// Creates so many invoices and starts their Submit, without waiting for the authority.
pub(crate) async fn submit_all(
    deployment: &Deployment,
    names: impl Iterator<Item = String>,
) -> Vec<Created> {
    stream::iter(names)
        .map(async |name| deployment.submit(&name).await)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await
}

pub(crate) async fn transmit_all(deployment: &Deployment, invoices: &[Created]) {
    stream::iter(invoices)
        .for_each_concurrent(AT_ONCE, async |created| deployment.transmit(created).await)
        .await;
}
