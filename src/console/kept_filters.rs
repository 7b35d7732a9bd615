//! The parameters of a list's address for which the form above the list has no field. The form sends them as hidden
//! fields. Those that are filters are shown as chips with a button that removes them.

use crate::console::list_pages::{filled_pairs, list_address};
use crate::http::forms::query::Query;

/// The names of the fields of a list's form, and the filters without a field, each with its label.
pub(crate) struct ListFormFields {
    pub(crate) fields: &'static [&'static str],
    pub(crate) chips: &'static [(&'static str, &'static str)],
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeptFilters {
    /// Names and values for the hidden fields of the form.
    pub(crate) hidden: Vec<(String, String)>,
    pub(crate) chips: Vec<FilterChip>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FilterChip {
    pub(crate) text: String,
    /// The address of the list without this filter.
    pub(crate) address: String,
}

impl KeptFilters {
    /// `path` is the path of the list.
    pub(crate) fn new(path: &str, query: &Query, form: &ListFormFields) -> Self {
        let kept = filled_pairs(query).filter(|(name, _)| !form.fields.contains(name));
        let chips = form.chips.iter().filter_map(|(name, label)| {
            let value = query.trimmed_text(name)?;
            let others = query.pairs().filter(|(other, _)| other != name);
            Some(FilterChip {
                text: chip_text(label, &value),
                address: list_address(path, &others.collect()),
            })
        });
        Self {
            hidden: kept
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            chips: chips.collect(),
        }
    }
}

fn chip_text(label: &str, value: &str) -> String {
    match value {
        "true" => label.to_owned(),
        value => format!("{label} {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: ListFormFields = ListFormFields {
        fields: &["q", "status"],
        chips: &[("customer_no", "Customer"), ("overdue", "Overdue")],
    };

    #[test]
    fn each_filter_without_a_field_is_kept_and_can_be_removed() {
        // The query, the hidden fields, and the text and address of each chip.
        type Pairs = &'static [(&'static str, &'static str)];
        let cases: [(&str, Pairs, Pairs); 5] = [
            ("", &[], &[]),
            ("q=a&status=draft&page=3&customer_no=", &[], &[]),
            (
                "q=a%26b&customer_no=C-4&page=3",
                &[("customer_no", "C-4")],
                &[("Customer C-4", "/list?q=a%26b")],
            ),
            (
                "customer_no=C+4&overdue=true&sort=-payable",
                &[
                    ("customer_no", "C 4"),
                    ("overdue", "true"),
                    ("sort", "-payable"),
                ],
                &[
                    ("Customer C 4", "/list?overdue=true&sort=-payable"),
                    ("Overdue", "/list?customer_no=C+4&sort=-payable"),
                ],
            ),
            ("per_page=10", &[("per_page", "10")], &[]),
        ];
        for (text, hidden, chips) in cases {
            let kept = KeptFilters::new("/list", &Query::from_text(text), &FORM);
            let found: Vec<_> = kept
                .hidden
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            assert_eq!(found, hidden, "{text}");
            let found: Vec<_> = kept
                .chips
                .iter()
                .map(|chip| (chip.text.as_str(), chip.address.as_str()))
                .collect();
            assert_eq!(found, chips, "{text}");
        }
    }
}
