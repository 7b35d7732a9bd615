//! The query of List Invoices (spec.md; docs/contract.md, "Lists"). An invalid page number falls back to its default.
//! An invalid filter is a fault, since without it the list would show unwanted invoices.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use database::page::Page;
use jiff::civil::{Date, DateTime};
use jiff::{Timestamp, tz::TimeZone};
use url::form_urlencoded;

use crate::domain::kernel::codes::{AuthorityStatus, Category, PaymentStatus, WorkflowStatus};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::code_field::parse_currency;
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::query::Query;
use crate::http::forms::text_checks::{self, parse_word};
use crate::store::invoices::list::{
    InvoiceFilter, InvoiceList, InvoiceSort, PageBounds, PageStart, SortPlace,
};

const PER_PAGE_DEFAULT: u64 = 10;
/// The filters, under the names that the query gives them.
pub(crate) const FILTER_NAMES: [&str; 18] = [
    "batch_no",
    "status",
    "payment_status",
    "authority_status",
    "invoice_category",
    "date_from",
    "date_to",
    "due_before",
    "due_after",
    "overdue",
    "refund_due",
    "without_cancelled",
    "currency",
    "amount_min",
    "amount_max",
    "customer_no",
    "q",
    "updated_since",
];
/// The query parameters, in addition to the filters, that the link to the next page repeats. Instead of `page` the link
/// has a cursor.
const NEXT_PAGE_PARAMETERS: [&str; 2] = ["per_page", "sort"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListQuery {
    pub(crate) page: Page,
    pub(crate) start: PageStart,
    pub(crate) filters: InvoiceFilter,
    pub(crate) sort: InvoiceSort,
}

impl ListQuery {
    pub(crate) fn page_bounds(&self) -> PageBounds {
        PageBounds {
            start: self.start,
            limit: self.page.per_page,
        }
    }

    /// Returns the list that a taxpayer asks for with this query.
    pub(crate) fn into_list(self, taxpayer: TaxpayerId) -> InvoiceList {
        InvoiceList {
            taxpayer,
            filters: self.filters,
            sort: self.sort,
        }
    }
}

/// Reads the query. `today` decides which invoices are overdue, and `catalog` which currencies there are.
pub(crate) fn read(query: &Query, today: Date, catalog: &Catalog) -> Result<ListQuery, Faults> {
    read_with_amount_parser(query, today, catalog, parse_query_amount)
}

/// Reads the query like `read`, except that `parse_amount` parses the amounts, because people may write amounts in
/// other ways than programs.
pub(crate) fn read_with_amount_parser(
    query: &Query,
    today: Date,
    catalog: &Catalog,
    parse_amount: ParseAmount,
) -> Result<ListQuery, Faults> {
    let mut faults = Faults::default();
    let mut filter_reader = FilterReader {
        query,
        catalog,
        parse_amount,
        faults: &mut faults,
    };
    let filters = filter_reader.read_filters(today);
    filter_reader.check_ranges(&filters);
    let sort = filter_reader.read("sort", |text| {
        parse_word(text, InvoiceSort::parse, InvoiceSort::allowed_words)
    });
    let sort = sort.unwrap_or_default();
    let cursor = filter_reader.read("cursor", |text| {
        parse_cursor(text, sort).ok_or_else(|| FieldRule::must_be("format", CURSOR_FORMAT))
    });
    if !faults.is_empty() {
        return Err(faults);
    }
    let page = query.page(PER_PAGE_DEFAULT);
    let offset = page.offset();
    Ok(ListQuery {
        page,
        start: cursor.map_or(PageStart::At(offset), PageStart::After),
        filters,
        sort,
    })
}

/// Returns the path and query of the next page: the filters of the request, and the cursor of the next page.
pub(crate) fn next_page_path(query: &Query, cursor: &str) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    pairs.extend_pairs(
        query
            .pairs()
            .filter(|(name, _)| FILTER_NAMES.contains(name) || NEXT_PAGE_PARAMETERS.contains(name)),
    );
    pairs.append_pair("cursor", cursor);
    format!("/v1/tax-payers/invoices?{}", pairs.finish())
}

const CURSOR_FORMAT: &str = "a cursor as x-next-cursor gave it, with the same sort";

