//! The timeline of one invoice: events, calls to the authority and delivery attempts, ordered by time.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::domain::kernel::audit::NamedActor;
use crate::domain::kernel::codes::words;

/// The maximum number of entries in a timeline. If there are more, the newest entries are kept.
pub const ENTRIES_MAX: usize = 1_000;

words! {
    /// The log from which an entry of the timeline comes.
    EntryKind { Event = "event", Step = "step", Delivery = "delivery" }
}

#[derive(Debug, Clone, PartialEq)]
pub struct TimelineEntry {
    pub at: Timestamp,
    pub kind: EntryKind,
    /// The name of the step, or of the event that was logged or delivered.
    pub name: String,
    /// The result of a step or of a delivery attempt; `None` for events and while a step is in flight.
    pub outcome: Option<String>,
    pub attempt: Option<u32>,
    pub duration_ms: Option<i64>,
    /// The actor that caused an event; the service for steps and deliveries. `None` for events from before actors were
    /// recorded.
    pub actor: Option<NamedActor>,
    pub detail: Map<String, Value>,
}

/// The newest entries of an invoice's timeline, ordered by time, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    pub entries: Vec<TimelineEntry>,
    /// True if older entries are left out.
    pub is_cut: bool,
}

impl Timeline {
    /// Merges logs by time. The entries of one log keep their order, even if the clock was set back between them. Of
    /// entries with the same time, the entry of the earlier log in `logs` comes first.
    pub fn from_logs(logs: impl IntoIterator<Item = Vec<TimelineEntry>>) -> Self {
        let mut logs: Vec<_> = logs.into_iter().map(VecDeque::from).collect();
        let mut entries = Vec::new();
        while let Some(entry) = take_earliest(&mut logs) {
            entries.push(entry);
        }
        let surplus = entries.len().saturating_sub(ENTRIES_MAX);
        entries.drain(..surplus);
        Self {
            entries,
            is_cut: surplus > 0,
        }
    }
}

fn take_earliest(logs: &mut [VecDeque<TimelineEntry>]) -> Option<TimelineEntry> {
    let waiting = logs.iter_mut().filter(|log| !log.is_empty());
    waiting
        .min_by_key(|log| log.front().map(|entry| entry.at))?
        .pop_front()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> TimelineEntry {
        TimelineEntry {
            at: Timestamp::from_second(second).unwrap(),
            kind: EntryKind::Event,
            name: second.to_string(),
            outcome: None,
            attempt: None,
            duration_ms: None,
            actor: None,
            detail: Map::new(),
        }
    }

    fn names(timeline: &Timeline) -> Vec<&str> {
        let names = timeline.entries.iter().map(|entry| entry.name.as_str());
        names.collect()
    }

    #[test]
    fn logs_are_merged_by_time_and_each_keeps_its_order() {
        for (logs, merged) in [
            (vec![vec![], vec![at(1)]], vec!["1"]),
            (
                vec![vec![at(1), at(4)], vec![at(2), at(3)]],
                vec!["1", "2", "3", "4"],
            ),
            // The clock was set back after 5.
            (
                vec![vec![at(5), at(2), at(6)], vec![at(3)]],
                vec!["3", "5", "2", "6"],
            ),
        ] {
            let timeline = Timeline::from_logs(logs);
            assert_eq!((names(&timeline), timeline.is_cut), (merged, false));
        }
    }

    #[test]
    fn the_newest_entries_are_kept() {
        let many = Timeline::from_logs([(0..=1_000).map(at).collect()]);
        assert_eq!(
            (many.entries.len(), names(&many)[0], many.is_cut),
            (1_000, "1", true)
        );
    }
}
