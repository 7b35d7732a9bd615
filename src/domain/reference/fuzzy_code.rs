//! Guesses the code that a caller meant by a text that is not a code: another spelling, the name of an item, or a typo.
//!
//! There is no guess if two codes are about equally near, since a wrong guess changes the meaning of an invoice. A text
//! with digits is never taken for a typo, since another valid code may differ in one digit only.

use std::collections::{BTreeMap, BTreeSet};

use strsim::osa_distance;

use crate::domain::reference::catalog::{Catalog, CatalogTerm, ReferenceList, letters_and_digits};

/// The maximum length of a text, in bytes. There is no guess for a longer text.
const TEXT_BYTES_MAX: usize = 128;
/// The minimum number of letters of a word that may have two typos. A shorter word may have at most one.
const TWO_TYPOS_LETTERS_MIN: usize = 8;
/// In a text with at least this many letters, typos are corrected only if no other code is within one more typo.
const MARGIN_LETTERS_MIN: usize = 5;

/// If two words differ in length by more letters than this, they are more than three typos apart, which is never near.
const LETTERS_APART_MAX: usize = 3;

/// The kind of similarity between a text and a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// The text has the letters and digits of the code. Only case, blanks or punctuation differ.
    Spelling,
    /// The text is the name or another code of the item.
    Name,
    /// The text has one or two typos.
    Typo,
}

/// The code that a text most likely means, and how the text matched it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeMatch {
    pub code: String,
    pub kind: MatchKind,
}

/// Finds the one code of the list that a misspelt text stands for. Returns `None` for a valid code, and if no code or
/// more than one fits.
pub fn nearest_code(catalog: &Catalog, list: ReferenceList, text: &str) -> Option<CodeMatch> {
    let is_listed = catalog.has(list, text) == Some(true);
    if is_listed || text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let wanted = letters_and_digits(text);
    let matching_terms = matching_terms(catalog, list, &wanted);
    if matching_terms.is_empty() {
        return code_with_typos(catalog, list, &wanted);
    }
    let is_code = matching_terms.iter().any(|word| word.is_code);
    single_match(
        &distinct_codes(&matching_terms),
        if is_code {
            MatchKind::Spelling
        } else {
            MatchKind::Name
        },
    )
}

/// Finds the one code of which the text is another spelling or a name. Typos are not considered: that would compute the
/// distance to every code, and a body may have many texts.
pub fn code_in_another_spelling(
    catalog: &Catalog,
    list: ReferenceList,
    text: &str,
) -> Option<String> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let matching_terms = matching_terms(catalog, list, &letters_and_digits(text));
    single_match(&distinct_codes(&matching_terms), MatchKind::Spelling).map(|found| found.code)
}

fn matching_terms<'c>(
    catalog: &'c Catalog,
    list: ReferenceList,
    wanted: &str,
) -> Vec<&'c CatalogTerm> {
    catalog
        .search_terms(list)
        .filter(|word| !wanted.is_empty() && word.folded == wanted)
        .collect()
}

fn distinct_codes<'c>(matching_terms: &[&'c CatalogTerm]) -> BTreeSet<&'c str> {
    matching_terms
        .iter()
        .map(|word| word.code.as_str())
        .collect()
}

/// Finds the code to which the text has the fewest typos. Returns `None` if another code is about as near.
fn code_with_typos(catalog: &Catalog, list: ReferenceList, wanted: &str) -> Option<CodeMatch> {
    let letters = wanted.chars().count();
    if letters < typo_letters_min(list) || has_digit(wanted) {
        return None;
    }
    let most = if letters < TWO_TYPOS_LETTERS_MIN {
        1
    } else {
        2
    };
    let typo_counts = typo_counts(catalog, list, wanted);
    let nearest = *typo_counts
        .values()
        .min()
        .filter(|distance| **distance <= most)?;
    // A short text has no margin: it is near to many codes, so with a margin it would never match.
    let margin = usize::from(letters >= MARGIN_LETTERS_MIN);
    let near = typo_counts
        .into_iter()
        .filter(|(_, distance)| *distance <= nearest + margin);
    single_match(&near.map(|(code, _)| code).collect(), MatchKind::Typo)
}

