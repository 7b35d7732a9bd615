//! Template filters that write times, durations and amounts.

#![expect(
    clippy::inline_always,
    clippy::trivially_copy_pass_by_ref,
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "askama turns each filter into a type and dictates its parameters and its return type"
)]

use std::fmt::Display;

use askama::filters::Safe;
use jiff::Timestamp;

use crate::domain::money::group_digits;

/// Writes a time in UTC, exact to a second.
#[askama::filter_fn]
pub(crate) fn moment(time: &Timestamp, _: &dyn askama::Values) -> askama::Result<Safe<String>> {
    let exact = time.strftime("%Y-%m-%dT%H:%M:%SZ");
    let readable = time.strftime("%Y-%m-%d %H:%M:%S");
    Ok(Safe(format!(
        "<time datetime=\"{exact}\">{readable}</time>"
    )))
}

/// Writes a time in UTC without its year, for dense lists. A tooltip shows the whole time.
#[askama::filter_fn]
pub(crate) fn short_time(time: &Timestamp, _: &dyn askama::Values) -> askama::Result<Safe<String>> {
    let exact = time.strftime("%Y-%m-%dT%H:%M:%SZ");
    let full = time.strftime("%Y-%m-%d %H:%M:%S UTC");
    let readable = time.strftime("%d %b %H:%M:%S");
    Ok(Safe(format!(
        "<time datetime=\"{exact}\" title=\"{full}\">{readable}</time>"
    )))
}

/// Writes a time in UTC as plain text, for places that take no markup.
#[askama::filter_fn]
pub(crate) fn utc(time: &Timestamp, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(time.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// Writes an amount with all its digits, and with commas between thousands.
#[askama::filter_fn]
pub(crate) fn money(amount: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(group_digits(&amount.to_string()))
}

/// Writes a number of microseconds as a duration for people, such as `2.5 s`.
#[askama::filter_fn]
pub(crate) fn duration(us: &u64, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(duration_words(*us))
}

/// Returns a duration with about two significant digits, in a suitable unit.
pub(crate) fn duration_words(us: u64) -> String {
    const SECOND: u64 = 1_000_000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;
    match us {
        0..1_000 => "< 1 ms".to_owned(),
        1_000..10_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        10_000..SECOND => format!("{} ms", us / 1_000),
        SECOND..MINUTE => format!("{}.{} s", us / SECOND, us % SECOND / 100_000),
        MINUTE..HOUR => format!("{} min {} s", us / MINUTE, us % MINUTE / SECOND),
        _ => format!("{} h {} min", us / HOUR, us % HOUR / MINUTE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_the_unit_that_fits() {
        for (us, words) in [
            (0, "< 1 ms"),
            (999, "< 1 ms"),
            (2_560, "2.5 ms"),
            (340_999, "340 ms"),
            (2_540_000, "2.5 s"),
            (59_999_999, "59.9 s"),
            (200_000_000, "3 min 20 s"),
            (7_500_000_000, "2 h 5 min"),
        ] {
            assert_eq!(duration_words(us), words);
        }
    }
}
