//! Counts the calls of each operation about each IRN. The random numbers of faults depend on this count.

use std::collections::HashMap;

use crate::route::Operation;

#[derive(Default)]
pub(crate) struct CallTally(HashMap<String, [u32; Operation::COUNT]>);

impl CallTally {
    /// Counts a call. Returns the number of calls of this operation about this IRN, including this call.
    pub(crate) fn count(&mut self, operation: Operation, irn: &str) -> u32 {
        let counts = match self.0.get_mut(irn) {
            Some(counts) => counts,
            None => self
                .0
                .entry(irn.to_owned())
                .or_insert([0; Operation::COUNT]),
        };
        counts[operation.index()] += 1;
        counts[operation.index()]
    }

    pub(crate) fn attempts(&self, operation: Operation, irn: &str) -> u32 {
        self.0
            .get(irn)
            .map_or(0, |counts| counts[operation.index()])
    }

    pub(crate) fn has_calls_for(&self, irn: &str) -> bool {
        self.0.contains_key(irn)
    }
}
