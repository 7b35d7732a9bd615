//! The data of a request that its connector and resolver need. Reqwest does not pass it on, so a task-local variable
//! does.

use std::net::IpAddr;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tower::{BoxError, Layer, Service};
use url::Url;

use super::connect_policy::{AddressesRefused, ConnectPolicy};
use super::phases::PhaseClock;

tokio::task_local! {
    static CURRENT: RequestContext;
}

#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    /// The address, if the URL contains one instead of a host name. The resolver is not called for such a URL.
    literal: Option<IpAddr>,
    /// The port of the connection. The resolver needs it, because a network may be allowed only at one port.
    port: u16,
    clock: PhaseClock,
}

impl RequestContext {
    /// Builds the context of a request that starts now.
    pub(crate) fn start(url: &Url) -> Self {
        let host = url
            .host_str()
            .unwrap_or_default()
            .trim_start_matches('[')
            .trim_end_matches(']');
        let port = url.port_or_known_default().unwrap_or_default();
        Self {
            literal: host.parse().ok(),
            port,
            clock: PhaseClock::start(),
        }
    }

    /// Returns the context of the request that runs in this task.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    pub(crate) fn may_connect(&self, policy: &ConnectPolicy, address: IpAddr) -> bool {
        policy.permits(address, self.port)
    }

    pub(crate) fn clock(&self) -> &PhaseClock {
        &self.clock
    }

    /// Runs a future. Inside it, `current` returns this context.
    pub(crate) async fn scope<T>(&self, request: impl Future<Output = T>) -> T {
        CURRENT.scope(self.clone(), request).await
    }
}

/// The layer that puts a `PolicyConnector` around reqwest's connector.
#[derive(Debug, Clone)]
pub(crate) struct ConnectPolicyLayer(pub(crate) ConnectPolicy);

/// A connector that checks each connection against a policy. Without a request context it makes no connection.
#[derive(Debug, Clone)]
pub(crate) struct PolicyConnector<C> {
    policy: ConnectPolicy,
    connector: C,
}

impl<C> Layer<C> for ConnectPolicyLayer {
    type Service = PolicyConnector<C>;

    fn layer(&self, connector: C) -> Self::Service {
        PolicyConnector {
            policy: self.0.clone(),
            connector,
        }
    }
}

impl<C, D> Service<D> for PolicyConnector<C>
where
    C: Service<D, Error = BoxError>,
    C::Future: Send + 'static,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<C::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context)
    }

    /// Reads the context here, because the returned future may run in another task.
    fn call(&mut self, destination: D) -> Self::Future {
        let permitted = RequestContext::current().filter(|request| {
            request
                .literal
                .is_none_or(|address| request.may_connect(&self.policy, address))
        });
        let Some(request) = permitted else {
            return Box::pin(async { Err(AddressesRefused.into()) });
        };
        request.clock.record_connect_start();
        let connecting = self.connector.call(destination);
        Box::pin(async move {
            let connection = request.scope(connecting).await?;
            request.clock.record_connection();
            Ok(connection)
        })
    }
}
