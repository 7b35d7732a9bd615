//! Corrects units of quantity that are written as common words, such as `kg` for the code `KGM`.

use crate::domain::reference::catalog::{Catalog, ReferenceList, letters_and_digits};
use crate::domain::reference::fuzzy_code::{CodeMatch, MatchKind, nearest_code};

/// Common words with their codes of UN/ECE Recommendation 20, without words of several meanings, such as `ton`.
const UNIT_WORDS: [(&str, &str); 66] = [
    ("bar", "BAR"),
    ("centimeter", "CMT"),
    ("cm", "CMT"),
    ("cm2", "CMK"),
    ("cm3", "CMQ"),
    ("cubicmeter", "MTQ"),
    ("d", "DAY"),
    ("doz", "DZN"),
    ("dz", "DZN"),
    ("feet", "FOT"),
    ("foot", "FOT"),
    ("ft", "FOT"),
    ("g", "GRM"),
    ("gm", "GRM"),
    ("gr", "GRM"),
    ("gramme", "GRM"),
    ("h", "HUR"),
    ("hr", "HUR"),
    ("inch", "INH"),
    ("item", "EA"),
    ("kg", "KGM"),
    ("kgs", "KGM"),
    ("kilo", "KGM"),
    ("kilogramm", "KGM"),
    ("kilogramme", "KGM"),
    ("kilometer", "KMT"),
    ("kilotonne", "KTN"),
    ("kilowatthour", "KWH"),
    ("km", "KMT"),
    ("kt", "KTN"),
    ("kw", "KWT"),
    ("kwh", "KWH"),
    ("l", "LTR"),
    ("lb", "LBR"),
    ("liter", "LTR"),
    ("ltr", "LTR"),
    ("m", "MTR"),
    ("m2", "MTK"),
    ("m3", "MTQ"),
    ("meter", "MTR"),
    ("metrictonne", "TNE"),
    ("metricton", "TNE"),
    ("mg", "MGM"),
    ("milliliter", "MLT"),
    ("millimeter", "MMT"),
    ("min", "MIN"),
    ("minute", "MIN"),
    ("ml", "MLT"),
    ("mm", "MMT"),
    ("month", "MON"),
    ("mtr", "MTR"),
    ("no", "EA"),
    ("pc", "H87"),
    ("pce", "H87"),
    ("pcs", "H87"),
    ("pr", "PR"),
    ("sec", "SEC"),
    ("second", "SEC"),
    ("sqm", "MTK"),
    ("squaremeter", "MTK"),
    ("t", "TNE"),
    ("tonne", "TNE"),
    ("wk", "WEE"),
    ("yard", "YRD"),
    ("yr", "ANN"),
    ("cbm", "MTQ"),
];

/// Returns the only code that a text can mean. Returns `None` if no code fits, or if the common words and the
/// authority's list give different codes.
pub(super) fn meant_code(catalog: &Catalog, text: &str) -> Option<CodeMatch> {
    let word = letters_and_digits(text);
    let singular = word.strip_suffix('s').filter(|word| word.len() > 1);
    let by_word = find_code(&word).or_else(|| singular.and_then(find_code));
    let by_word =
        by_word.filter(|code| catalog.has(ReferenceList::QuantityCodes, code) == Some(true));
    let by_list = nearest_code(catalog, ReferenceList::QuantityCodes, text)
        .filter(|near| near.kind != MatchKind::Typo)
        .or_else(|| {
            nearest_code(catalog, ReferenceList::QuantityCodes, singular?)
                .filter(|near| near.kind == MatchKind::Name)
        });
    match (by_word, by_list) {
        (Some(code), Some(near)) => (near.code == code).then_some(near),
        (Some(code), None) => Some(CodeMatch {
            code: code.to_owned(),
            kind: MatchKind::Name,
        }),
        (None, Some(near)) => Some(near),
        (None, None) => nearest_code(catalog, ReferenceList::QuantityCodes, text),
    }
}

fn find_code(word: &str) -> Option<&'static str> {
    let (_, code) = UNIT_WORDS.iter().find(|(name, _)| *name == word)?;
    Some(code)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        let units = json!([
            { "code": "EA", "name": "each" }, { "code": "KGM", "name": "kilogram" }, { "code": "HUR", "name": "hour" },
            { "code": "GRM", "name": "gram" }, { "code": "GM", "name": "gram per square metre" },
            { "code": "KT", "name": "kit" }, { "code": "KTN", "name": "kilotonne" }, { "code": "H87", "name": "piece" },
            { "code": "MTQ", "name": "cubic metre" }, { "code": "GLL", "name": "gallon (US)" },
        ]);
        catalog.load(ReferenceList::QuantityCodes, &units);
        catalog
    }

    #[test]
    fn a_unit_as_people_write_it_has_its_code() {
        for (text, code) in [
            ("each", "EA"),
            ("ea", "EA"),
            ("kg", "KGM"),
            ("Kgs.", "KGM"),
            ("kgm", "KGM"),
            ("kilograms", "KGM"),
            ("Hour", "HUR"),
            ("hours", "HUR"),
            ("hrs", "HUR"),
            ("pcs", "H87"),
            ("pieces", "H87"),
            ("m3", "MTQ"),
            ("cubic metres", "MTQ"),
        ] {
            assert_eq!(
                meant_code(&catalog(), text)
                    .map(|near| near.code)
                    .as_deref(),
                Some(code),
                "{text}"
            );
        }
    }

    #[test]
    fn a_unit_with_two_meanings_has_no_code() {
        for text in ["gm", "kt", "ton", "gallon", "x", "", "s", "litre", "box"] {
            assert_eq!(meant_code(&catalog(), text), None, "{text}");
        }
    }

    #[test]
    fn the_words_are_written_as_they_are_looked_up() {
        for (word, code) in UNIT_WORDS {
            assert!(
                word.chars()
                    .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit()),
                "{word}"
            );
            assert!(code.len() <= 3, "{code}");
        }
    }
}
