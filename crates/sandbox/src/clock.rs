//! The only module that reads the wall clock. Other code asks this module or takes the time as an argument.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::Offset;

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is the outside world: its clock is the real one"
)]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// Returns the calendar day of a moment in a time zone.
pub(crate) fn day(at: Timestamp, zone: Offset) -> Date {
    zone.to_datetime(at).date()
}

/// Returns the start of this day and the start of the next day in a time zone.
pub(crate) fn day_span(day: Date, zone: Offset) -> Option<(Timestamp, Timestamp)> {
    Some((
        day_start(day, zone)?,
        day_start(day.tomorrow().ok()?, zone)?,
    ))
}

fn day_start(day: Date, zone: Offset) -> Option<Timestamp> {
    zone.to_timestamp(day.to_datetime(Time::midnight())).ok()
}

#[cfg(test)]
mod tests {
    use jiff::tz::offset;

    use super::*;

    #[test]
    fn a_day_is_one_in_the_time_zone_of_the_authority() {
        for (at, zone, expected) in [
            ("2026-11-29T22:59:59Z", offset(1), "2026-11-29"),
            ("2026-11-29T23:00:00Z", offset(1), "2026-11-30"),
            ("2026-11-29T23:00:00Z", Offset::UTC, "2026-11-29"),
            ("2026-11-30T01:00:00Z", offset(-2), "2026-11-29"),
        ] {
            let at: Timestamp = at.parse().unwrap();
            let found = day(at, zone);
            assert_eq!(found.to_string(), expected, "{at} {zone}");
            let (start, end) = day_span(found, zone).unwrap();
            assert!(start <= at && at < end, "{at} {zone}");
        }
    }
}
