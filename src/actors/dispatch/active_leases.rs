//! The lanes that are active in this process. Only their leases are renewed: a lane that was leased but never arrived here,
//! because the answer to the commit was lost, is free again when its lease expires.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::store::lanes::Lease;

#[derive(Debug, Clone, Default)]
pub(super) struct ActiveLeases(Arc<Mutex<HashMap<Lease, Option<i64>>>>);

/// The lane is active until this is dropped.
pub(super) struct ActiveLease {
    all: ActiveLeases,
    lease: Lease,
}

impl ActiveLeases {
    /// Marks a lane as active, and counts it for its taxpayer if one is given.
    pub(super) fn take(&self, lease: &Lease, taxpayer: Option<i64>) -> ActiveLease {
        self.lock().insert(lease.clone(), taxpayer);
        ActiveLease { all: self.clone(), lease: lease.clone() }
    }

    pub(super) fn leases(&self) -> Vec<Lease> {
        self.lock().keys().cloned().collect()
    }

    /// The number of active lanes by taxpayer.
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

impl Drop for ActiveLease {
    fn drop(&mut self) {
        self.all.lock().remove(&self.lease);
    }
}
