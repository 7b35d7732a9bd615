//! Numeric ids for the rows that the commands of a batch may add. They are reserved before the transaction begins.

use std::collections::BTreeMap;
use std::ops::Range;

use database::StoreError;

use crate::store::Store;
use crate::store::ids::IdKind;

/// The number of ids of each kind that the commands may need.
#[derive(Debug, Default)]
pub struct WantedIdCounts(BTreeMap<IdKind, usize>);

impl WantedIdCounts {
    pub(crate) fn add(&mut self, kind: IdKind, count: usize) {
        *self.0.entry(kind).or_default() += count;
    }

    pub(crate) async fn reserve(self, store: &Store) -> Result<ReservedIds, StoreError> {
        let mut reserved = ReservedIds::default();
        for (kind, count) in self.0 {
            reserved
                .0
                .insert(kind, store.ids().take(kind, count).await?);
        }
        Ok(reserved)
    }
}

#[derive(Debug, Default)]
pub struct ReservedIds(BTreeMap<IdKind, Range<i64>>);

impl ReservedIds {
    /// Returns the next reserved id. A command takes no more ids than it asked for.
    pub(crate) fn next(&mut self, kind: IdKind) -> i64 {
        self.0
            .get_mut(&kind)
            .and_then(Iterator::next)
            .unwrap_or_default()
    }
}
