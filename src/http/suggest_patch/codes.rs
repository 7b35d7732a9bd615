//! Corrects codes of the authority's lists if exactly one code can be meant. A currency decides the amount owed, and a
//! tax category the tax on it. A misspelling of these needs a second field of the document as evidence.

use serde_json::{Value, json};

use crate::domain::kernel::fault::json_pointer;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::domain::reference::fuzzy_code::{CodeMatch, MatchKind, nearest};
use crate::http::suggest_patch::patch_builder::Violation;
use crate::http::suggest_patch::patch_op::PatchOp;
use crate::http::suggest_patch::units;

/// The fields that hold a code, each with its list.
const FIELDS: [(&str, ReferenceList); 7] = [
    ("document_currency_code", ReferenceList::Currencies),
    ("tax_currency_code", ReferenceList::Currencies),
    ("country", ReferenceList::Countries),
    ("invoice_type_code", ReferenceList::InvoiceTypes),
    ("payment_means_code", ReferenceList::PaymentMeans),
    ("id", ReferenceList::TaxCategories),
    ("price_unit", ReferenceList::QuantityCodes),
];
/// The rules that a text with no valid code may violate.
const RULES: [&str; 4] = ["exists", "max", "currency", "country"];
const CURRENCIES: [&str; 2] = ["document_currency_code", "tax_currency_code"];

/// Returns the operation that sets the intended code.
pub(super) fn fix(body: &Value, wrong: &Violation, catalog: &Catalog) -> Option<PatchOp> {
    let (parent, name) = wrong.path.rsplit_once('.').unwrap_or(("", &wrong.path));
    let (_, list) = FIELDS.iter().find(|(field, _)| *field == name)?;
    if !RULES.contains(&wrong.rule) {
        return None;
    }
    let pointer = json_pointer(&wrong.path);
    let text = body.pointer(&pointer)?.as_str()?.trim();
    let near = match list {
        ReferenceList::QuantityCodes => units::meant(catalog, text),
        _ => nearest(catalog, *list, text),
    };
    let near = near.filter(|near| match list {
        ReferenceList::Currencies => is_safe_currency(body, name, text, near),
        ReferenceList::TaxCategories => is_safe_tax(body, parent, catalog, near),
        _ => true,
    })?;
    let why = match near.likeness {
        MatchKind::Spelling => format!("the same letters are a code of {list}"),
        MatchKind::Name => format!("the only code of {list} that is called so"),
        MatchKind::Slip => format!("the only code of {list} that is near"),
    };
    Some(PatchOp::set(pointer, json!(near.code), why))
}

/// Accepts a misspelling only if the document's other currency has the same code. Case matters: `GBp` is a hundredth of
/// `GBP`.
fn is_safe_currency(body: &Value, name: &str, text: &str, near: &CodeMatch) -> bool {
    let other = CURRENCIES.iter().find(|other| **other != name);
    let said = other.and_then(|other| body.get(*other)).and_then(Value::as_str);
    match near.likeness {
        MatchKind::Name => true,
        MatchKind::Spelling => {
            text.chars().all(char::is_alphabetic)
                && !(text.starts_with(|first: char| first.is_uppercase())
                    && text.chars().filter(|letter| letter.is_lowercase()).count() == 1)
        }
        MatchKind::Slip => said == Some(&near.code),
    }
}

/// Accepts a misspelling only if the percent beside it is that of the category.
fn is_safe_tax(body: &Value, category: &str, catalog: &Catalog, near: &CodeMatch) -> bool {
    let percent = body.pointer(&format!("{}/percent", json_pointer(category)));
    match percent {
        Some(Value::Number(sent)) => Amount::parse(&sent.to_string()) == Ok(catalog.percent(&near.code)),
        _ => near.likeness != MatchKind::Slip,
    }
}
