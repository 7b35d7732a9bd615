//! A snapshot of the authority's reference lists. If a list was never fetched, it is not known which codes it has, so
//! checks against it accept every value.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use crate::domain::kernel::codes::words;
use crate::domain::money::{Amount, FRACTION_DIGITS_MAX};

words! {
    /// The authority's eleven reference lists, named as in the specification.
    ReferenceList {
        InvoiceTypes = "invoice-types",
        PaymentMeans = "payment-means",
        TaxCategories = "tax-categories",
        Currencies = "currencies",
        VatExemptions = "vat-exemptions",
        ProductCodes = "product-codes",
        ServiceCodes = "service-codes",
        QuantityCodes = "invoice-quantity-codes",
        Lgas = "lgas",
        States = "states",
        Countries = "countries",
    }
}

impl ReferenceList {
    /// Returns the field of a list item that holds the code.
    fn code_field(self) -> &'static str {
        match self {
            Self::ProductCodes => "hscode",
            Self::VatExemptions => "heading_no",
            Self::Countries => "alpha_2",
            _ => "code",
        }
    }

    /// Returns the fields of a list item, such as its name, whose values callers may send instead of the code.
    fn name_fields(self) -> &'static [&'static str] {
        match self {
            Self::InvoiceTypes | Self::PaymentMeans | Self::TaxCategories => &["value"],
            Self::Currencies => &["name", "name_plural"],
            Self::QuantityCodes | Self::Lgas | Self::States => &["name"],
            Self::Countries => &["name", "alpha_3"],
            Self::VatExemptions | Self::ProductCodes | Self::ServiceCodes => &[],
        }
    }

    /// Returns the texts by which the search for a misspelt code finds this item; none for an item without a name.
    fn search_terms(self, code: &str, item: &Value) -> Vec<CatalogTerm> {
        let word = |text: &str, is_code| CatalogTerm {
            folded: letters_and_digits(text),
            code: code.to_owned(),
            is_code,
        };
        let named = self
            .name_fields()
            .iter()
            .filter_map(|name| item.get(*name).and_then(Value::as_str));
        let mut words: Vec<_> = named.map(|text| word(text, false)).collect();
        if !self.name_fields().is_empty() {
            words.push(word(code, true));
        }
        words
    }
}

/// A text that stands for a list item: the item's code, its name, or another code of the item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogTerm {
    /// The term in lower case, with letters and digits only.
    pub folded: String,
    pub code: String,
    /// True if the term is the code itself.
    pub is_code: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Catalog {
    codes: HashMap<ReferenceList, HashSet<String>>,
    /// The search terms of each list. Lists whose items have no names have no entry.
    search_terms: HashMap<ReferenceList, Arc<[CatalogTerm]>>,
    /// The first name of each code, for each list.
    names: HashMap<ReferenceList, HashMap<String, String>>,
    percents: HashMap<String, Amount>,
    currency_digits: HashMap<String, u32>,
}

impl Catalog {
    /// Loads one list as the authority serves it. Malformed items are skipped.
    pub fn load(&mut self, list: ReferenceList, items: &Value) {
        let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
        let code = |item: &Value| {
            item.get(list.code_field())
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        self.codes
            .insert(list, items.iter().filter_map(code).collect());
        let named = items.iter().filter_map(|item| {
            let name = item.get(*list.name_fields().first()?)?.as_str()?;
            Some((code(item)?, name.to_owned()))
        });
        self.names.insert(list, named.collect());
        let words = items
            .iter()
            .filter_map(|item| code(item).map(|code| list.search_terms(&code, item)));
        self.search_terms.insert(list, words.flatten().collect());
        for item in items {
            let Some(code) = code(item) else { continue };
            match list {
                ReferenceList::TaxCategories => {
                    self.percents
                        .insert(code, percent(item).unwrap_or_default());
                }
                ReferenceList::Currencies => {
                    let digits = item.get("decimal_digits").and_then(Value::as_u64);
                    let digits = digits.and_then(|digits| u32::try_from(digits).ok());
                    let digits = digits.unwrap_or(2).min(FRACTION_DIGITS_MAX);
                    self.currency_digits.insert(code, digits);
                }
                _ => {}
            }
        }
    }

    /// Returns whether the list has the code; `None` if the list was never fetched, so that this is not known.
    pub fn has(&self, list: ReferenceList, code: &str) -> Option<bool> {
        self.codes
            .get(&list)
            .filter(|codes| !codes.is_empty())
            .map(|codes| codes.contains(code))
    }

    /// Returns the search terms of a list. Lists whose items have no names have no search terms.
    pub fn search_terms(&self, list: ReferenceList) -> impl Iterator<Item = &CatalogTerm> {
        self.search_terms
            .get(&list)
            .into_iter()
            .flat_map(|words| words.iter())
    }

    /// Returns the name of a code; `None` if the list has no such code or no names.
    pub fn name(&self, list: ReferenceList, code: &str) -> Option<&str> {
        self.names.get(&list)?.get(code).map(String::as_str)
    }

    /// Returns the codes of a list with their names, in the order of the codes. A code without a name is its own name.
    pub fn codes_with_names(&self, list: ReferenceList) -> Vec<(&str, &str)> {
        let codes = self.codes.get(&list).into_iter().flatten();
        let mut all: Vec<_> = codes
            .map(|code| (code.as_str(), self.name(list, code).unwrap_or(code)))
            .collect();
        all.sort_unstable();
        all
    }

    /// Returns the percent of a tax category; zero if the category is unknown.
    pub fn tax_percent(&self, tax_category: &str) -> Amount {
        self.percents.get(tax_category).copied().unwrap_or_default()
    }

    /// Returns the listed tax categories with their percents, ordered by code, those whose code ends in `_VAT` first.
    pub fn tax_percents_by_category(&self) -> Vec<(&str, Amount)> {
        // A category that is not listed any more keeps its percent, for the invoices that have it.
        let mut all: Vec<_> = self
            .percents
            .iter()
            .map(|(name, percent)| (name.as_str(), *percent))
            .filter(|(name, _)| self.has(ReferenceList::TaxCategories, name) == Some(true))
            .collect();
        all.sort_unstable_by_key(|(name, _)| (!name.ends_with("_VAT"), *name));
        all
    }

    /// Returns the number of decimal digits of a currency, at most `FRACTION_DIGITS_MAX`, because an amount has no
    /// more; two if the currency is unknown.
    pub fn currency_digits(&self, currency: &str) -> u32 {
        self.currency_digits.get(currency).copied().unwrap_or(2)
    }
}

/// The newest snapshot, which all readers share. A refresh replaces it; a reader that already has the old one keeps it.
#[derive(Debug, Clone, Default)]
pub struct SharedCatalog(Arc<RwLock<Arc<Catalog>>>);

impl SharedCatalog {
    pub fn get(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set(&self, catalog: Catalog) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalog);
    }
}

