//! The latest commands that panicked twice. The list is bounded, and a record never holds the command's contents.
//!
//! The contents wait in a second bounded list until the service has stored them.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use timing::CommandId;

use super::node_state::NodeKind;

const RECORDS_MAX: usize = 1_000;
/// The maximum number of commands that wait to be stored. If more come while the database is down, the oldest ones are
/// not stored and are only in the log.
const UNSTORED_MAX: usize = 200;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuarantineRecord {
    /// The id of the command, which its sender also got in the error.
    pub reference: CommandId,
    pub actor: String,
    pub command: String,
    /// The time of the quarantine: RFC 3339, UTC.
    pub at: String,
    pub panic: String,
}

/// A quarantined command that is not yet stored.
#[derive(Debug, Clone)]
pub struct UnstoredCommand {
    pub record: QuarantineRecord,
    /// The kind of the actor. With the name of the actor it says whose command this is.
    pub kind: NodeKind,
    pub at: Timestamp,
    /// The contents, for a replay. `None` if the command cannot be replayed.
    pub contents: Option<SecretString>,
}

#[derive(Debug, Default)]
pub struct Quarantine {
    records: Mutex<VecDeque<QuarantineRecord>>,
    unstored: Mutex<VecDeque<UnstoredCommand>>,
}

impl Quarantine {
    pub(crate) fn put(&self, command: UnstoredCommand) {
        push(&self.records, RECORDS_MAX, command.record.clone());
        push(&self.unstored, UNSTORED_MAX, command);
    }

    pub(crate) fn records(&self) -> Vec<QuarantineRecord> {
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }

    /// Returns the oldest command that is not yet stored.
    pub fn oldest_unstored_command(&self) -> Option<UnstoredCommand> {
        self.unstored
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .front()
            .cloned()
    }

    pub fn mark_stored(&self, reference: CommandId) {
        let mut unstored = self.unstored.lock().unwrap_or_else(PoisonError::into_inner);
        unstored.retain(|command| command.record.reference != reference);
    }
}

/// Appends to a list. Removes the oldest element of a full list.
fn push<T>(list: &Mutex<VecDeque<T>>, max: usize, element: T) {
    let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
    if list.len() == max {
        list.pop_front();
    }
    list.push_back(element);
}

#[cfg(test)]
mod tests {
    use timing::clock;

    use super::*;

    #[test]
    fn the_oldest_record_is_removed_for_the_newest() {
        let quarantine = Quarantine::default();
        let references: Vec<_> = (0..=RECORDS_MAX).map(|_| clock::new_id()).collect();
        for reference in &references {
            let record = QuarantineRecord {
                reference: *reference,
                actor: "t".to_owned(),
                command: "Create".to_owned(),
                at: String::new(),
                panic: String::new(),
            };
            let at = Timestamp::UNIX_EPOCH;
            quarantine.put(UnstoredCommand {
                record,
                kind: NodeKind::transient("worker"),
                at,
                contents: None,
            });
        }
        let first = quarantine
            .oldest_unstored_command()
            .unwrap()
            .record
            .reference;
        assert_eq!(first, references[references.len() - UNSTORED_MAX]);
        quarantine.mark_stored(first);
        assert_ne!(
            quarantine
                .oldest_unstored_command()
                .unwrap()
                .record
                .reference,
            first
        );
        let kept: Vec<_> = quarantine
            .records()
            .iter()
            .map(|record| record.reference)
            .collect();
        assert_eq!(kept, references[1..]);
    }
}