/// Returns how many letters a text needs for the correction of typos. Many short words differ by one letter only, so a
/// guess would often be wrong. Currency codes are corrected although they are short, because they are often mistyped.
fn typo_letters_min(list: ReferenceList) -> usize {
    match list {
        ReferenceList::Currencies => 3,
        ReferenceList::QuantityCodes => 6,
        _ => 5,
    }
}

/// Returns, for each code, the number of typos between the text and the nearest term of the code. Leaves out codes
/// whose terms are all much shorter or longer.
fn typo_counts<'c>(
    catalog: &'c Catalog,
    list: ReferenceList,
    wanted: &str,
) -> BTreeMap<&'c str, usize> {
    // In other lists the codes are consecutive, so a valid code would look like a typo of the next one.
    let codes_may_have_typos = matches!(
        list,
        ReferenceList::Currencies | ReferenceList::TaxCategories
    );
    let wanted_letters = wanted.chars().count();
    let mut typo_counts = BTreeMap::new();
    for word in catalog
        .search_terms(list)
        .filter(|word| codes_may_have_typos || !word.is_code)
    {
        let letters = word.folded.chars().count();
        let is_far = letters.abs_diff(wanted_letters) > LETTERS_APART_MAX;
        if is_far || letters < typo_letters_min(list) || has_digit(&word.folded) {
            continue;
        }
        let distance = osa_distance(&word.folded, wanted);
        let least = typo_counts.entry(word.code.as_str()).or_insert(distance);
        *least = distance.min(*least);
    }
    typo_counts
}