/// Encodes a position in the list as a cursor, with the order of the list. Callers must not interpret a cursor.
pub(crate) fn encode_cursor(sort: InvoiceSort, position: SortPlace) -> String {
    let micros = position.created_at.as_microsecond();
    URL_SAFE_NO_PAD.encode(format!("{sort} {} {micros} {}", position.key, position.id))
}

/// Returns the position that a cursor marks; `None` if the cursor is malformed or belongs to another order.
fn parse_cursor(cursor: &str, sort: InvoiceSort) -> Option<SortPlace> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let parts: Vec<_> = text.split(' ').collect();
    let [order, key, micros, id] = parts.as_slice() else {
        return None;
    };
    if *order != sort.to_string() {
        return None;
    }
    Some(SortPlace {
        key: sort.parse_key(key)?,
        created_at: Timestamp::from_microsecond(micros.parse().ok()?).ok()?,
        id: InvoiceId(id.parse().ok()?),
    })
}

/// A function that parses the text of an amount.
type ParseAmount = fn(&str) -> Result<Amount, FieldRule>;

/// Reads parameters of the query and collects their faults. A blank parameter counts as absent.
struct FilterReader<'a> {
    query: &'a Query,
    catalog: &'a Catalog,
    parse_amount: ParseAmount,
    faults: &'a mut Faults,
}

impl FilterReader<'_> {
    fn read_filters(&mut self, today: Date) -> InvoiceFilter {
        let catalog = self.catalog;
        InvoiceFilter {
            batch_no: self.text("batch_no"),
            statuses: self
                .read("status", |text| {
                    parse_words(text, WorkflowStatus::parse, WorkflowStatus::allowed_words)
                })
                .unwrap_or_default(),
            payment_status: self.read("payment_status", |text| {
                parse_word(text, PaymentStatus::parse, PaymentStatus::allowed_words)
            }),
            authority_statuses: self
                .read("authority_status", |text| {
                    parse_words(text, AuthorityStatus::parse, AuthorityStatus::allowed_words)
                })
                .unwrap_or_default(),
            category: self.read("invoice_category", |text| {
                parse_word(text, Category::parse, Category::allowed_words)
            }),
            date_from: self.read("date_from", text_checks::parse_date),
            date_to: self.read("date_to", text_checks::parse_date),
            due_before: self.read("due_before", text_checks::parse_date),
            due_after: self.read("due_after", text_checks::parse_date),
            overdue_on: self.flag("overdue").then_some(today),
            refund_due: self.flag("refund_due"),
            without_cancelled: self.flag("without_cancelled"),
            currency: self.read("currency", |text| parse_currency(text, catalog)),
            amount_min: self.amount("amount_min"),
            amount_max: self.amount("amount_max"),
            customer_no: self.text("customer_no"),
            q: self.read("q", check_text_length),
            updated_since: self.read("updated_since", parse_moment),
            ids: None,
        }
    }

    /// Refuses ranges whose end is before their start.
    fn check_ranges(&mut self, filters: &InvoiceFilter) {
        if let (Some(from), Some(to)) = (filters.date_from, filters.date_to)
            && to < from
        {
            self.report_fault("date_to", FieldRule::NotBefore("date_from"));
        }
        if let (Some(after), Some(before)) = (filters.due_after, filters.due_before)
            && before < after
        {
            self.report_fault("due_before", FieldRule::NotBefore("due_after"));
        }
        if let (Some(min), Some(max)) = (filters.amount_min, filters.amount_max)
            && max < min
        {
            self.report_fault("amount_max", FieldRule::AtLeast(min));
        }
    }

    fn flag(&mut self, name: &str) -> bool {
        let flag = self.query.flag(name).map(Some);
        self.faults.keep(flag).unwrap_or_default()
    }

    /// Reads an amount of at least 0, because no invoice has a negative amount.
    fn amount(&mut self, name: &'static str) -> Option<Amount> {
        let parse = self.parse_amount;
        self.read(name, |text| match parse(text)? {
            amount if amount.is_negative() => Err(FieldRule::AtLeast(Amount::ZERO)),
            amount => Ok(amount),
        })
    }

    fn read<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, FieldRule>,
    ) -> Option<T> {
        match parse(&self.text(name)?) {
            Ok(value) => Some(value),
            Err(rule) => {
                self.report_fault(name, rule);
                None
            }
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        self.query.trimmed_text(name)
    }

    fn report_fault(&mut self, name: &str, rule: FieldRule) {
        self.faults.push(Fault::field(name, rule));
    }
}

