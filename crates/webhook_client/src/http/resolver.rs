//! Resolves a host name at each new connection, and returns only permitted addresses. This prevents DNS rebinding: a
//! name that later resolves to a private address.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::http::connect_policy::{AddressesRefused, ConnectPolicy};
use crate::http::request_context::RequestContext;

/// Finds the addresses of a host name, permitted or not.
pub(crate) trait Lookup: Debug + Send + Sync {
    fn addresses(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// Uses the resolver of the operating system.
#[derive(Debug)]
pub(crate) struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Resolves a name and keeps only the addresses that the policy permits.
#[derive(Debug)]
pub(crate) struct GuardedResolver {
    pub(crate) policy: ConnectPolicy,
    pub(crate) lookup: Arc<dyn Lookup>,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        // Without a request context the port is unknown, so no address can be permitted.
        let Some(context) = RequestContext::current() else {
            return Box::pin(async { Err(AddressesRefused.into()) });
        };
        let policy = self.policy.clone();
        let found = self.lookup.addresses(name.as_str().to_owned());
        Box::pin(async move {
            context.clock().record_lookup_start();
            let found = found.await?;
            context.clock().record_resolution();
            let any = !found.is_empty();
            let permitted: Vec<_> = found
                .into_iter()
                .filter(|address| context.may_connect(&policy, *address))
                .collect();
            if any && permitted.is_empty() {
                return Err(AddressesRefused.into());
            }
            let addresses: Addrs = Box::new(
                permitted
                    .into_iter()
                    .map(|address| SocketAddr::new(address, 0)),
            );
            Ok(addresses)
        })
    }
}
