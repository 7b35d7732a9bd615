//! The lanes that actors of this process are at work on. Only their leases are kept alive: one that was taken over but
//! never came here, since the answer to the commit was lost, is anybody's again when its lease ends.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::store::lanes::Lease;

#[derive(Debug, Clone, Default)]
pub(super) struct InHand(Arc<Mutex<HashSet<Lease>>>);

/// A lane is in hand for as long as this is there.
pub(super) struct Hold {
    all: InHand,
    lease: Lease,
}

impl InHand {
    pub(super) fn take(&self, lease: &Lease) -> Hold {
        self.lock().insert(lease.clone());
        Hold { all: self.clone(), lease: lease.clone() }
    }

    pub(super) fn leases(&self) -> Vec<Lease> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Lease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.all.lock().remove(&self.lease);
    }
}
