//! The data of a request that its connector and resolver need. Hyper passes them no such data, so a task-local
//! variable does.

use std::net::IpAddr;

use url::Url;

use super::connect_policy::ConnectPolicy;
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

    /// Returns true if the URL contains a host name, or an address that the policy permits.
    pub(crate) fn may_try_url(&self, policy: &ConnectPolicy) -> bool {
        self.literal
            .is_none_or(|address| self.may_connect(policy, address))
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
