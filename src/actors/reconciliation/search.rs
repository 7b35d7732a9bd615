//! The authority's search of one taxpayer, read from the newest line back to a day. It has no certain filter by
//! day, and a line may have moved to the next page meanwhile: lines are known by their IRN, and one that is not
//! found is asked for by itself.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;
use serde_json::Value;

use crate::actors::reconciliation::desk::{BrokenOff, Reconciler};
use crate::authority::{CallerAccount, SearchPage, SearchQuery};
use crate::domain::party::Taxpayer;
use crate::domain::reconciliation::RemoteRecord;
use crate::domain::reconciliation::day::day_of;
use crate::domain::supplier_invoice::readable_irn;

/// Lines of a page; the authority gives no more.
const PAGE_LINES: u32 = 100;
/// Pages read for one day at most.
const PAGES_MAX: u32 = 2_000;
/// Characters kept of a text that should have been an IRN.
const ODD_CHARS_MAX: usize = 300;

/// What the search told.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// By the key of their IRN; none where a line does not say all and is to be asked about.
    pub(super) lines: HashMap<String, Option<RemoteRecord>>,
    /// The keys of those that were signed on the day.
    pub(super) of_day: BTreeSet<String>,
    /// Lines of the day that name no invoice, as they name it.
    pub(super) unreadable: BTreeSet<String>,
}

/// The day that is looked for, in the authority's zone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) day: Date,
    pub(super) zone: Offset,
}

impl Reconciler {
    /// Reads one page after the other, until they are older than the day before: whose midnight the authority's days
    /// begin at is not certain.
    pub(super) async fn listed(&self, taxpayer: &Taxpayer, day: Date) -> Result<Listed, BrokenOff> {
        let authority = self.authority.on_behalf_of(CallerAccount::Taxpayer(taxpayer.id));
        let (mut listed, wanted) = (Listed::default(), Wanted { day, zone: self.schedule.zone });
        for page in 1..=PAGES_MAX {
            let query = SearchQuery { size: Some(PAGE_LINES), page: Some(page), ..SearchQuery::default() };
            let answer = authority.search(&taxpayer.business_id, &query).await?;
            if listed.take(&answer, wanted) {
                return Ok(listed);
            }
        }
        Err(BrokenOff::TooFarBack(PAGES_MAX))
    }
}

impl Listed {
    /// Takes a page in; whether it was the last that matters.
    fn take(&mut self, page: &SearchPage, wanted: Wanted) -> bool {
        let before = self.lines.len() + self.unreadable.len();
        let eve = wanted.day.yesterday().unwrap_or(Date::MIN);
        let days: Vec<_> = page.items.iter().map(|line| self.take_line(line, wanted)).collect();
        let is_older = days.iter().all(|day| day.is_some_and(|day| day < eve));
        let is_news = self.lines.len() + self.unreadable.len() > before;
        let goes_on = page.page.get("has_next_page").and_then(Value::as_bool);
        page.items.is_empty() || is_older || !goes_on.unwrap_or(is_news)
    }

    /// Takes a line in; the day it was signed on, as far as it says so.
    fn take_line(&mut self, line: &Value, wanted: Wanted) -> Option<Date> {
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        let day = text("sync_date").or_else(|| text("issue_date")).and_then(|text| date(text, wanted.zone));
        // What does not say when it was signed may have been today.
        let is_of_day = day.is_none_or(|day| day == wanted.day);
        let named = text("irn").unwrap_or_default();
        match readable_irn(named) {
            Some(irn) => {
                let key = irn.key();
                let flag = |name: &str| line.get(name).and_then(Value::as_bool);
                let told = (text("payment_status"), flag("transmitted"), flag("delivered"));
                let theirs = match told {
                    (Some(payment), Some(is_transmitted), Some(is_delivered)) => Some(RemoteRecord {
                        irn,
                        payment_status: shown(payment),
                        is_transmitted,
                        is_delivered,
                    }),
                    _ => None,
                };
                if is_of_day {
                    self.of_day.insert(key.clone());
                }
                self.lines.insert(key, theirs);
            }
            None if is_of_day => drop(self.unreadable.insert(shown(named))),
            None => {}
        }
        day
    }
}

/// A date, or the day of a moment.
fn date(text: &str, zone: Offset) -> Option<Date> {
    let moment = || text.parse::<Timestamp>().ok().map(|at| day_of(at, zone));
    let leading = || text.get(..10)?.parse().ok();
    if text.len() == 10 { text.parse().ok() } else { moment().or_else(leading) }
}

/// A text of the authority's, as a database can keep it.
fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(ODD_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use jiff::tz::offset;
    use serde_json::json;

    use super::*;

    fn wanted() -> Wanted {
        Wanted { day: "2026-01-15".parse().unwrap(), zone: offset(1) }
    }

    fn line(no: u32, day: &str) -> Value {
        json!({
            "irn": format!("INV{no}-94ad90fb-20260115"), "sync_date": day, "payment_status": "PENDING",
            "transmitted": true, "delivered": false,
        })
    }

    fn page(items: &[Value], has_next: Option<bool>) -> SearchPage {
        let page = has_next.map_or(Value::Null, |has_next| json!({ "has_next_page": has_next }));
        SearchPage { items: items.to_vec(), page }
    }

    #[test]
    fn a_page_is_the_last_when_nothing_after_it_matters() {
        let days = |days: &[&str]| days.iter().zip(1..).map(|(day, no)| line(no, day)).collect::<Vec<_>>();
        for (items, has_next, is_last) in [
            (days(&["2026-01-17", "2026-01-15"]), Some(true), false),
            (days(&["2026-01-17", "2026-01-15"]), Some(false), true),
            (days(&["2026-01-14"]), Some(true), false),
            (days(&["2026-01-14", "2026-01-13"]), Some(true), false),
            (days(&["2026-01-13", "2026-01-13"]), Some(true), true),
            (days(&["2026-01-15"]), None, false),
            (days(&[]), Some(true), true),
            (vec![json!({ "irn": "INV9-94AD90FB-20260115" })], Some(true), false),
        ] {
            let is_last_of = Listed::default().take(&page(&items, has_next), wanted());
            assert_eq!(is_last_of, is_last, "{items:?} {has_next:?}");
        }
        let (mut listed, same) = (Listed::default(), page(&[line(1, "2026-01-15")], None));
        assert!(!listed.take(&same, wanted()) && listed.take(&same, wanted()), "the same page for ever");
    }

    #[test]
    fn lines_of_the_day_are_told_from_the_others() {
        let mut listed = Listed::default();
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
        listed.take(&page(&items, Some(true)), wanted());
        let of_day: Vec<_> = listed.of_day.iter().map(|key| &key[..4]).collect();
        assert_eq!(of_day, ["INV2", "INV3", "INV4"]);
        assert_eq!(listed.unreadable.iter().map(String::as_str).collect::<Vec<_>>(), ["", "odd"]);
        assert_eq!(listed.lines["INV3-94AD90FB-20260115"], None, "it is asked about");
        let second = listed.lines["INV2-94AD90FB-20260115"].as_ref().unwrap();
        assert!(second.is_transmitted && second.irn.as_str() == "INV2-94ad90fb-20260115");
        assert_eq!(listed.lines.len(), 5);
    }
}
