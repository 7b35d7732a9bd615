//! The query of List Invoices (spec.md; docs/contract.md, "Lists"). An invalid page number falls back to its default.
//! An invalid filter is a fault, since without it the list would show unwanted invoices.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use database::page::Page;
use jiff::civil::DateTime;
use jiff::{Timestamp, tz::TimeZone};
use url::form_urlencoded;

use crate::domain::kernel::codes::{Category, PaymentStatus, WorkflowStatus};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::ids::InvoiceId;
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::query::Query;
use crate::http::forms::text_checks::{self, parse_word};
use crate::store::invoices::list::{InvoiceFilter, ListCursor, PageStart};

const PER_PAGE_DEFAULT: u64 = 10;
/// The query parameters that the link to the next page repeats. Instead of `page` the link has a cursor.
const NEXT_PAGE_PARAMETERS: [&str; 10] = [
    "per_page",
    "batch_no",
    "status",
    "payment_status",
    "invoice_category",
    "date_from",
    "date_to",
    "customer_no",
    "q",
    "updated_since",
];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListQuery {
    pub(crate) page: Page,
    pub(crate) start: PageStart,
    pub(crate) filters: InvoiceFilter,
}

pub(crate) fn read(query: &Query) -> Result<ListQuery, Faults> {
    let mut faults = Faults::default();
    let mut filter = FilterReader {
        query,
        faults: &mut faults,
    };
    let filters = InvoiceFilter {
        batch_no: filter.text("batch_no"),
        status: filter.read("status", |text| {
            parse_word(text, WorkflowStatus::parse, WorkflowStatus::allowed)
        }),
        payment_status: filter.read("payment_status", |text| {
            parse_word(text, PaymentStatus::parse, PaymentStatus::allowed)
        }),
        category: filter.read("invoice_category", |text| {
            parse_word(text, Category::parse, Category::allowed)
        }),
        date_from: filter.read("date_from", text_checks::parse_date),
        date_to: filter.read("date_to", text_checks::parse_date),
        customer_no: filter.text("customer_no"),
        q: filter.read("q", short_text),
        updated_since: filter.read("updated_since", moment),
    };
    let cursor = filter.read("cursor", |text| {
        parse_cursor(text).ok_or_else(|| FieldRule::must_be("format", CURSOR_FORMAT))
    });
    if filters
        .date_from
        .zip(filters.date_to)
        .is_some_and(|(from, to)| to < from)
    {
        filter.fault("date_to", FieldRule::NotBefore("date_from"));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let page = query.page(PER_PAGE_DEFAULT);
    let offset = (page.number - 1).saturating_mul(page.per_page);
    Ok(ListQuery {
        page,
        start: cursor.map_or(PageStart::At(offset), PageStart::After),
        filters,
    })
}

/// Returns the path and query of the next page: the request's own filters, and the cursor of the next page.
pub(crate) fn next_page_path(query: &Query, cursor: &str) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    pairs.extend_pairs(
        query
            .pairs()
            .filter(|(name, _)| NEXT_PAGE_PARAMETERS.contains(name)),
    );
    pairs.append_pair("cursor", cursor);
    format!("/v1/tax-payers/invoices?{}", pairs.finish())
}

const CURSOR_FORMAT: &str = "a cursor as x-next-cursor gave it";

/// Encodes a position in the list as a cursor. Callers must not interpret a cursor.
pub(crate) fn encode_cursor(place: ListCursor) -> String {
    URL_SAFE_NO_PAD.encode(format!(
        "{}.{}",
        place.created_at.as_microsecond(),
        place.id
    ))
}

fn parse_cursor(cursor: &str) -> Option<ListCursor> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let (micros, id) = text.split_once('.')?;
    let created_at = Timestamp::from_microsecond(micros.parse().ok()?).ok()?;
    Some(ListCursor {
        created_at,
        id: InvoiceId(id.parse().ok()?),
    })
}

/// Reads parameters of the query and collects their faults. A blank parameter counts as absent.
struct FilterReader<'a> {
    query: &'a Query,
    faults: &'a mut Faults,
}

impl FilterReader<'_> {
    fn read<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, FieldRule>,
    ) -> Option<T> {
        match parse(&self.text(name)?) {
            Ok(value) => Some(value),
            Err(rule) => {
                self.fault(name, rule);
                None
            }
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        self.query.trimmed_text(name)
    }

    fn fault(&mut self, name: &str, rule: FieldRule) {
        self.faults.push(Fault::field(name, rule));
    }
}

fn short_text(text: &str) -> Result<String, FieldRule> {
    text_checks::check_chars(text, 0, TEXT_CHARS_MAX).map(|()| text.to_owned())
}

