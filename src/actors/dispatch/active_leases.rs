//! The lanes that are active in this process, which means that it works on them. Only the leases of active lanes are
//! renewed. If the answer to the commit that leased a lane was lost, the lane never becomes active here, and it is free
//! again when its lease expires.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::store::lanes::Lease;

#[derive(Debug, Clone, Default)]
pub(super) struct ActiveLeases(Arc<Mutex<HashMap<Lease, Option<i64>>>>);

/// A guard: its lane counts as active until the guard is dropped.
pub(super) struct ActiveLease {
    all: ActiveLeases,
    lease: Lease,
}

impl ActiveLeases {
    /// Marks a lane as active until the returned guard is dropped. If a taxpayer is given, the lane counts as one of
    /// the taxpayer's active lanes.
    pub(super) fn mark_active(&self, lease: &Lease, taxpayer: Option<i64>) -> ActiveLease {
        self.lock().insert(lease.clone(), taxpayer);
        ActiveLease {
            all: self.clone(),
            lease: lease.clone(),
        }
    }

    pub(super) fn leases(&self) -> Vec<Lease> {
        self.lock().keys().cloned().collect()
    }

    /// Returns the number of active lanes of each taxpayer, by taxpayer id.
    pub(super) fn counts_by_taxpayer(&self) -> HashMap<i64, usize> {
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