/// Returns the only one of these codes; `None` if there are none or several.
fn single_match(codes: &BTreeSet<&str>, kind: MatchKind) -> Option<CodeMatch> {
    let mut codes = codes.iter();
    let code = codes.next()?;
    codes.next().is_none().then(|| CodeMatch {
        code: (*code).to_owned(),
        kind,
    })
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        let countries = json!([
            { "name": "Nigeria", "alpha_2": "NG", "alpha_3": "NGA" },
            { "name": "Niger", "alpha_2": "NE", "alpha_3": "NER" },
            { "name": "Benin", "alpha_2": "BJ", "alpha_3": "BEN" },
        ]);
        catalog.load(ReferenceList::Countries, &countries);
        let naira =
            json!({ "code": "NGN", "name": "Nigerian Naira", "name_plural": "Nigerian nairas" });
        catalog.load(
            ReferenceList::Currencies,
            &json!([naira, { "code": "USD", "name": "US Dollar" }]),
        );
        let means = json!([
            { "code": "30", "value": "Credit Transfer" },
            { "code": "31", "value": "Debit Transfer" },
            { "code": "ZZZ", "value": "Mutually Defined" },
        ]);
        catalog.load(ReferenceList::PaymentMeans, &means);
        let units = json!([
            { "code": "EA", "name": "each" },
            { "code": "KGM", "name": "kilogram" },
            { "code": "A49", "name": "denier" },
            { "code": "M83", "name": "denier" },
        ]);
        catalog.load(ReferenceList::QuantityCodes, &units);
        let taxes = json!([
            { "code": "STANDARD_VAT", "value": "Standard Value-Added Tax", "percent": 7 },
            { "code": "STANDARD_GST", "value": "Standard Goods and Services Tax", "percent": 0 },
        ]);
        catalog.load(ReferenceList::TaxCategories, &taxes);
        let states =
            json!([{ "code": "NG-LA", "name": "Lagos" }, { "code": "NG-KO", "name": "Kogi" }]);
        catalog.load(ReferenceList::States, &states);
        catalog.load(
            ReferenceList::Lgas,
            &json!([{ "code": "NG-AB-ABN", "name": "Aba North" }]),
        );
        catalog
    }

    /// Checks that each text has one nearest code in its list, by this kind of similarity.
    fn check_nearest(kind: MatchKind, cases: &[(ReferenceList, &str, &str)]) {
        let catalog = catalog();
        for (list, text, code) in cases {
            let found = nearest_code(&catalog, *list, text);
            let found = found.as_ref().map(|near| (near.code.as_str(), near.kind));
            assert_eq!(found, Some((*code, kind)), "{list} {text}");
        }
    }

    #[test]
    fn a_code_is_found_in_another_spelling() {
        check_nearest(
            MatchKind::Spelling,
            &[
                (ReferenceList::Currencies, "ngn", "NGN"),
                (ReferenceList::PaymentMeans, "zzz", "ZZZ"),
                (ReferenceList::PaymentMeans, "3 0", "30"),
                (ReferenceList::QuantityCodes, "kgm", "KGM"),
                (ReferenceList::TaxCategories, "standard vat", "STANDARD_VAT"),
            ],
        );
    }

    #[test]
    fn a_code_is_found_by_a_name_of_its_item() {
        check_nearest(
            MatchKind::Name,
            &[
                (ReferenceList::Countries, "Nigeria", "NG"),
                (ReferenceList::Countries, "NGA", "NG"),
                (ReferenceList::Currencies, "nigerian naira", "NGN"),
                (ReferenceList::Currencies, "Nigerian Nairas", "NGN"),
                (ReferenceList::PaymentMeans, "credit transfer", "30"),
                (ReferenceList::QuantityCodes, "Each", "EA"),
                (ReferenceList::States, "Lagos", "NG-LA"),
                (ReferenceList::Lgas, "aba-north", "NG-AB-ABN"),
            ],
        );
    }

    #[test]
    fn a_code_is_found_despite_a_typo() {
        check_nearest(
            MatchKind::Typo,
            &[
                (ReferenceList::Countries, "nigeriaa", "NG"),
                (ReferenceList::Currencies, "NGM", "NGN"),
                (ReferenceList::Currencies, "NNG", "NGN"),
                (ReferenceList::PaymentMeans, "Credit Trasnfer", "30"),
                (ReferenceList::QuantityCodes, "kilogramm", "KGM"),
                (ReferenceList::TaxCategories, "STANDART_VTA", "STANDARD_VAT"),
            ],
        );
    }

    #[test]
    fn another_spelling_is_no_typo() {
        let catalog = catalog();
        for (list, text, expected) in [
            (ReferenceList::Currencies, "ngn", Some("NGN")),
            (ReferenceList::Currencies, "Nigerian Naira", Some("NGN")),
            (ReferenceList::Currencies, "NGM", None),
            (ReferenceList::QuantityCodes, "ea", Some("EA")),
            (ReferenceList::QuantityCodes, "denier", None),
            (
                ReferenceList::TaxCategories,
                "standard_vat",
                Some("STANDARD_VAT"),
            ),
            (ReferenceList::Currencies, "", None),
            (ReferenceList::Currencies, &"N".repeat(200), None),
        ] {
            assert_eq!(
                code_in_another_spelling(&catalog, list, text).as_deref(),
                expected,
                "{list} {text}"
            );
        }
    }

    #[test]
    fn where_two_are_near_or_nothing_is_there_is_none() {
        let catalog = catalog();
        for (list, text) in [
            (ReferenceList::Countries, "Nigera"),
            (ReferenceList::Countries, "NGX"),
            (ReferenceList::Countries, "NX"),
            (ReferenceList::Countries, ""),
            (ReferenceList::Countries, "--"),
            (ReferenceList::Currencies, "NG"),
            (ReferenceList::Currencies, "EUR"),
            (ReferenceList::Currencies, "NGN"),
            (ReferenceList::PaymentMeans, "32"),
            (ReferenceList::PaymentMeans, "300"),
            (ReferenceList::PaymentMeans, "Dedit Transfer"),
            (ReferenceList::QuantityCodes, "denier"),
            (ReferenceList::QuantityCodes, "KGN"),
            (ReferenceList::QuantityCodes, "eich"),
            (ReferenceList::PaymentMeans, "ZZA"),
            (ReferenceList::TaxCategories, "STANDARD_GAT"),
            (ReferenceList::TaxCategories, "VAT"),
            (ReferenceList::InvoiceTypes, "381"),
            (ReferenceList::TaxCategories, &"STANDARD_VAT".repeat(20)),
        ] {
            assert_eq!(nearest_code(&catalog, list, text), None, "{list} {text}");
        }
    }
}