/// Parses an RFC 3339 time, a time as the Invoice object writes it (`2026-01-31 09:30:00`), or a day. A time without an
/// offset is UTC. A blank before an offset is read as `+`, because a query decodes an unescaped `+` as a blank.
fn moment(text: &str) -> Result<Timestamp, FieldRule> {
    let utc = |moment: DateTime| {
        moment
            .to_zoned(TimeZone::UTC)
            .map(|zoned| zoned.timestamp())
            .ok()
    };
    let found = text
        .parse()
        .ok()
        .or_else(|| {
            DateTime::strptime("%Y-%m-%d %H:%M:%S", text)
                .ok()
                .and_then(utc)
        })
        .or_else(|| text.replace(' ', "+").parse().ok())
        .or_else(|| {
            text_checks::parse_date(text)
                .ok()
                .and_then(|date| utc(date.into()))
        });
    found.ok_or_else(|| FieldRule::must_be("time", "a time such as 2026-01-31T09:30:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(text: &str) -> InvoiceFilter {
        read(&Query::from_text(text)).unwrap().filters
    }

    fn broken_rules(text: &str) -> Vec<String> {
        let faults = read(&Query::from_text(text)).unwrap_err();
        faults
            .iter()
            .map(|fault| format!("{}: {}", fault.path, fault.rule()))
            .collect()
    }

    #[test]
    fn without_filters_the_list_begins_at_the_newest() {
        let expected = ListQuery {
            page: Page {
                number: 1,
                per_page: 10,
            },
            start: PageStart::At(0),
            filters: InvoiceFilter::default(),
        };
        for text in [
            "",
            "status=&q=+&cursor=&date_from=&updated_since=&batch_no=",
            "colour=red",
        ] {
            assert_eq!(read(&Query::from_text(text)).unwrap(), expected, "{text}");
        }
        assert_eq!(
            read(&Query::from_text("page=3&per_page=20")).unwrap().start,
            PageStart::At(40)
        );
    }

    #[test]
    fn words_are_taken_in_any_case() {
        let found = filters("status=Approved&payment_status=paid&invoice_category=b2g");
        assert_eq!(found.status, Some(WorkflowStatus::Approved));
        assert_eq!(found.payment_status, Some(PaymentStatus::Paid));
        assert_eq!(found.category, Some(Category::B2G));
    }

    #[test]
    fn a_filter_that_makes_no_sense_is_refused() {
        for (text, rule) in [
            ("status=banana", "status: one_of"),
            ("status=%00", "status: one_of"),
            ("payment_status=CANCELLED", "payment_status: one_of"),
            ("invoice_category=Blank", "invoice_category: one_of"),
            ("date_from=banana", "date_from: date"),
            ("date_from=2026-02-30", "date_from: date"),
            ("date_to=20260201", "date_to: date"),
            ("date_to=01/02/2026", "date_to: date"),
            (
                "date_from=2026-02-02&date_to=2026-02-01",
                "date_to: after_or_equal",
            ),
            ("updated_since=yesterday", "updated_since: time"),
            ("updated_since=banana", "updated_since: time"),
            ("updated_since=1764000000", "updated_since: time"),
            ("updated_since=%00", "updated_since: time"),
            ("cursor=1", "cursor: format"),
            ("cursor=banana", "cursor: format"),
            ("cursor=%00", "cursor: format"),
            ("cursor=MS4x.", "cursor: format"),
            ("cursor=%FF%00", "cursor: format"),
            ("cursor=OTk5OTk5OTk5OTk5OTk5OTk5OTkuMQ", "cursor: format"),
        ] {
            assert_eq!(broken_rules(text), [rule], "{text}");
        }
        assert_eq!(broken_rules(&format!("q={}", "x".repeat(256))), ["q: max"]);
        assert_eq!(broken_rules("status=x&date_to=y&cursor=z").len(), 3);
    }

    #[test]
    fn a_moment_may_be_written_in_several_ways() {
        let expected: Timestamp = "2026-01-31T08:00:00Z".parse().unwrap();
        for text in [
            "2026-01-31T08:00:00Z",
            "2026-01-31T09:00:00%2B01:00",
            "2026-01-31T09:00:00+01:00",
            "2026-01-31%2008:00:00",
            "2026-01-31+08:00:00",
            "2026-01-31T08:00:00.000000Z",
        ] {
            assert_eq!(
                filters(&format!("updated_since={text}")).updated_since,
                Some(expected),
                "{text}"
            );
        }
        let day = filters("updated_since=2026-01-31").updated_since;
        assert_eq!(day, "2026-01-31T00:00:00Z".parse().ok());
    }

    #[test]
    fn a_cursor_is_read_back_and_goes_before_a_page() {
        let place = ListCursor {
            created_at: Timestamp::from_microsecond(1_767_225_600_000_001).unwrap(),
            id: InvoiceId(7),
        };
        let text = format!("cursor={}&page=9", encode_cursor(place));
        assert_eq!(
            read(&Query::from_text(&text)).unwrap().start,
            PageStart::After(place)
        );
    }

    #[test]
    fn what_follows_is_the_same_question_from_another_place() {
        let query = Query::from_text("q=a%26b%20c&page=2&status=draft&cursor=old&per_page=5&x=y");
        let address = next_page_path(&query, "new");
        assert_eq!(
            address,
            "/v1/tax-payers/invoices?q=a%26b+c&status=draft&per_page=5&cursor=new"
        );
    }
}
