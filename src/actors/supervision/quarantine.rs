//! The latest commands that panicked twice. The list is bounded, and a record never holds the command's contents.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::domain::kernel::ids::CommandId;

pub const RECORDS_MAX: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuarantineRecord {
    /// The id of the command, which its sender also got in the error.
    pub reference: CommandId,
    pub actor: String,
    pub command: &'static str,
    /// The time of the quarantine: RFC 3339, UTC.
    pub at: String,
    pub panic: String,
}

#[derive(Debug, Default)]
pub struct Quarantine(Mutex<VecDeque<QuarantineRecord>>);

impl Quarantine {
    pub fn put(&self, record: QuarantineRecord) {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() == RECORDS_MAX {
            records.pop_front();
        }
        records.push_back(record);
    }

    pub fn records(&self) -> Vec<QuarantineRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::clock;

    #[test]
    fn the_oldest_record_is_removed_for_the_newest() {
        let quarantine = Quarantine::default();
        let references: Vec<_> = (0..=RECORDS_MAX).map(|_| clock::new_id()).collect();
        for reference in &references {
            quarantine.put(QuarantineRecord {
                reference: *reference,
                actor: "taxpayer".to_owned(),
                command: "Create",
                at: String::new(),
                panic: String::new(),
            });
        }
        let kept: Vec<_> = quarantine.records().iter().map(|record| record.reference).collect();
        assert_eq!(kept, references[1..]);
    }
}
