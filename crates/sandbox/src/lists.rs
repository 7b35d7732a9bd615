//! The authority's reference lists, served unchanged: with the same order, trailing blanks and duplicate rows.

use std::{collections::HashSet, sync::LazyLock};

use serde_json::Value;

const FILES: [(&str, &str); 11] = [
    ("invoice-types", include_str!("../data/invoice-types.json")),
    ("payment-means", include_str!("../data/payment-means.json")),
    (
        "tax-categories",
        include_str!("../data/tax-categories.json"),
    ),
    ("currencies", include_str!("../data/currencies.json")),
    (
        "vat-exemptions",
        include_str!("../data/vat-exemptions.json"),
    ),
    ("hs-codes", include_str!("../data/hs-codes.json")),
    (
        "services-codes",
        include_str!("../data/services-codes.json"),
    ),
    (
        "invoice-quantity-codes",
        include_str!("../data/invoice-quantity-codes.json"),
    ),
    ("lgas", include_str!("../data/lgas.json")),
    ("states", include_str!("../data/states.json")),
    ("countries", include_str!("../data/countries.json")),
];

pub(crate) static INVOICE_TYPES: LazyLock<HashSet<String>> =
    LazyLock::new(|| list_codes("invoice-types"));
pub(crate) static PAYMENT_MEANS: LazyLock<HashSet<String>> =
    LazyLock::new(|| list_codes("payment-means"));
pub(crate) static TAX_CATEGORIES: LazyLock<HashSet<String>> =
    LazyLock::new(|| list_codes("tax-categories"));
pub(crate) static CURRENCIES: LazyLock<HashSet<String>> =
    LazyLock::new(|| list_codes("currencies"));

/// Returns the rows of the list with this name; `None` if there is no such list.
pub(crate) fn list_rows(list: &str) -> Option<Value> {
    let (_, text) = FILES.into_iter().find(|(name, _)| *name == list)?;
    strict_json::from_trusted(text).ok()
}

fn list_codes(list: &str) -> HashSet<String> {
    let rows = list_rows(list).unwrap_or_default();
    rows.as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| Some(row["code"].as_str()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_a_filled_array_and_the_checked_ones_have_codes() {
        for (name, _) in FILES {
            assert!(
                list_rows(name).is_some_and(|rows| !rows.as_array().unwrap().is_empty()),
                "{name}"
            );
        }
        assert!(INVOICE_TYPES.contains("380") && PAYMENT_MEANS.contains("ZZZ"));
        assert!(TAX_CATEGORIES.contains("STANDARD_VAT") && CURRENCIES.contains("NGN"));
    }
}
