//! A replay delivers events of the log again, in batches. Its stored position lets it continue after a crash.

use jiff::Timestamp;
use serde::Serialize;

use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::selection::DeliverySelection;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};

words! {
    /// The events that a replay delivers. `Failed`: events whose delivery is a dead letter. `Missing`: enabled events
    /// without a delivery. `All`: every event that is enabled or has a delivery. `Selected`: the chosen deliveries; a
    /// caller cannot send this word.
    ReplayScope { Failed = "failed", Missing = "missing", All = "all", Selected = "selected" }
}

impl ReplayScope {
    /// Parses a scope that a caller may ask for.
    pub fn parse_requestable_scope(word: &str) -> Option<Self> {
        Self::parse(word).filter(|scope| *scope != Self::Selected)
    }

    /// Returns the scopes that a caller may ask for, separated by commas.
    pub fn requestable_scope_list() -> String {
        let asked = Self::ALL.iter().filter(|scope| **scope != Self::Selected);
        let words: Vec<_> = asked.map(|scope| scope.as_str()).collect();
        words.join(", ")
    }
}

words! {
    /// The scope of the replay that starts when a caller enables a webhook; `None` starts no replay.
    AfterEnable { None = "none", Failed = "failed", Missing = "missing" }
}

impl AfterEnable {
    pub fn scope(self) -> Option<ReplayScope> {
        match self {
            Self::None => None,
            Self::Failed => Some(ReplayScope::Failed),
            Self::Missing => Some(ReplayScope::Missing),
        }
    }
}

words! {
    ReplayState { Running = "running", Done = "done", Cancelled = "cancelled" }
}

/// The maximum number of running replays of one endpoint.
pub const OPEN_REPLAYS_MAX: usize = 100;

/// A replay of one range of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    pub id: uuid::Uuid,
    pub taxpayer_id: TaxpayerId,
    pub endpoint: EndpointKey,
    pub scope: ReplayScope,
    /// The chosen deliveries; set if and only if the scope is `Selected`.
    pub selection: Option<DeliverySelection>,
    pub state: ReplayState,
    /// The range begins with the event after this sequence.
    pub after: i64,
    /// The sequence of the last event of the range. It is at most the end of the log at the time of the request.
    pub until: i64,
    /// The sequence of the last event that was processed.
    pub position: i64,
    /// The number of deliveries queued so far.
    pub queued: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The events that a caller requests: those with a sequence above `after` and up to `until`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayRange {
    pub scope: ReplayScope,
    /// The chosen deliveries; set if and only if the scope is `Selected`.
    pub selection: Option<DeliverySelection>,
    pub after: i64,
    pub until: i64,
}

impl ReplayRange {
    /// Returns the range of all events from `sequence` on.
    pub fn from_sequence(scope: ReplayScope, sequence: i64) -> Self {
        Self {
            scope,
            selection: None,
            after: sequence.max(1) - 1,
            until: i64::MAX,
        }
    }

    /// Returns the range from `sequence` to `until`, in which only the selected deliveries are sent again.
    pub fn for_selection(selection: DeliverySelection, sequence: i64, until: i64) -> Self {
        Self {
            scope: ReplayScope::Selected,
            selection: Some(selection),
            after: sequence.max(1) - 1,
            until,
        }
    }

    /// Returns the range in which only the deliveries of the events with these sequences are sent again.
    pub fn for_deliveries(mut sequences: Vec<i64>) -> Self {
        sequences.sort_unstable();
        let first = sequences.first().copied().unwrap_or_default();
        let last = sequences.last().copied().unwrap_or_default();
        Self::for_selection(DeliverySelection::Chosen(sequences), first, last)
    }

    /// Returns the range of this single event. With the scope `All`, the event is delivered again even if it was
    /// delivered before.
    pub fn for_event(sequence: i64) -> Self {
        Self {
            scope: ReplayScope::All,
            selection: None,
            after: sequence.max(1) - 1,
            until: sequence,
        }
    }
}