/// Returns the letters and digits of a text in lower case, so that `Kilo-Gram` and `kilogram` become equal.
pub fn letters_and_digits(text: &str) -> String {
    text.chars()
        .filter(|letter| letter.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns the percent of a tax category: a number or a text, which may end with a percent sign.
fn percent(item: &Value) -> Option<Amount> {
    match item.get("percent")? {
        Value::Number(number) => Amount::parse(&number.to_string()).ok(),
        Value::String(text) => Amount::parse(text.trim().trim_end_matches('%')).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_that_was_never_fetched_knows_nothing() {
        assert_eq!(
            Catalog::default().has(ReferenceList::Currencies, "NGN"),
            None
        );
    }

    #[test]
    fn a_list_is_read_by_its_own_key() {
        let mut catalog = Catalog::default();
        catalog.load(
            ReferenceList::ProductCodes,
            &json!([{ "hscode": "8471.30", "description": "Computers" }]),
        );
        catalog.load(
            ReferenceList::TaxCategories,
            &json!([{ "code": "STANDARD_VAT", "value": "VAT", "percent": 7.5 }]),
        );
        catalog.load(
            ReferenceList::Currencies,
            &json!([{ "code": "JPY", "decimal_digits": 0 }]),
        );
        assert_eq!(
            catalog.has(ReferenceList::ProductCodes, "8471.30"),
            Some(true)
        );
        assert_eq!(
            catalog.has(ReferenceList::ProductCodes, "0000.00"),
            Some(false)
        );
        assert_eq!(catalog.tax_percent("STANDARD_VAT").to_string(), "7.5");
        assert_eq!(
            (
                catalog.currency_digits("JPY"),
                catalog.currency_digits("NGN")
            ),
            (0, 2)
        );
    }

    #[test]
    fn the_codes_of_a_list_have_an_order_and_each_has_a_name() {
        let mut catalog = Catalog::default();
        let list = ReferenceList::Currencies;
        assert!(catalog.codes_with_names(list).is_empty());
        let listed = json!([{ "code": "USD", "name": "US Dollar" }, { "code": "NGN" }]);
        catalog.load(list, &listed);
        assert_eq!(
            catalog.codes_with_names(list),
            [("NGN", "NGN"), ("USD", "US Dollar")]
        );
    }

    #[test]
    fn a_tax_category_that_is_not_listed_any_more_is_not_chosen() {
        let standard = json!({ "code": "STANDARD_VAT", "percent": 7.5 });
        let old = json!({ "code": "OLD_VAT", "percent": 5 });
        let mut catalog = Catalog::default();
        for (listed, codes) in [
            (json!([old, standard]), vec!["OLD_VAT", "STANDARD_VAT"]),
            (json!([standard]), vec!["STANDARD_VAT"]),
            (json!([]), vec![]),
        ] {
            catalog.load(ReferenceList::TaxCategories, &listed);
            let chosen = catalog.tax_percents_by_category().into_iter();
            let chosen: Vec<_> = chosen.map(|(code, _)| code).collect();
            assert_eq!(chosen, codes, "{listed}");
            assert_eq!(catalog.tax_percent("OLD_VAT").to_string(), "5", "{listed}");
        }
    }

    #[test]
    fn a_currency_has_no_more_digits_than_an_amount() {
        for (listed, digits) in [
            (json!(0), 0),
            (json!(3), 3),
            (json!(8), 6),
            (json!(29), 6),
            (json!(u64::MAX), 2),
            (json!("3"), 2),
        ] {
            let mut catalog = Catalog::default();
            let currencies = json!([{ "code": "XTS", "decimal_digits": listed }]);
            catalog.load(ReferenceList::Currencies, &currencies);
            assert_eq!(catalog.currency_digits("XTS"), digits, "{listed}");
        }
    }
}
