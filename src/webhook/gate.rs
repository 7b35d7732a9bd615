//! The one place that says what a client may connect to. The resolver asks it for each address of a name, the
//! connector for an address that stands in the URL itself.

use std::net::IpAddr;
use std::sync::Arc;

use super::address::AddressPolicy;

/// Which of the permitted addresses a client may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Public ones and the allow-list: for https.
    Public,
    /// The allow-list alone: for plain http.
    Allowed,
}

/// What the connections of one client pass.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    pub(super) policy: Arc<AddressPolicy>,
    pub(super) reach: Reach,
}

/// Every address of a host was refused.
#[derive(Debug, thiserror::Error)]
#[error("the host leads to no address that may be called")]
pub(super) struct AddressesRefused;

impl Gate {
    pub(super) fn admits(&self, address: IpAddr, port: u16) -> bool {
        match self.reach {
            Reach::Public => self.policy.permits(address, port),
            Reach::Allowed => self.policy.allows(address, port),
        }
    }
}
