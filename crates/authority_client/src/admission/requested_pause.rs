//! The pause of an operation that the authority asked for by a Retry-After.

use std::time::Duration;

use jiff::Timestamp;

/// The longest pause after the authority was overloaded. A longer Retry-After is shortened to this.
const PAUSE_MAX: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(crate) struct RequestedPause {
    /// `None` if the authority has never asked for a pause.
    until: Option<Timestamp>,
}

impl RequestedPause {
    /// Returns the end of the pause if it is still to come, unless the clock was set back since it was stored.
    pub(crate) fn end(&self, now: Timestamp) -> Option<Timestamp> {
        let latest = now.checked_add(PAUSE_MAX).unwrap_or(Timestamp::MAX);
        self.until
            .filter(|moment| now < *moment && *moment <= latest)
    }

    /// Returns how much is left of the pause; `None` if there is none.
    pub(crate) fn remaining(&self, now: Timestamp) -> Option<Duration> {
        Duration::try_from(self.end(now)?.duration_since(now)).ok()
    }

    /// Prolongs the pause to this length from now on. A longer pause that is already recorded stays.
    pub(crate) fn prolong(&mut self, wait: Duration, now: Timestamp) {
        let until = now
            .checked_add(wait.min(PAUSE_MAX))
            .unwrap_or(Timestamp::MAX);
        self.until = self.end(now).max(Some(until));
    }
}
