//! Name resolution that yields permitted addresses only, so that a connection to any other cannot be made.
//!
//! Checking here, and not before the call, leaves a name no moment in which to change what it points to.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::AddressPolicy;

/// Which of the permitted addresses a client may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Public ones and the allow-list: for https.
    Public,
    /// The allow-list alone: for plain http.
    Allowed,
}

/// Every address of a name was refused.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to no address that may be called")]
pub(super) struct AddressesRefused;

/// The system's resolver behind a policy.
#[derive(Debug)]
pub(super) struct GuardedResolver {
    pub(super) policy: Arc<AddressPolicy>,
    pub(super) reach: Reach,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (policy, reach) = (Arc::clone(&self.policy), self.reach);
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let any = !found.is_empty();
            let permitted: Vec<_> =
                found.into_iter().filter(|found| may_reach(&policy, reach, *found)).collect();
            if any && permitted.is_empty() {
                return Err(AddressesRefused.into());
            }
            let addresses: Addrs = Box::new(permitted.into_iter());
            Ok(addresses)
        })
    }
}

fn may_reach(policy: &AddressPolicy, reach: Reach, address: SocketAddr) -> bool {
    match reach {
        Reach::Public => policy.permits(address.ip()),
        Reach::Allowed => policy.allows(address.ip()),
    }
}
