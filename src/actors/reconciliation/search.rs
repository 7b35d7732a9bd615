//! Reads the authority's search for one taxpayer, from the newest line back to a day. The search has no reliable filter
//! by day, and a line may move to the next page while the pages are read. So lines are keyed by IRN, and the authority
//! is asked individually about an IRN that has no line.

use std::collections::{BTreeSet, HashMap};

use authority_client::{SearchPage, SearchQuery};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;
use serde_json::Value;

use crate::actors::reconciliation::reconciler::{Reconciler, ReconciliationError};
use crate::domain::party::Taxpayer;
use crate::domain::reconciliation::day::day_at;
use crate::domain::reconciliation::records::RemoteRecord;
use crate::domain::supplier_invoice::parse_foreign_irn;

/// The number of lines per page, which is the maximum that the authority allows.
const PAGE_LINES: u32 = 100;
/// The maximum number of pages read for one day.
const PAGES_MAX: u32 = 2_000;
/// A text from the authority is cut after this many characters.
const TEXT_CHARS_MAX: usize = 300;

/// The entries of the authority's search result.
#[derive(Debug, Default)]
pub(super) struct AuthorityListing {
    /// The entries by IRN key. `None` marks an incomplete entry: the authority is then asked about this IRN
    /// individually.
    pub(super) lines: HashMap<String, Option<RemoteRecord>>,
    /// The IRN keys of the invoices signed on the searched day.
    pub(super) signed_on_day: BTreeSet<String>,
    /// The texts of the invalid IRNs among the entries of the searched day.
    pub(super) unreadable: BTreeSet<String>,
}

/// The day to search for, and the authority's time zone.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchedDay {
    pub(super) day: Date,
    pub(super) zone: Offset,
}

impl Reconciler {
    /// Reads pages until all lines of a page are older than the day before `day`. The day before is read as well,
    /// because the time zone of the authority's dates is not certain.
    pub(super) async fn read_listing(
        &self,
        taxpayer: &Taxpayer,
        day: Date,
    ) -> Result<AuthorityListing, ReconciliationError> {
        let authority = self.authority.for_account(taxpayer.into());
        let mut listing = AuthorityListing::default();
        let searched = SearchedDay {
            day,
            zone: self.schedule.zone,
        };
        for page in 1..=PAGES_MAX {
            let query = SearchQuery {
                size: Some(PAGE_LINES),
                page: Some(page),
                ..SearchQuery::default()
            };
            let answer = authority
                .search_invoices(&taxpayer.business_id, &query)
                .await?;
            if listing.add_page(&answer, searched) {
                return Ok(listing);
            }
        }
        Err(ReconciliationError::TooFarBack(PAGES_MAX))
    }
}

impl AuthorityListing {
    /// Adds the lines of a page. Returns true if no later page can contain lines of the searched day.
    fn add_page(&mut self, page: &SearchPage, searched: SearchedDay) -> bool {
        let before = self.lines.len() + self.unreadable.len();
        let eve = searched.day.yesterday().unwrap_or(Date::MIN);
        let days: Vec<_> = page
            .items
            .iter()
            .map(|line| self.add_line(line, searched))
            .collect();
        let is_older = days.iter().all(|day| day.is_some_and(|day| day < eve));
        let has_new_lines = self.lines.len() + self.unreadable.len() > before;
        let has_next = page.page.get("has_next_page").and_then(Value::as_bool);
        page.items.is_empty() || is_older || !has_next.unwrap_or(has_new_lines)
    }

    /// Adds a line. Returns the line's day of signature, if it has one.
    fn add_line(&mut self, line: &Value, searched: SearchedDay) -> Option<Date> {
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        let day = text("sync_date")
            .or_else(|| text("issue_date"))
            .and_then(|text| parse_date(text, searched.zone));
        // A line without a date may belong to the searched day.
        let is_of_day = day.is_none_or(|day| day == searched.day);
        let irn_text = text("irn").unwrap_or_default();
        match parse_foreign_irn(irn_text) {
            Some(irn) => {
                let key = irn.key();
                let flag = |name: &str| line.get(name).and_then(Value::as_bool);
                let status = (
                    text("payment_status"),
                    flag("transmitted"),
                    flag("delivered"),
                );
                let record = match status {
                    (Some(payment), Some(is_transmitted), Some(is_delivered)) => {
                        Some(RemoteRecord {
                            irn,
                            payment_status: to_printable(payment),
                            is_transmitted,
                            is_delivered,
                        })
                    }
                    _ => None,
                };
                if is_of_day {
                    self.signed_on_day.insert(key.clone());
                }
                self.lines.insert(key, record);
            }
            None if is_of_day => drop(self.unreadable.insert(to_printable(irn_text))),
            None => {}
        }
        day
    }
}

