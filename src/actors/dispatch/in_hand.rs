//! The lanes that actors of this process are at work on. Only their leases are kept alive: one that was taken over but
//! never came here, since the answer to the commit was lost, is anybody's again when its lease ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::store::lanes::Lease;

#[derive(Debug, Clone, Default)]
pub(super) struct InHand(Arc<Mutex<HashMap<Lease, Option<i64>>>>);

/// A lane is in hand for as long as this is there.
pub(super) struct Hold {
    all: InHand,
    lease: Lease,
}

impl InHand {
    /// Keeps a lane in hand, and counts it for its taxpayer where that is told.
    pub(super) fn take(&self, lease: &Lease, taxpayer: Option<i64>) -> Hold {
        self.lock().insert(lease.clone(), taxpayer);
        Hold { all: self.clone(), lease: lease.clone() }
    }

    pub(super) fn leases(&self) -> Vec<Lease> {
        self.lock().keys().cloned().collect()
    }

    /// How many lanes are in hand of each taxpayer.
    pub(super) fn by_taxpayer(&self) -> HashMap<i64, usize> {
        let mut held = HashMap::new();
        for taxpayer in self.lock().values().flatten() {
            *held.entry(*taxpayer).or_default() += 1;
        }
        held
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Lease, Option<i64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.all.lock().remove(&self.lease);
    }
}
