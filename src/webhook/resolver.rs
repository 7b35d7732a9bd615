//! Name resolution that yields permitted addresses only, so that a connection to any other cannot be made.
//!
//! Checking here, and not before the call, leaves a name no moment in which to change what it points to.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::gate::{AddressesRefused, Gate};
use super::passage::Passage;

/// Where the addresses of a name come from, before any is refused.
pub(super) trait Lookup: Debug + Send + Sync {
    fn addresses(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
#[derive(Debug)]
pub(super) struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A resolver behind a gate.
#[derive(Debug)]
pub(super) struct GuardedResolver {
    pub(super) gate: Gate,
    pub(super) lookup: Arc<dyn Lookup>,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        // Nothing is known of a request without a passage, so it reaches nothing.
        let Some(passage) = Passage::current() else {
            return Box::pin(async { Err(AddressesRefused.into()) });
        };
        let (gate, found) = (self.gate.clone(), self.lookup.addresses(name.as_str().to_owned()));
        Box::pin(async move {
            passage.clock().asks();
            let found = found.await?;
            passage.clock().resolved();
            let any = !found.is_empty();
            let permitted: Vec<_> =
                found.into_iter().filter(|address| passage.may_reach(&gate, *address)).collect();
            if any && permitted.is_empty() {
                return Err(AddressesRefused.into());
            }
            let addresses: Addrs = Box::new(permitted.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
