//! Decides to which addresses a client may connect. Both the resolver and the connector use this policy.

use std::net::IpAddr;
use std::sync::Arc;

use address_policy::AddressPolicy;

/// The set of addresses to which a client may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectScope {
    /// Public addresses and the addresses of the allow-list. Used for https.
    Public,
    /// Only the addresses of the allow-list. Used for plain http.
    AllowList,
}

/// Decides to which addresses one client may connect.
#[derive(Debug, Clone)]
pub(crate) struct ConnectPolicy {
    pub(crate) addresses: Arc<AddressPolicy>,
    pub(crate) scope: ConnectScope,
}

/// The error if every address of a host is refused.
#[derive(Debug, thiserror::Error)]
#[error("the host leads to no address that may be called")]
pub(crate) struct AddressesRefused;

impl ConnectPolicy {
    pub(crate) fn permits(&self, address: IpAddr, port: u16) -> bool {
        match self.scope {
            ConnectScope::Public => self.addresses.permits(address, port),
            ConnectScope::AllowList => self.addresses.is_in_allow_list(address, port),
        }
    }
}
