//! The events of a simulation, in the order of their times. Events of the same time keep the order of their planning.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    Arrive,
    Answer { run: usize },
    Fail { run: usize },
    GiveUp { run: usize },
    Probe,
    Sample,
}

#[derive(Default)]
pub(super) struct Schedule {
    /// Each with its time and its number.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    planned: u64,
}

impl Schedule {
    pub(super) fn plan(&mut self, at: u64, event: Event) {
        self.planned += 1;
        self.events.push(Reverse((at, self.planned, event)));
    }

    /// Takes the next event, with its time.
    pub(super) fn pop(&mut self) -> Option<(u64, Event)> {
        let Reverse((at, _, event)) = self.events.pop()?;
        Some((at, event))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}
