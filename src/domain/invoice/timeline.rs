//! The timeline of one invoice: events, calls to the authority and delivery attempts, ordered by time.

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
    /// The result of a step or of a delivery attempt. It is `None` while a step is in flight, and for events.
    pub outcome: Option<String>,
    pub attempt: Option<u32>,
    pub duration_ms: Option<i64>,
    /// The actor that caused an event; the service for steps and deliveries. `None` for events that are older than the
    /// record of actors.
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
    /// Builds a timeline. Entries with the same time keep the order in which they are passed.
    pub fn from_entries(mut entries: Vec<TimelineEntry>) -> Self {
        entries.sort_by_key(|entry| entry.at);
        let surplus = entries.len().saturating_sub(ENTRIES_MAX);
        entries.drain(..surplus);
        Self {
            entries,
            is_cut: surplus > 0,
        }
    }
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

    #[test]
    fn a_timeline_is_in_order_and_keeps_the_newest() {
        let timeline = Timeline::from_entries(vec![at(3), at(1), at(2)]);
        let names: Vec<_> = timeline
            .entries
            .iter()
            .map(|entry| entry.name.as_str())
            .collect();
        assert_eq!((names, timeline.is_cut), (vec!["1", "2", "3"], false));
        let many = Timeline::from_entries((0..=1_000).map(at).collect());
        assert_eq!(
            (
                many.entries.len(),
                many.entries[0].name.as_str(),
                many.is_cut
            ),
            (1_000, "1", true)
        );
    }
}
