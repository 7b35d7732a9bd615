//! Limits the connections that stay open after a refusal until their clients have sent the rest of a long body. Many
//! clients write the whole body before they read the response, and never see it if the connection is closed before.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::limits::allowances::subscriber_address;
use crate::http::limits::keyed_semaphores::KeyedSemaphores;

/// The maximum number of connections that linger at the same time.
const LINGERING_MAX: usize = 64;
/// The maximum number of lingering connections of one client: of one IPv4 address or one /64 network of IPv6.
const LINGERING_PER_CLIENT_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct LingerSlots {
    all: Arc<Semaphore>,
    clients: KeyedSemaphores<IpAddr>,
}

/// The permission of one connection to linger. Dropping this value returns the permission.
#[derive(Debug)]
pub(crate) struct LingerSlot {
    _all: OwnedSemaphorePermit,
    _client: OwnedSemaphorePermit,
}

impl Default for LingerSlots {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(LINGERING_MAX)),
            clients: KeyedSemaphores::new(LINGERING_PER_CLIENT_MAX),
        }
    }
}

impl LingerSlots {
    /// Takes a slot for a connection of this client. Returns `None` if the client or all clients together have no slot
    /// left.
    pub(super) fn take(&self, client: Option<IpAddr>) -> Option<LingerSlot> {
        let share = self.clients.for_holder(subscriber_address(client));
        Some(LingerSlot {
            _client: share.try_acquire_owned().ok()?,
            _all: Arc::clone(&self.all).try_acquire_owned().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    #[test]
    fn slots_are_limited_for_each_client_and_in_total_and_are_free_when_dropped() {
        let slots = LingerSlots::default();
        let mut taken: Vec<_> = (0..LINGERING_PER_CLIENT_MAX)
            .map(|_| slots.take(Some(address(1))).unwrap())
            .collect();
        assert!(slots.take(Some(address(1))).is_none());
        for client in 2.. {
            let client_slots: Vec<_> = (0..LINGERING_PER_CLIENT_MAX)
                .map_while(|_| slots.take(Some(address(client))))
                .collect();
            if client_slots.is_empty() {
                break;
            }
            taken.extend(client_slots);
        }
        assert_eq!(taken.len(), LINGERING_MAX);
        taken.clear();
        assert!(slots.take(Some(address(1))).is_some() && slots.take(None).is_some());
    }
}
