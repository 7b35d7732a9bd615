//! A replay: events of the log that are to be delivered once more. It is work that goes on until it is done:
//! its place in the log is kept, so that a process that dies in it goes on where it was.

use jiff::Timestamp;
use serde::Serialize;

use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::TaxpayerId;

words! {
    /// Which events of the range are meant: those whose attempts were spent, those of enabled names that never
    /// had a delivery, or all that have one or are of enabled names.
    ReplayScope { Failed = "failed", Missing = "missing", All = "all" }
}

words! {
    /// What is replayed when a webhook is enabled.
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

/// Replays of one taxpayer that are under way at most.
pub const OPEN_REPLAYS_MAX: usize = 100;

/// A part of the log that is delivered once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    pub id: uuid::Uuid,
    pub taxpayer_id: TaxpayerId,
    pub scope: ReplayScope,
    pub state: ReplayState,
    /// The events after this number,
    pub after: i64,
    /// up to this one: the end of the log when it was asked for.
    pub until: i64,
    /// The last event that was looked at.
    pub reached: i64,
    /// Deliveries that were queued again so far.
    pub queued: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Which replay is wanted: a scope, and the events after a number, up to another or to the end of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReplayRange {
    pub scope: ReplayScope,
    pub after: i64,
    pub until: i64,
}

impl ReplayRange {
    /// From an event on.
    pub fn since(scope: ReplayScope, sequence: i64) -> Self {
        Self { scope, after: sequence.max(1) - 1, until: i64::MAX }
    }

    /// One event, whatever became of it.
    pub fn only(sequence: i64) -> Self {
        Self { scope: ReplayScope::All, after: sequence.max(1) - 1, until: sequence }
    }
}

impl Replay {
    /// A new one, over a log that ends with `head`.
    pub fn open(
        id: uuid::Uuid,
        taxpayer_id: TaxpayerId,
        range: ReplayRange,
        (head, now): (i64, Timestamp),
    ) -> Self {
        let until = range.until.min(head);
        let after = range.after.clamp(0, until);
        let replay = Self {
            id,
            taxpayer_id,
            scope: range.scope,
            state: ReplayState::Running,
            after,
            until,
            reached: after,
            queued: 0,
            created_at: now,
            updated_at: now,
        };
        replay.advanced(after, 0, now)
    }

    /// After events up to `reached` were looked at and so many of them queued.
    #[must_use]
    pub fn advanced(self, reached: i64, queued: usize, now: Timestamp) -> Self {
        let reached = reached.clamp(self.reached, self.until);
        let state = if reached == self.until { ReplayState::Done } else { ReplayState::Running };
        let queued = self.queued.saturating_add(i64::try_from(queued).unwrap_or(i64::MAX));
        Self { reached, state, queued, updated_at: now, ..self }
    }

    /// Ended before its end: what it has queued is still delivered, nothing more is.
    #[must_use]
    pub fn cancelled(self, now: Timestamp) -> Self {
        Self { state: ReplayState::Cancelled, updated_at: now, ..self }
    }

    pub fn is_open(&self) -> bool {
        self.state == ReplayState::Running
    }

    /// Whether it does what is asked for already: the same events, from the same one on or from one that it has
    /// not come to yet. A request that was sent twice is then one replay.
    pub fn covers(&self, range: ReplayRange, head: i64) -> bool {
        let begins = self.after == range.after || self.reached <= range.after;
        self.scope == range.scope && begins && range.until.min(head) <= self.until
    }

    /// Whether it has still to come to this event.
    pub fn is_ahead(&self, sequence: i64) -> bool {
        self.reached < sequence && sequence <= self.until
    }

    /// Events that are left to look at.
    pub fn remaining(&self) -> i64 {
        self.until - self.reached
    }

    /// How much of it was looked at, in percent.
    pub fn percent(&self) -> i64 {
        match self.until - self.after {
            0 => 100,
            whole => (self.reached - self.after).saturating_mul(100) / whole,
        }
    }

    /// Whether the log has nothing from there on.
    pub fn is_empty(&self) -> bool {
        self.after == self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(range: ReplayRange, head: i64) -> Replay {
        Replay::open(uuid::Uuid::nil(), TaxpayerId(7), range, (head, Timestamp::UNIX_EPOCH))
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
            let replay = open(ReplayRange::since(ReplayScope::All, since), head);
            assert_eq!(
                (replay.after, replay.until, replay.state),
                (after, until, state),
                "since {since} of {head}"
            );
        }
    }

    #[test]
    fn it_is_done_at_the_end_of_its_range_and_never_goes_back() {
        let now = Timestamp::UNIX_EPOCH;
        let replay = open(ReplayRange::since(ReplayScope::Failed, 1), 10).advanced(4, 3, now);
        assert_eq!((replay.reached, replay.queued, replay.is_open(), replay.remaining()), (4, 3, true, 6));
        let replay = replay.advanced(2, 0, now).advanced(99, 2, now);
        assert_eq!((replay.reached, replay.queued, replay.is_open()), (10, 5, false));
    }

    #[test]
    fn its_progress_is_told_in_percent() {
        let now = Timestamp::UNIX_EPOCH;
        let replay = open(ReplayRange::since(ReplayScope::All, 3), 10);
        for (reached, percent, remaining) in [(2, 0, 8), (3, 12, 7), (6, 50, 4), (9, 87, 1), (10, 100, 0)] {
            let replay = replay.clone().advanced(reached, 0, now);
            assert_eq!((replay.percent(), replay.remaining()), (percent, remaining), "{reached}");
        }
        let nothing = open(ReplayRange::since(ReplayScope::All, 11), 10);
        assert_eq!((nothing.percent(), nothing.is_empty(), replay.is_empty()), (100, true, false));
        let cancelled = replay.advanced(6, 2, now).cancelled(now);
        assert_eq!((cancelled.is_open(), cancelled.percent(), cancelled.queued), (false, 50, 2));
    }

    #[test]
    fn it_covers_what_it_has_not_looked_at_yet_and_nothing_newer() {
        let range = ReplayRange::since(ReplayScope::Failed, 1);
        let replay = open(range, 10);
        assert!(replay.covers(range, 10));
        assert!(!replay.covers(range, 11), "an event came since");
        assert!(!replay.covers(ReplayRange { scope: ReplayScope::All, ..range }, 10));
        let replay = replay.advanced(4, 0, Timestamp::UNIX_EPOCH);
        assert!(replay.covers(range, 10), "the same request again");
        assert!(!replay.covers(ReplayRange::since(ReplayScope::Failed, 3), 10), "what it has passed by");
        assert!(replay.covers(ReplayRange::since(ReplayScope::Failed, 5), 10));
        assert!(replay.covers(ReplayRange { scope: ReplayScope::Failed, after: 6, until: 7 }, 10));
    }

    #[test]
    fn one_event_is_a_range_of_one() {
        let replay = open(ReplayRange::only(4), 10);
        assert_eq!((replay.after, replay.until, replay.remaining()), (3, 4, 1));
    }
}
