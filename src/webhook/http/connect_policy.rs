//! Decides to which addresses a client may connect. The resolver applies it to each address of a name, the
//! connector to an address in the URL itself.

use std::net::IpAddr;
use std::sync::Arc;

use super::address::AddressPolicy;

/// The addresses in reach of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectScope {
    /// Public addresses and the allow-list: for https.
    Public,
    /// The allow-list alone: for plain http.
    AllowList,
}

/// The rule for the connections of one client.
#[derive(Debug, Clone)]
pub(crate) struct ConnectPolicy {
    pub(crate) addresses: Arc<AddressPolicy>,
    pub(crate) scope: ConnectScope,
}

/// Every address of a host was refused.
#[derive(Debug, thiserror::Error)]
#[error("the host leads to no address that may be called")]
pub(crate) struct AddressesRefused;

impl ConnectPolicy {
    pub(crate) fn permits(&self, address: IpAddr, port: u16) -> bool {
        match self.scope {
            ConnectScope::Public => self.addresses.permits(address, port),
            ConnectScope::AllowList => self.addresses.allows(address, port),
        }
    }
}
