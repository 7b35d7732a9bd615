//! The period of a report: a month, a quarter or a year of the calendar.

use std::fmt;

use jiff::ToSpan;
use jiff::civil::Date;

use crate::domain::kernel::codes::words;

words! {
    /// The length of a period. Its word is the name of the parameter that chooses such a period.
    PeriodKind { Month = "month", Quarter = "quarter", Year = "year" }
}

impl PeriodKind {
    fn month_count(self) -> i8 {
        match self {
            Self::Month => 1,
            Self::Quarter => 3,
            Self::Year => 12,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportPeriod {
    kind: PeriodKind,
    first_day: Date,
}

impl ReportPeriod {
    /// Returns the period of this kind that the day belongs to.
    pub fn containing(kind: PeriodKind, day: Date) -> Self {
        let months_before = (day.month() - 1) % kind.month_count();
        Self {
            kind,
            first_day: day.first_of_month().saturating_sub(months_before.months()),
        }
    }

    /// Parses a month written `2026-11`, a quarter written `2026-Q4` or a year written `2026`.
    pub fn parse(kind: PeriodKind, text: &str) -> Option<Self> {
        let (year, month) = match kind {
            PeriodKind::Month => text.split_once('-')?,
            PeriodKind::Quarter => {
                let (year, quarter) = text.split_once("-Q")?;
                (year, first_month(quarter)?)
            }
            PeriodKind::Year => (text, "01"),
        };
        let has_digits =
            |part: &str, digits| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
        if !has_digits(year, 4) || !has_digits(month, 2) {
            return None;
        }
        let first_day: Date = format!("{year}-{month}-01").parse().ok()?;
        (first_day.year() > 0).then_some(Self { kind, first_day })
    }

    pub fn kind(self) -> PeriodKind {
        self.kind
    }

    pub fn first_day(self) -> Date {
        self.first_day
    }

    pub fn last_day(self) -> Date {
        let months_after = self.kind.month_count() - 1;
        let last_month = self.first_day.saturating_add(months_after.months());
        last_month.last_of_month()
    }

    /// Returns the period of the same kind before this one; `None` before the year 1.
    pub fn previous(self) -> Option<Self> {
        let months = self.kind.month_count().months();
        let first_day = self.first_day.saturating_sub(months);
        (first_day.year() > 0).then_some(Self { first_day, ..self })
    }

    /// Returns the period of the same kind after this one; `None` if the calendar ends before it.
    pub fn following(self) -> Option<Self> {
        let first_day = self.last_day().tomorrow().ok()?;
        Some(Self { first_day, ..self })
    }
}

/// Writes the period as `parse` reads it.
impl fmt::Display for ReportPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let year = self.first_day.year();
        let month = self.first_day.month();
        match self.kind {
            PeriodKind::Month => write!(f, "{year:04}-{month:02}"),
            PeriodKind::Quarter => write!(f, "{year:04}-Q{}", (month - 1) / 3 + 1),
            PeriodKind::Year => write!(f, "{year:04}"),
        }
    }
}

fn first_month(quarter: &str) -> Option<&'static str> {
    match quarter {
        "1" => Some("01"),
        "2" => Some("04"),
        "3" => Some("07"),
        "4" => Some("10"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::PeriodKind::{Month, Quarter, Year};
    use super::*;

    #[test]
    fn a_period_has_its_days_and_its_neighbours() {
        for (kind, line) in [
            (Month, "2026-11: 2026-11-01 to 2026-11-30, 2026-10 2026-12"),
            (Month, "2026-12: 2026-12-01 to 2026-12-31, 2026-11 2027-01"),
            (Month, "2026-02: 2026-02-01 to 2026-02-28, 2026-01 2026-03"),
            (Month, "2028-02: 2028-02-01 to 2028-02-29, 2028-01 2028-03"),
            (Month, "2100-02: 2100-02-01 to 2100-02-28, 2100-01 2100-03"),
            (
                Quarter,
                "2028-Q1: 2028-01-01 to 2028-03-31, 2027-Q4 2028-Q2",
            ),
            (
                Quarter,
                "2026-Q2: 2026-04-01 to 2026-06-30, 2026-Q1 2026-Q3",
            ),
            (
                Quarter,
                "2026-Q3: 2026-07-01 to 2026-09-30, 2026-Q2 2026-Q4",
            ),
            (
                Quarter,
                "2026-Q4: 2026-10-01 to 2026-12-31, 2026-Q3 2027-Q1",
            ),
            (Year, "2028: 2028-01-01 to 2028-12-31, 2027 2029"),
            (Year, "0002: 0002-01-01 to 0002-12-31, 0001 0003"),
        ] {
            let text = line.split(':').next().unwrap();
            let period = ReportPeriod::parse(kind, text).unwrap();
            let first = period.first_day();
            let last = period.last_day();
            let previous = period.previous().unwrap();
            let following = period.following().unwrap();
            let found = format!("{period}: {first} to {last}, {previous} {following}");
            assert_eq!(found, line);
            for day in [first, last] {
                assert_eq!(ReportPeriod::containing(kind, day), period, "{day}");
            }
        }
        let first = ReportPeriod::parse(Quarter, "0001-Q1").unwrap();
        assert_eq!(first.previous(), None);
        let last = ReportPeriod::parse(Year, "9999").unwrap();
        assert_eq!((last.last_day(), last.following()), (Date::MAX, None));
    }

    #[test]
    fn another_spelling_is_no_period() {
        for (kind, texts) in [
            (
                Month,
                " 2026 2026-13 2026-00 2026-1 26-01 2026-01-01 01-2026 0000-01 -999-01 2026-Q1 2026-+1 now",
            ),
            (
                Quarter,
                " 2026 2026-Q0 2026-Q5 2026-Q01 2026-q1 2026Q1 2026-1 2026-01 Q1-2026 26-Q1 0000-Q1 2026-Q1-Q1",
            ),
            (
                Year,
                " 26 02026 0000 +026 -026 2026-01 2026-Q1 \u{662}026 now",
            ),
        ] {
            for text in texts.split(' ') {
                assert_eq!(ReportPeriod::parse(kind, text), None, "{kind} {text}");
            }
        }
    }
}
