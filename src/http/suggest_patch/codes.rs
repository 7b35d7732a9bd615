//! Corrects a code of the authority's lists if only one code can be meant. A misspelled currency or tax category
//! decides about money, so it is corrected only if a second field of the document confirms the code.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::domain::kernel::fault::json_pointer;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::domain::reference::fuzzy_code::{CodeMatch, MatchKind, nearest_code};
use crate::http::suggest_patch::patch_op::PatchOperation;
use crate::http::suggest_patch::units;
use crate::http::suggest_patch::violation::Violation;

/// The names of the fields that hold a code, each with the authority's list of the allowed codes.
const CODE_FIELDS: [(&str, ReferenceList); 7] = [
    ("document_currency_code", ReferenceList::Currencies),
    ("tax_currency_code", ReferenceList::Currencies),
    ("country", ReferenceList::Countries),
    ("invoice_type_code", ReferenceList::InvoiceTypes),
    ("payment_means_code", ReferenceList::PaymentMeans),
    ("id", ReferenceList::TaxCategories),
    ("price_unit", ReferenceList::QuantityCodes),
];
/// The ids of the rules that an invalid code may violate.
const CODE_RULES: [&str; 4] = ["exists", "max", "currency", "country"];
const CURRENCY_FIELDS: [&str; 2] = ["document_currency_code", "tax_currency_code"];
/// The maximum number of different texts of one body that are looked up in the lists of codes. One text may be compared
/// with all names of a long list.
const LOOKED_UP_TEXTS_MAX: usize = 50;

/// The codes that the texts of one body mean. Each text is looked up once.
pub(super) struct MeantCodes<'l> {
    catalog: &'l Catalog,
    matches: HashMap<(ReferenceList, String), Option<CodeMatch>>,
}

impl<'l> MeantCodes<'l> {
    pub(super) fn new(catalog: &'l Catalog) -> Self {
        Self {
            catalog,
            matches: HashMap::new(),
        }
    }

    /// Returns the code that a text means. `None` if no code or several fit, or if too many texts were looked up.
    fn find_meant_code(&mut self, list: ReferenceList, text: &str) -> Option<CodeMatch> {
        let key = (list, text.to_owned());
        if let Some(code_match) = self.matches.get(&key) {
            return code_match.clone();
        }
        if self.matches.len() >= LOOKED_UP_TEXTS_MAX {
            return None;
        }
        let code_match = match list {
            ReferenceList::QuantityCodes => units::meant_code(self.catalog, text),
            _ => nearest_code(self.catalog, list, text),
        };
        self.matches.insert(key, code_match.clone());
        code_match
    }
}

/// Returns the operation that replaces an invalid code; `None` if it is not certain which code is meant.
pub(super) fn find_fix(
    body: &Value,
    violation: &Violation,
    codes: &mut MeantCodes<'_>,
) -> Option<PatchOperation> {
    let path = violation.path.as_str();
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let (_, list) = CODE_FIELDS.iter().find(|(field, _)| *field == name)?;
    if !CODE_RULES.contains(&violation.rule) {
        return None;
    }
    let pointer = json_pointer(path);
    let text = body.pointer(&pointer)?.as_str()?.trim();
    let meant = codes.find_meant_code(*list, text);
    let meant = meant.filter(|meant| match list {
        ReferenceList::Currencies => is_safe_currency(body, name, text, meant),
        ReferenceList::TaxCategories => may_suggest_tax(body, parent, codes.catalog, meant),
        _ => true,
    })?;
    let why = match meant.kind {
        MatchKind::Spelling => format!("the same letters are a code of {list}"),
        MatchKind::Name => format!("the only code of {list} that is called so"),
        MatchKind::Typo => format!("the only code of {list} that is near"),
    };
    Some(PatchOperation::set(pointer, json!(meant.code), why))
}

/// Returns true if it is safe to set this currency. The document's other currency field must confirm a misspelled code.
/// A code in the wrong case is safe, except one like `GBp`, which may mean a hundredth of `GBP`.
fn is_safe_currency(body: &Value, name: &str, text: &str, meant: &CodeMatch) -> bool {
    let other = CURRENCY_FIELDS.iter().find(|other| **other != name);
    let other_code = other
        .and_then(|other| body.get(*other))
        .and_then(Value::as_str);
    match meant.kind {
        MatchKind::Name => true,
        MatchKind::Spelling => {
            text.chars().all(char::is_alphabetic)
                && !(text.starts_with(|first: char| first.is_uppercase())
                    && text.chars().filter(|letter| letter.is_lowercase()).count() == 1)
        }
        MatchKind::Typo => other_code == Some(&meant.code),
    }
}

/// Returns true if this tax category may be suggested. A stated percent must be the percent of this category; without
/// one, a misspelled category is not corrected.
fn may_suggest_tax(
    body: &Value,
    category_path: &str,
    catalog: &Catalog,
    meant: &CodeMatch,
) -> bool {
    let percent = body.pointer(&format!("{}/percent", json_pointer(category_path)));
    match percent {
        Some(Value::Number(stated)) => {
            Amount::parse(&stated.to_string()) == Ok(catalog.tax_percent(&meant.code))
        }
        _ => meant.kind != MatchKind::Typo,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_looked_up_texts_of_a_body_is_limited() {
        let mut catalog = Catalog::default();
        let units =
            json!([{ "code": "KGM", "name": "kilogram" }, { "code": "HUR", "name": "hour" }]);
        catalog.load(ReferenceList::QuantityCodes, &units);
        let mut codes = MeantCodes::new(&catalog);
        let mut find = |text: &str| {
            let code_match = codes.find_meant_code(ReferenceList::QuantityCodes, text);
            code_match.map(|code_match| code_match.code)
        };
        assert_eq!(find("kilogramms").as_deref(), Some("KGM"));
        for number in 1..LOOKED_UP_TEXTS_MAX {
            assert_eq!(find(&format!("no unit at all, {number}")), None);
        }
        assert_eq!(find("kilogramms").as_deref(), Some("KGM"), "known already");
        assert_eq!(find("hours"), None, "one text too many");
    }
}
