//! Finds the code of a country by its code of two letters, its name, or its code of three letters.

use crate::domain::reference::catalog::{Catalog, ReferenceList, letters_and_digits};
use crate::domain::reference::fuzzy_code::code_in_another_spelling;

/// Usual names of countries that have other names in the authority's list, in the form that `letters_and_digits`
/// returns.
const COUNTRY_WORDS: [(&str, &str); 8] = [
    ("greatbritain", "GB"),
    ("ivorycoast", "CI"),
    ("russia", "RU"),
    ("southkorea", "KR"),
    ("tanzania", "TZ"),
    ("uk", "GB"),
    ("unitedkingdom", "GB"),
    ("unitedstates", "US"),
];

/// Returns the two-letter code in the authority's list for this country; `None` if the list has no such country. As
/// long as the list was never fetched, any two letters count as a code.
pub fn country_code(catalog: &Catalog, text: &str) -> Option<String> {
    let code = text.trim().to_ascii_uppercase();
    let has_two_letters = code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_listed = catalog.has(ReferenceList::Countries, &code);
    if has_two_letters && is_listed != Some(false) {
        return Some(code);
    }
    let folded = letters_and_digits(text);
    let word = COUNTRY_WORDS
        .iter()
        .find(|(word, code)| {
            *word == folded && catalog.has(ReferenceList::Countries, code) != Some(false)
        })
        .map(|(_, code)| (*code).to_owned());
    word.or_else(|| code_in_another_spelling(catalog, ReferenceList::Countries, text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_country_is_known_by_its_codes_and_names() {
        let mut catalog = Catalog::default();
        catalog.load(
            ReferenceList::Countries,
            &json!([
                { "name": "Nigeria", "alpha_2": "NG", "alpha_3": "NGA" },
                { "name": "United Kingdom of Great Britain and Northern Ireland", "alpha_2": "GB", "alpha_3": "GBR" },
            ]),
        );
        for (text, code) in [
            ("NG", Some("NG")),
            (" ng ", Some("NG")),
            ("NGA", Some("NG")),
            ("Nigeria", Some("NG")),
            ("NIGERIA ", Some("NG")),
            ("UK", Some("GB")),
            ("United Kingdom", Some("GB")),
            ("gbr", Some("GB")),
            ("United States", None),
            ("Atlantis", None),
            ("XX", None),
            ("Nigeriaa", None),
            ("", None),
        ] {
            assert_eq!(country_code(&catalog, text).as_deref(), code, "{text:?}");
        }
    }

    #[test]
    fn a_list_that_was_never_fetched_has_every_code() {
        let catalog = Catalog::default();
        assert_eq!(country_code(&catalog, "xx").as_deref(), Some("XX"));
        assert_eq!(country_code(&catalog, "uk").as_deref(), Some("UK"));
        assert_eq!(country_code(&catalog, "Nigeria"), None);
    }
}
