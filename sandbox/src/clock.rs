//! The only place that reads the wall clock.
//!
//! The simulator is the outside world, so its time is real; other modules take the time as an argument.

use jiff::{Timestamp, civil::Date, tz::TimeZone};

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is the outside world: its clock is the real one"
)]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// Returns the day of a moment, in UTC.
pub(crate) fn day(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

/// A day in UTC, from its first moment to the first of the next.
pub(crate) fn span(day: Date) -> Option<(Timestamp, Timestamp)> {
    let start = |day: Date| day.to_zoned(TimeZone::UTC).ok().map(|start| start.timestamp());
    Some((start(day)?, start(day.tomorrow().ok()?)?))
}
