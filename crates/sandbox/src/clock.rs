//! The only module that reads the wall clock. Other code asks this module or takes the time as an argument.

use jiff::{Timestamp, civil::Date, tz::TimeZone};

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is the outside world: its clock is the real one"
)]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// Returns the calendar day of a moment, in UTC.
pub(crate) fn day(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

/// Returns the start of this day and the start of the next day, in UTC.
pub(crate) fn day_span(day: Date) -> Option<(Timestamp, Timestamp)> {
    Some((day_start(day)?, day_start(day.tomorrow().ok()?)?))
}

fn day_start(day: Date) -> Option<Timestamp> {
    Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
}
