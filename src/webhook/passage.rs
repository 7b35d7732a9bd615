//! A request on its way to a connection. The connector and the resolver of an HTTP client are told neither the
//! request nor its URL; so it goes with the task, and with the connection that is made for it.

use std::net::IpAddr;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tower::{BoxError, Layer, Service};
use url::Url;

use super::gate::{AddressesRefused, Gate};
use super::phases::PhaseClock;

tokio::task_local! {
    static CURRENT: Passage;
}

/// What a connection must know of the request it is made for.
#[derive(Debug, Clone)]
pub(super) struct Passage {
    /// The address that stands in the URL in place of a name: no resolver is asked about it.
    literal: Option<IpAddr>,
    /// The port that is connected to: the allow-list names ports, and a resolver is told none.
    port: u16,
    clock: PhaseClock,
}

impl Passage {
    /// The passage of a request that starts now.
    pub(super) fn to(url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let port = url.port_or_known_default().unwrap_or_default();
        Self { literal: host.parse().ok(), port, clock: PhaseClock::start() }
    }

    /// The one that is under way in this task.
    pub(super) fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// Whether a gate lets this request connect to an address.
    pub(super) fn may_reach(&self, gate: &Gate, address: IpAddr) -> bool {
        gate.admits(address, self.port)
    }

    pub(super) fn clock(&self) -> &PhaseClock {
        &self.clock
    }

    /// Does what a request does under this passage.
    pub(super) async fn carry<T>(&self, request: impl Future<Output = T>) -> T {
        CURRENT.scope(self.clone(), request).await
    }
}

/// Puts a gate before a connector.
#[derive(Debug, Clone)]
pub(super) struct GateLayer(pub(super) Gate);

/// A connector behind a gate. A request without a passage makes no connection.
#[derive(Debug, Clone)]
pub(super) struct GatedConnector<C> {
    gate: Gate,
    connector: C,
}

impl<C> Layer<C> for GateLayer {
    type Service = GatedConnector<C>;

    fn layer(&self, connector: C) -> Self::Service {
        GatedConnector { gate: self.0.clone(), connector }
    }
}

impl<C, D> Service<D> for GatedConnector<C>
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

    /// Called in the task of the request; the connection may be finished in another.
    fn call(&mut self, destination: D) -> Self::Future {
        let passage = Passage::current();
        let admitted = passage
            .filter(|passage| passage.literal.is_none_or(|address| passage.may_reach(&self.gate, address)));
        let Some(passage) = admitted else {
            return Box::pin(async { Err(AddressesRefused.into()) });
        };
        passage.clock.dials();
        let connecting = self.connector.call(destination);
        Box::pin(async move {
            let connection = passage.carry(connecting).await?;
            passage.clock.connected();
            Ok(connection)
        })
    }
}
