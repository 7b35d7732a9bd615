//! Dates in words, because 03/04/2026 can mean two days.

use jiff::civil::{Date, Time};
use trade_document::Period;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Writes a date such as 24 November 2026.
pub fn write_date(date: Date) -> String {
    let month = usize::try_from(date.month() - 1)
        .ok()
        .and_then(|index| MONTHS.get(index));
    format!("{} {} {}", date.day(), month.unwrap_or(&""), date.year())
}

/// Writes the date and time at which a document was issued.
pub fn write_issue_date(date: Date, time: Option<Time>) -> String {
    match time {
        Some(time) => format!(
            "{}, {:02}:{:02}",
            write_date(date),
            time.hour(),
            time.minute()
        ),
        None => write_date(date),
    }
}

/// Writes a period; `None` if it has neither start nor end.
pub fn write_period(period: Period) -> Option<String> {
    match (period.start, period.end) {
        (Some(start), Some(end)) => Some(format!("{} to {}", write_date(start), write_date(end))),
        (Some(start), None) => Some(format!("from {}", write_date(start))),
        (None, Some(end)) => Some(format!("to {}", write_date(end))),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::{date, time};

    use super::*;

    #[test]
    fn a_date_names_its_month() {
        assert_eq!(write_date(date(2026, 3, 4)), "4 March 2026");
        assert_eq!(write_date(date(2026, 12, 31)), "31 December 2026");
        assert_eq!(
            write_issue_date(date(2026, 1, 1), Some(time(9, 5, 59, 0))),
            "1 January 2026, 09:05"
        );
    }

    #[test]
    fn a_period_may_be_open() {
        let start = Some(date(2026, 1, 1));
        let end = Some(date(2026, 1, 31));
        for (period, text) in [
            (
                Period { start, end },
                Some("1 January 2026 to 31 January 2026"),
            ),
            (Period { start, end: None }, Some("from 1 January 2026")),
            (Period { start: None, end }, Some("to 31 January 2026")),
            (
                Period {
                    start: None,
                    end: None,
                },
                None,
            ),
        ] {
            assert_eq!(write_period(period).as_deref(), text);
        }
    }
}
