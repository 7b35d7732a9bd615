//! The legal deadline for an invoice to reach the authority: the time of issue plus a duration of the invoice's
//! category (`deadlines.*`). The runs of a taxpayer are processed in the order of their deadlines. An invoice that has
//! missed its deadline is still sent.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::{Offset, TimeZone};

use crate::domain::kernel::codes::Category;
use crate::domain::pipeline::authority_document::AuthorityDocument;

/// The time from issue to deadline for each category of invoice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadlinePolicy {
    pub b2b: Duration,
    pub b2c: Duration,
    pub b2g: Duration,
    /// The time zone in which documents give their date and time of issue.
    pub offset: Offset,
}

impl DeadlinePolicy {
    /// Returns the deadline of a document that is submitted at `now`. The category in the document wins over
    /// `category`. If both are missing, the shortest duration applies. If the time of issue is missing, malformed or in
    /// the future, it counts as `now`.
    pub fn deadline(
        &self,
        document: Option<&AuthorityDocument>,
        category: Option<Category>,
        now: Timestamp,
    ) -> Timestamp {
        let stated = document.and_then(|document| document.category);
        let issued = document
            .and_then(|document| self.issue_moment(document.issue_date?, document.issue_time));
        self.deadline_after(
            stated.or(category),
            issued.map_or(now, |issued| issued.min(now)),
        )
    }

    fn deadline_after(&self, category: Option<Category>, issued: Timestamp) -> Timestamp {
        let given = self.allowed_time(category);
        issued.saturating_add(given).unwrap_or(Timestamp::MAX)
    }

    /// Returns the time from issue to deadline.
    fn allowed_time(&self, category: Option<Category>) -> Duration {
        match category {
            Some(Category::B2B) => self.b2b,
            Some(Category::B2C) => self.b2c,
            Some(Category::B2G) => self.b2g,
            None => self.b2b.min(self.b2c).min(self.b2g),
        }
    }

    /// Returns the first day of issue whose documents are not late at `now`: those of this category that were issued
    /// before it, and do not give their time of issue, have missed their deadline.
    pub fn first_day_in_time(&self, category: Category, now: Timestamp) -> Date {
        let given = self.allowed_time(Some(category));
        let issued = now.saturating_sub(given).unwrap_or(Timestamp::MIN);
        self.offset.to_datetime(issued).date()
    }

    /// Returns the time of issue; without `time`, the end of the day.
    fn issue_moment(&self, date: Date, time: Option<Time>) -> Option<Timestamp> {
        let at = date
            .to_datetime(time.unwrap_or(Time::MAX))
            .to_zoned(TimeZone::fixed(self.offset))
            .ok()?;
        Some(at.timestamp())
    }
}

impl Default for DeadlinePolicy {
    fn default() -> Self {
        let day = Duration::from_hours(24);
        let three_days = Duration::from_hours(72);
        Self {
            b2b: three_days,
            b2c: day,
            b2g: three_days,
            offset: Offset::UTC,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_time_runs_from_the_issue_in_the_time_zone_of_the_authority_and_depends_on_the_category()
    {
        let policy = DeadlinePolicy {
            offset: Offset::constant(1),
            ..DeadlinePolicy::default()
        };
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let of = |kind: &str, date: &str, time: Option<&str>| {
            let document = json!({ "invoice_kind": kind, "issue_date": date, "issue_time": time });
            policy
                .deadline(Some(&AuthorityDocument::from_json(document)), None, now)
                .to_string()
        };
        assert_eq!(
            of("B2C", "2026-11-21", Some("09:30:00")),
            "2026-11-22T08:30:00Z"
        );
        assert_eq!(
            of("B2B", "2026-11-21", Some("09:30:00")),
            "2026-11-24T08:30:00Z"
        );
        assert_eq!(
            of("B2G", "2026-11-19", Some("09:30:00")),
            "2026-11-22T08:30:00Z"
        );
        assert_eq!(
            of("B2C", "2026-11-20", None),
            "2026-11-21T22:59:59.999999999Z",
            "the end of its day"
        );
        assert_eq!(
            of("B2C", "2026-11-21", None),
            "2026-11-22T12:00:00Z",
            "no later than it was handed in"
        );
        assert_eq!(
            of("odd", "2026-11-21", Some("09:30:00")),
            "2026-11-22T08:30:00Z",
            "the shortest"
        );
        assert_eq!(of("B2B", "odd", None), "2026-11-24T12:00:00Z");
    }

    #[test]
    fn what_was_issued_before_the_first_day_in_time_is_late() {
        let policy = DeadlinePolicy {
            offset: Offset::constant(1),
            ..DeadlinePolicy::default()
        };
        for (category, now, day) in [
            // In the time zone of the authority it is the next day already.
            (Category::B2C, "2026-11-21T23:30:00Z", "2026-11-21"),
            (Category::B2C, "2026-11-21T22:30:00Z", "2026-11-20"),
            (Category::B2B, "2026-11-21T12:00:00Z", "2026-11-18"),
            (Category::B2G, "2026-11-21T12:00:00Z", "2026-11-18"),
        ] {
            let now: Timestamp = now.parse().unwrap();
            let first = policy.first_day_in_time(category, now);
            assert_eq!(first.to_string(), day, "{category} {now}");
            for (issued, is_late) in [(first, false), (first.yesterday().unwrap(), true)] {
                let issued = policy.issue_moment(issued, None).unwrap();
                let deadline = policy.deadline_after(Some(category), issued);
                assert_eq!(deadline < now, is_late, "{category} {now} {issued}");
            }
        }
    }

    #[test]
    fn a_document_without_a_category_has_that_of_its_invoice() {
        let policy = DeadlinePolicy::default();
        let of = |category| policy.deadline(None, category, Timestamp::UNIX_EPOCH);
        assert_eq!(of(Some(Category::B2B)).as_second(), 72 * 3_600);
        assert_eq!(of(None).as_second(), 24 * 3_600);
    }
}