/// Parses a date. For a timestamp, returns its day in `zone`.
fn parse_date(text: &str, zone: Offset) -> Option<Date> {
    if text.len() == 10 {
        return text.parse().ok();
    }
    let moment: Option<Timestamp> = text.parse().ok();
    moment
        .map(|at| day_at(at, zone))
        .or_else(|| text.get(..10)?.parse().ok())
}

/// Removes control characters from a text of the authority, so that the database accepts the text, and cuts it to
/// `TEXT_CHARS_MAX` characters.
pub(super) fn to_printable(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_control())
        .take(TEXT_CHARS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use jiff::tz::offset;
    use serde_json::json;

    use super::*;

    fn searched_day() -> SearchedDay {
        SearchedDay {
            day: "2026-01-15".parse().unwrap(),
            zone: offset(1),
        }
    }

    fn line(no: u32, day: &str) -> Value {
        json!({
            "irn": format!("INV{no}-94ad90fb-20260115"), "sync_date": day, "payment_status": "PENDING",
            "transmitted": true, "delivered": false,
        })
    }

    fn page(items: &[Value], has_next: Option<bool>) -> SearchPage {
        let page = has_next.map_or(Value::Null, |has_next| json!({ "has_next_page": has_next }));
        SearchPage {
            items: items.to_vec(),
            page,
        }
    }

    #[test]
    fn a_page_is_the_last_one_if_no_later_page_matters() {
        let days = |days: &[&str]| {
            days.iter()
                .zip(1..)
                .map(|(day, no)| line(no, day))
                .collect::<Vec<_>>()
        };
        for (items, has_next, is_last) in [
            (days(&["2026-01-17", "2026-01-15"]), Some(true), false),
            (days(&["2026-01-17", "2026-01-15"]), Some(false), true),
            (days(&["2026-01-14"]), Some(true), false),
            (days(&["2026-01-14", "2026-01-13"]), Some(true), false),
            (days(&["2026-01-13", "2026-01-13"]), Some(true), true),
            (days(&["2026-01-15"]), None, false),
            (days(&[]), Some(true), true),
            (
                vec![json!({ "irn": "INV9-94AD90FB-20260115" })],
                Some(true),
                false,
            ),
        ] {
            let found =
                AuthorityListing::default().add_page(&page(&items, has_next), searched_day());
            assert_eq!(found, is_last, "{items:?} {has_next:?}");
        }
        let mut listing = AuthorityListing::default();
        let same = page(&[line(1, "2026-01-15")], None);
        assert!(
            !listing.add_page(&same, searched_day()) && listing.add_page(&same, searched_day()),
            "a page that repeats is the last one"
        );
    }

    #[test]
    fn lines_of_the_day_are_separated_from_the_others() {
        let mut listing = AuthorityListing::default();
        let mut half = line(3, "2026-01-15");
        half["transmitted"] = json!("yes");
        let items = [
            line(1, "2026-01-16"),
            line(2, "2026-01-15"),
            half,
            line(4, "2026-01-14T23:00:00Z"),
            line(5, "2026-01-14T22:59:59Z"),
            json!({ "irn": "odd\u{0}", "sync_date": "2026-01-15" }),
            json!({ "sync_date": "2026-01-14" }),
            json!(7),
        ];
        listing.add_page(&page(&items, Some(true)), searched_day());
        let keys: Vec<_> = listing.signed_on_day.iter().map(|key| &key[..4]).collect();
        assert_eq!(keys, ["INV2", "INV3", "INV4"]);
        assert_eq!(
            listing
                .unreadable
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
            ["", "odd"]
        );
        assert_eq!(
            listing.lines["INV3-94AD90FB-20260115"], None,
            "it is confirmed individually"
        );
        let second = listing.lines["INV2-94AD90FB-20260115"].as_ref().unwrap();
        assert!(second.is_transmitted && second.irn.as_str() == "INV2-94ad90fb-20260115");
        assert_eq!(listing.lines.len(), 5);
    }
}
