//! Reads the filters of the list of invoices for its page, and writes them as a query: amounts are read as people type
//! them, and faults name the labels of the fields.

use jiff::civil::Date;
use url::form_urlencoded::Serializer;

use crate::console::form_values::FormValues;
use crate::console::typed_amount;
use crate::domain::kernel::fault::Faults;
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::invoice_filters::{self, FILTER_NAMES, ListQuery};
use crate::http::forms::query::Query;

/// The filters that the page keeps folded, each as the type of its input, its name and its label.
pub(super) const FOLDED_FILTERS: [(&str, &str, &str); 7] = [
    ("date", "date_from", "Issued from"),
    ("date", "date_to", "Issued until"),
    ("date", "due_after", "Due after"),
    ("date", "due_before", "Due before"),
    ("text", "currency", "Currency"),
    ("text", "amount_min", "Amount from"),
    ("text", "amount_max", "Amount to"),
];
/// The labels of the other filters with a field.
const LABELS: [(&str, &str); 4] = [
    ("q", "Number, customer or IRN"),
    ("status", "Status"),
    ("payment_status", "Payment"),
    ("authority_status", "Authority"),
];

/// Reads the query of the list. `today` decides which invoices are overdue, and `catalog` which currencies there are.
pub(super) fn read_list_query(
    query: &Query,
    today: Date,
    catalog: &Catalog,
) -> Result<ListQuery, Faults> {
    let read = invoice_filters::read_with_amount_parser(query, today, catalog, typed_amount::parse);
    read.map_err(|faults| faults.map(|fault| fault.with_labels(filter_label)))
}

/// Returns the filters and the order as a query, without the page number and without the parameters in `without`.
pub(super) fn list_query(values: &FormValues, without: &[&str]) -> String {
    let mut pairs = Serializer::new(String::new());
    for name in FILTER_NAMES.into_iter().chain(["sort", "per_page"]) {
        if !values.text(name).is_empty() && !without.contains(&name) {
            pairs.append_pair(name, values.text(name));
        }
    }
    let pairs = pairs.finish();
    if pairs.is_empty() {
        pairs
    } else {
        format!("?{pairs}")
    }
}

fn filter_label(name: &str) -> Option<&'static str> {
    let folded = FOLDED_FILTERS
        .into_iter()
        .map(|(_, name, label)| (name, label));
    let mut labels = folded.chain(LABELS);
    let found = labels.find(|(known, _)| *known == name);
    found.map(|(_, label)| label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::money::Amount;
    use crate::http::forms::testing::catalog;

    const TODAY: Date = Date::constant(2026, 3, 1);

    #[test]
    fn an_amount_is_written_as_the_list_shows_it() {
        for (query, amount) in [
            ("amount_min=1,000", "1000"),
            ("amount_min=+1,234.50+", "1234.50"),
            ("amount_min=7", "7"),
        ] {
            let read = read_list_query(&Query::from_text(query), TODAY, &catalog()).unwrap();
            let expected = Amount::parse(amount).ok();
            assert_eq!(read.filters.amount_min, expected, "{query}");
        }
    }

    #[test]
    fn a_fault_names_the_label_of_its_field() {
        for (query, sentence) in [
            (
                "amount_min=1,5",
                "The Amount from field must be a number written like 1234.50, with commas between thousands only.",
            ),
            (
                "currency=ngn",
                "The Currency field must exist in currencies (did you mean NGN?).",
            ),
            ("amount_max=-1", "The Amount to field must be at least 0."),
            (
                "amount_min=2&amount_max=1.99",
                "The Amount to field must be at least 2.",
            ),
            (
                "date_from=soon",
                "The Issued from field must be a date written YYYY-MM-DD.",
            ),
            (
                "due_after=2026-02-02&due_before=2026-02-01",
                "The Due before field must not be before Due after.",
            ),
            ("sort=irn&cursor=", "The sort field must be one of"),
        ] {
            let faults = read_list_query(&Query::from_text(query), TODAY, &catalog()).unwrap_err();
            let summary = faults.summary();
            assert!(summary.starts_with(sentence), "{query}: {summary}");
        }
    }
}
