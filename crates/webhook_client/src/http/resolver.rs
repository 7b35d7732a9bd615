//! Resolves a host name at each new connection, and returns only permitted addresses. This prevents DNS rebinding: a
//! name that later resolves to a private address.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tower::{BoxError, Service};

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

/// The error if a name does not resolve.
#[derive(Debug, thiserror::Error)]
#[error("the name of the host does not resolve")]
pub(crate) struct LookupError(#[source] io::Error);

/// Resolves a name and keeps only the addresses that the policy permits.
#[derive(Debug, Clone)]
pub(crate) struct GuardedResolver {
    pub(crate) policy: ConnectPolicy,
    pub(crate) lookup: Arc<dyn Lookup>,
}

impl Service<Name> for GuardedResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        // Without a request context the port is unknown, so no address can be permitted.
        let Some(context) = RequestContext::current() else {
            return Box::pin(async { Err(AddressesRefused.into()) });
        };
        let policy = self.policy.clone();
        let found = self.lookup.addresses(name.as_str().to_owned());
        Box::pin(async move {
            context.clock().record_lookup_start();
            let found = found.await.map_err(LookupError)?;
            context.clock().record_resolution();
            let any = !found.is_empty();
            let permitted: Vec<_> = found
                .into_iter()
                .filter(|address| context.may_connect(&policy, *address))
                .map(|address| SocketAddr::new(address, 0))
                .collect();
            if any && permitted.is_empty() {
                return Err(AddressesRefused.into());
            }
            Ok(permitted.into_iter())
        })
    }
}