fn check_text_length(text: &str) -> Result<String, FieldRule> {
    text_checks::check_char_count(text, 0, TEXT_CHARS_MAX).map(|()| text.to_owned())
}

/// Parses one word, or several words with commas between them.
fn parse_words<T>(
    text: &str,
    parse: fn(&str) -> Option<T>,
    allowed_words: fn() -> String,
) -> Result<Vec<T>, FieldRule> {
    let words = text.split(',').map(str::trim);
    words
        .map(|word| parse_word(word, parse, allowed_words))
        .collect()
}

fn parse_query_amount(text: &str) -> Result<Amount, FieldRule> {
    Amount::parse(text).map_err(|fault| FieldRule::other("digits", fault.to_string()))
}

/// Parses an RFC 3339 time, a time as the Invoice object writes it (`2026-01-31 09:30:00`), or a day, which means its
/// first moment. A time without an offset and a day are UTC. A blank before an offset is read as `+`, because a query
/// decodes an unescaped `+` as a blank.
fn parse_moment(text: &str) -> Result<Timestamp, FieldRule> {
    let to_utc = |moment: DateTime| {
        moment
            .to_zoned(TimeZone::UTC)
            .map(|zoned| zoned.timestamp())
            .ok()
    };
    let timestamp = text
        .parse()
        .ok()
        .or_else(|| {
            DateTime::strptime("%Y-%m-%d %H:%M:%S", text)
                .ok()
                .and_then(to_utc)
        })
        .or_else(|| text.replace(' ', "+").parse().ok())
        .or_else(|| {
            text_checks::parse_date(text)
                .ok()
                .and_then(|date| to_utc(date.into()))
        });
    timestamp.ok_or_else(|| FieldRule::must_be("time", "a time such as 2026-01-31T09:30:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::forms::testing::catalog;
    use crate::store::invoices::list_sort::SortKey;

    const TODAY: Date = Date::constant(2026, 3, 1);

    fn filters(text: &str) -> InvoiceFilter {
        let query = Query::from_text(text);
        read(&query, TODAY, &catalog()).unwrap().filters
    }

    fn broken_rules(text: &str) -> Vec<String> {
        let query = Query::from_text(text);
        let faults = read(&query, TODAY, &catalog()).unwrap_err();
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
            sort: InvoiceSort::NEWEST_FIRST,
        };
        for text in [
            "",
            "status=&q=+&cursor=&date_from=&updated_since=&batch_no=&overdue=&refund_due=&without_cancelled=&sort=&currency=&amount_min=",
            "overdue=false&sort=-created_at",
            "colour=red",
        ] {
            assert_eq!(
                read(&Query::from_text(text), TODAY, &catalog()).unwrap(),
                expected,
                "{text}"
            );
        }
        assert_eq!(
            read(&Query::from_text("page=3&per_page=20"), TODAY, &catalog())
                .unwrap()
                .start,
            PageStart::At(40)
        );
    }

    #[test]
    fn words_are_taken_in_any_case() {
        let found = filters("status=Approved&payment_status=paid&invoice_category=b2g");
        assert_eq!(found.statuses, [WorkflowStatus::Approved]);
        assert_eq!(found.payment_status, Some(PaymentStatus::Paid));
        assert_eq!(found.category, Some(Category::B2G));
    }

    #[test]
    fn a_filter_that_makes_no_sense_is_refused() {
        for (text, rule) in [
            ("status=banana", "status: one_of"),
            ("status=%00", "status: one_of"),
            ("status=approved,banana", "status: one_of"),
            ("status=approved,", "status: one_of"),
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
            ("authority_status=banana", "authority_status: one_of"),
            ("overdue=perhaps", "overdue: boolean"),
            ("refund_due=perhaps", "refund_due: boolean"),
            ("without_cancelled=2", "without_cancelled: boolean"),
            ("due_before=2026-13-01", "due_before: date"),
            ("due_after=soon", "due_after: date"),
            (
                "due_after=2026-02-02&due_before=2026-02-01",
                "due_before: after_or_equal",
            ),
            ("currency=ngn", "currency: exists"),
            ("currency=QQQ", "currency: exists"),
            ("currency=NAIRA", "currency: currency"),
            ("currency=%00GN", "currency: currency"),
            ("amount_min=-1", "amount_min: min"),
            ("amount_min=1,000", "amount_min: digits"),
            ("amount_max=NaN", "amount_max: digits"),
            ("amount_max=0.0000001", "amount_max: digits"),
            ("amount_min=2&amount_max=1.99", "amount_max: min"),
            ("sort=irn", "sort: one_of"),
            ("sort=payable;", "sort: one_of"),
            ("sort=--payable", "sort: one_of"),
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
    fn a_currency_in_another_spelling_is_refused_with_the_code_that_is_meant() {
        for (text, sentence) in [
            ("ngn", "must exist in currencies (did you mean NGN?)."),
            ("QQQ", "must exist in currencies."),
        ] {
            let query = Query::from_text(&format!("currency={text}"));
            let summary = read(&query, TODAY, &catalog()).unwrap_err().summary();
            assert!(summary.ends_with(sentence), "{text}: {summary}");
        }
        let query = Query::from_text("currency=QQQ");
        let found = read(&query, TODAY, &Catalog::default()).unwrap().filters;
        assert_eq!(
            found.currency.as_deref(),
            Some("QQQ"),
            "no list was fetched"
        );
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
    fn each_filter_is_read() {
        let found = filters(
            "status=approved,%20Paid&authority_status=rejected&overdue=true&refund_due=true&without_cancelled=true&due_before=2026-02-02&due_after=2026-02-01&currency=NGN&amount_min=1.50&amount_max=1e3",
        );
        let statuses = [WorkflowStatus::Approved, WorkflowStatus::Paid];
        assert_eq!(found.statuses, statuses);
        assert_eq!(found.authority_statuses, [AuthorityStatus::Rejected]);
        assert_eq!(found.overdue_on, Some(TODAY));
        assert!(found.refund_due);
        assert!(found.without_cancelled);
        assert_eq!(found.due_before, Some(Date::constant(2026, 2, 2)));
        assert_eq!(found.due_after, Some(Date::constant(2026, 2, 1)));
        assert_eq!(found.currency.as_deref(), Some("NGN"));
        assert_eq!(found.amount_min, Amount::parse("1.50").ok());
        assert_eq!(found.amount_max, Some(Amount::from(1_000)));
    }

    #[test]
    fn a_cursor_is_read_back_in_its_own_order_only_and_goes_before_a_page() {
        let date = SortKey::Date(Date::constant(2026, 1, 15));
        let amount = SortKey::Amount(Amount::parse("10.50").unwrap());
        let cases = [
            ("-created_at", SortKey::CreatedAt),
            ("invoice_date", date),
            ("-due_date", date),
            ("payable", amount),
        ];
        for (word, key) in cases {
            let position = SortPlace {
                key,
                created_at: Timestamp::from_microsecond(1_767_225_600_000_001).unwrap(),
                id: InvoiceId(7),
            };
            let cursor = encode_cursor(InvoiceSort::parse(word).unwrap(), position);
            for (other, _) in cases {
                let text = format!("sort={other}&cursor={cursor}&page=9");
                if other == word {
                    let list_query = read(&Query::from_text(&text), TODAY, &catalog()).unwrap();
                    assert_eq!(list_query.start, PageStart::After(position), "{word}");
                } else {
                    assert_eq!(broken_rules(&text), ["cursor: format"], "{word}, {other}");
                }
            }
        }
    }

    #[test]
    fn the_next_page_has_the_same_filters_and_the_new_cursor() {
        let query = Query::from_text(
            "q=a%26b%20c&page=2&status=draft&cursor=old&per_page=5&x=y&sort=-payable",
        );
        let address = next_page_path(&query, "new");
        assert_eq!(
            address,
            "/v1/tax-payers/invoices?q=a%26b+c&status=draft&per_page=5&sort=-payable&cursor=new"
        );
    }
}
