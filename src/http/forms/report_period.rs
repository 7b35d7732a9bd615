//! The period of a report in a query string: a month, a quarter or a year.

use jiff::civil::Date;

use crate::domain::invoice::report_period::{PeriodKind, ReportPeriod};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::field_rule::FieldRule;
use crate::http::forms::query::Query;

/// Reads the period: the parameter `month`, `quarter` or `year`. Two of them are a fault. Without any it is the month
/// of `today`.
pub(crate) fn read(query: &Query, today: Date) -> Result<ReportPeriod, Fault> {
    let mut sent = PeriodKind::ALL
        .iter()
        .filter_map(|kind| Some((*kind, query.trimmed_text(kind.as_str())?)));
    let Some((kind, text)) = sent.next() else {
        return Ok(ReportPeriod::containing(PeriodKind::Month, today));
    };
    let name = kind.as_str();
    if let Some((second, _)) = sent.next() {
        let rule = FieldRule::other("conflict", format!("must not be sent together with {name}"));
        return Err(Fault::field(second.as_str(), rule));
    }
    ReportPeriod::parse(kind, &text)
        .ok_or_else(|| Fault::field(name, FieldRule::must_be(name, period_format(kind))))
}

fn period_format(kind: PeriodKind) -> &'static str {
    match kind {
        PeriodKind::Month => "a month written YYYY-MM",
        PeriodKind::Quarter => "a quarter written YYYY-Q1 to YYYY-Q4",
        PeriodKind::Year => "a year written YYYY",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_chooses_one_period_and_without_one_it_is_the_current_month() {
        let today = Date::constant(2026, 11, 24);
        for (text, period) in [
            ("", "2026-11"),
            ("month=&quarter=+&year=", "2026-11"),
            ("month=2026-02", "2026-02"),
            ("month=+2026-12+&year=", "2026-12"),
            ("month=2025-01&month=2026-01", "2026-01"),
            ("quarter=2026-Q4", "2026-Q4"),
            ("year=2026&other=1", "2026"),
        ] {
            let found = read(&Query::from_text(text), today).unwrap();
            assert_eq!(found.to_string(), period, "{text}");
        }
        for (text, expected) in [
            (
                "month=now",
                "month: The month field must be a month written YYYY-MM.",
            ),
            (
                "month=%00",
                "month: The month field must be a month written YYYY-MM.",
            ),
            (
                "quarter=2026-Q5",
                "quarter: The quarter field must be a quarter written YYYY-Q1 to YYYY-Q4.",
            ),
            (
                "year=26",
                "year: The year field must be a year written YYYY.",
            ),
            (
                "year=2026&quarter=2026-Q1",
                "year: The year field must not be sent together with quarter.",
            ),
            (
                "month=2026-01&year=2026",
                "year: The year field must not be sent together with month.",
            ),
        ] {
            let fault = read(&Query::from_text(text), today).unwrap_err();
            let found = format!("{}: {fault}", fault.path);
            assert_eq!(found, expected, "{text}");
        }
    }
}