impl Replay {
    /// Creates a replay to this endpoint. `head` is the sequence of the last event of the log.
    pub fn new(
        id: uuid::Uuid,
        endpoint: &Endpoint,
        range: ReplayRange,
        head: i64,
        now: Timestamp,
    ) -> Self {
        let until = range.until.min(head);
        let after = range.after.clamp(0, until);
        let replay = Self {
            id,
            taxpayer_id: endpoint.taxpayer_id,
            endpoint: endpoint.key,
            scope: range.scope,
            selection: range.selection,
            state: ReplayState::Running,
            after,
            until,
            position: after,
            queued: 0,
            created_at: now,
            updated_at: now,
        };
        replay.advance(after, 0, now)
    }

    /// Records that the events up to `position` were processed, and that `queued` more deliveries were queued.
    #[must_use]
    pub fn advance(self, position: i64, queued: usize, now: Timestamp) -> Self {
        let position = position.clamp(self.position, self.until);
        let state = if position == self.until {
            ReplayState::Done
        } else {
            ReplayState::Running
        };
        let queued = self
            .queued
            .saturating_add(i64::try_from(queued).unwrap_or(i64::MAX));
        Self {
            position,
            state,
            queued,
            updated_at: now,
            ..self
        }
    }

    /// Cancels the replay. Deliveries that are already queued are still sent.
    #[must_use]
    pub fn cancel(self, now: Timestamp) -> Self {
        Self {
            state: ReplayState::Cancelled,
            updated_at: now,
            ..self
        }
    }

    pub fn is_open(&self) -> bool {
        self.state == ReplayState::Running
    }

    /// True if a request for `range` need not start a second replay, because this replay has the same scope and either
    /// has the same range or still has all of `range` before it. A replay of the same range counts even if it has
    /// advanced, because the request is then a repetition. A replay of a larger range does not count once it has passed
    /// the start of `range`: the events that it has passed would not be sent again.
    pub fn covers(&self, range: &ReplayRange, head: i64) -> bool {
        let until = range.until.min(head);
        let is_same = self.after == range.after && self.until == until;
        let is_ahead = self.position <= range.after && until <= self.until;
        let is_alike = self.scope == range.scope && self.selection == range.selection;
        is_alike && (is_same || is_ahead)
    }

    /// True if the replay has yet to process the event with this sequence.
    pub fn must_still_process(&self, sequence: i64) -> bool {
        self.position < sequence && sequence <= self.until
    }

    /// Returns the number of events that the replay has yet to process.
    pub fn remaining_events(&self) -> i64 {
        self.until - self.position
    }

    pub fn percent_done(&self) -> i64 {
        match self.until - self.after {
            0 => 100,
            whole => (self.position - self.after).saturating_mul(100) / whole,
        }
    }

    /// True if the range contains no event of the log.
    pub fn is_empty(&self) -> bool {
        self.after == self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::events::selection::DeliveryConditions;

    fn open(range: ReplayRange, head: i64) -> Replay {
        let now = Timestamp::UNIX_EPOCH;
        let endpoint = Endpoint::new(1, TaxpayerId(7), String::new(), now);
        Replay::new(uuid::Uuid::nil(), &endpoint, range, head, now)
    }

    #[test]
    fn a_range_is_kept_within_the_log() {
        for (since, head, after, until, state) in [
            (0, 10, 0, 10, ReplayState::Running),
            (1, 10, 0, 10, ReplayState::Running),
            (10, 10, 9, 10, ReplayState::Running),
            (11, 10, 10, 10, ReplayState::Done),
            (i64::MAX, 10, 10, 10, ReplayState::Done),
            (i64::MIN, 10, 0, 10, ReplayState::Running),
            (1, 0, 0, 0, ReplayState::Done),
        ] {
            let replay = open(ReplayRange::from_sequence(ReplayScope::All, since), head);
            assert_eq!(
                (replay.after, replay.until, replay.state),
                (after, until, state),
                "since {since} of {head}"
            );
        }
    }

    #[test]
    fn a_replay_is_done_at_the_end_of_its_range_and_never_goes_back() {
        let now = Timestamp::UNIX_EPOCH;
        let replay =
            open(ReplayRange::from_sequence(ReplayScope::Failed, 1), 10).advance(4, 3, now);
        assert_eq!(
            (
                replay.position,
                replay.queued,
                replay.is_open(),
                replay.remaining_events()
            ),
            (4, 3, true, 6)
        );
        let replay = replay.advance(2, 0, now).advance(99, 2, now);
        assert_eq!(
            (replay.position, replay.queued, replay.is_open()),
            (10, 5, false)
        );
    }

    #[test]
    fn progress_is_a_percentage() {
        let now = Timestamp::UNIX_EPOCH;
        let replay = open(ReplayRange::from_sequence(ReplayScope::All, 3), 10);
        for (position, percent, remaining) in
            [(2, 0, 8), (3, 12, 7), (6, 50, 4), (9, 87, 1), (10, 100, 0)]
        {
            let replay = replay.clone().advance(position, 0, now);
            assert_eq!(
                (replay.percent_done(), replay.remaining_events()),
                (percent, remaining),
                "{position}"
            );
        }
        let nothing = open(ReplayRange::from_sequence(ReplayScope::All, 11), 10);
        assert_eq!(
            (
                nothing.percent_done(),
                nothing.is_empty(),
                replay.is_empty()
            ),
            (100, true, false)
        );
        let cancelled = replay.advance(6, 2, now).cancel(now);
        assert_eq!(
            (
                cancelled.is_open(),
                cancelled.percent_done(),
                cancelled.queued
            ),
            (false, 50, 2)
        );
    }

    #[test]
    fn a_replay_covers_events_it_has_not_processed_and_no_newer_ones() {
        let range = ReplayRange::from_sequence(ReplayScope::Failed, 1);
        let replay = open(range.clone(), 10);
        assert!(replay.covers(&range, 10));
        assert!(!replay.covers(&range, 11), "an event came since");
        assert!(!replay.covers(&ReplayRange::from_sequence(ReplayScope::All, 1), 10));
        let replay = replay.advance(4, 0, Timestamp::UNIX_EPOCH);
        assert!(replay.covers(&range, 10), "the same request again");
        assert!(
            !replay.covers(&ReplayRange::from_sequence(ReplayScope::Failed, 3), 10),
            "what it has passed by"
        );
        assert!(replay.covers(&ReplayRange::from_sequence(ReplayScope::Failed, 5), 10));
        let part = ReplayRange {
            after: 6,
            until: 7,
            ..range
        };
        assert!(replay.covers(&part, 10));
    }

    #[test]
    fn a_replay_covers_no_event_that_it_has_passed_even_if_it_began_there() {
        let all = ReplayRange::from_sequence(ReplayScope::All, 4);
        for (position, asked, is_covered) in [
            (3, ReplayRange::for_event(4), true),
            (7, ReplayRange::for_event(4), false),
            (7, ReplayRange::for_event(7), false),
            (7, ReplayRange::for_event(8), true),
            (7, all.clone(), true),
        ] {
            let replay = open(all.clone(), 10).advance(position, 0, Timestamp::UNIX_EPOCH);
            let covers = replay.covers(&asked, 10);
            assert_eq!(covers, is_covered, "{asked:?} at {position}");
        }
    }

    #[test]
    fn a_replay_of_a_selection_covers_only_the_same_selection() {
        let range = |selection| ReplayRange::for_selection(selection, 1, i64::MAX);
        let chosen = |sequences: &[i64]| range(DeliverySelection::Chosen(sequences.to_vec()));
        let replay = open(chosen(&[2, 5]), 10);
        assert!(replay.covers(&chosen(&[2, 5]), 10));
        assert!(!replay.covers(&chosen(&[2]), 10));
        let all = DeliverySelection::Matching(DeliveryConditions::default());
        assert!(!replay.covers(&range(all), 10));
        assert!(!replay.covers(&ReplayRange::from_sequence(ReplayScope::All, 1), 10));
    }

    #[test]
    fn a_caller_asks_for_no_selection_by_a_scope() {
        assert_eq!(
            ReplayScope::requestable_scope_list(),
            "failed, missing, all"
        );
        let parsed = ["all", "Selected"].map(ReplayScope::parse_requestable_scope);
        assert_eq!(parsed, [Some(ReplayScope::All), None]);
    }

    #[test]
    fn one_event_is_a_range_of_one() {
        let replay = open(ReplayRange::for_event(4), 10);
        assert_eq!(
            (replay.after, replay.until, replay.remaining_events()),
            (3, 4, 1)
        );
    }
}
