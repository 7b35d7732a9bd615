//! The import profile of a taxpayer: values for the fields that its files lack, and the meaning of the columns and
//! units in the files.

use std::collections::BTreeMap;

use crate::domain::import::profile::{
    ImportProfile, PROFILE_BYTES_MAX, is_profile_field, profile_field_names,
};
use crate::domain::import::table_documents;
use crate::domain::invoice::table_columns::{INVOICE_COLUMNS, LINE_COLUMNS, LINE_PREFIX};
use crate::domain::kernel::codes::{Category, ItemType};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::domain::reference::country::country_code;
use crate::domain::reference::fuzzy_code::code_in_another_spelling;
use crate::http::forms::customer::DESCRIPTION_CHARS_MIN;
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::line::{PRODUCT_CODE, SERVICE_CODE};
use crate::http::forms::map_field::TextRules;
use crate::http::forms::reader::Reader;
use crate::http::forms::text_checks::{
    check_email, check_identifier, check_pattern, check_single_line, parse_word,
};

/// The maximum length of the authority's code for a unit of quantity, in characters.
const UNIT_CHARS_MAX: usize = 3;
/// The maximum number of column headers for one field that a warning shows. Further headers are only counted, because
/// the warnings must fit in the response headers.
const HEADERS_SHOWN_MAX: usize = 3;
/// The maximum number of characters of a column header that a warning shows.
const HEADER_CHARS_SHOWN_MAX: usize = 50;

/// Reads a profile. An absent member is empty. A value that its field would refuse in every file is a fault.
#[expect(
    clippy::unnecessary_wraps,
    reason = "every form returns an `Option`, and this form requires no field"
)]
pub(crate) fn read(reader: &mut Reader<'_>) -> Option<ImportProfile> {
    let catalog = reader.catalog();
    let check_value = |name: &str, text: &str| check_profile_value(catalog, name, text);
    let check_named_unit = |_: &str, text: &str| check_unit(catalog, text);
    let value_rules = TextRules {
        check_name,
        ..TextRules::with_any_name(TEXT_CHARS_MAX, &check_value)
    };
    let column_rules = TextRules::with_any_name(TEXT_CHARS_MAX, &check_field_name);
    let unit_rules = TextRules::with_any_name(TEXT_CHARS_MAX, &check_named_unit);
    let defaults = reader.optional("defaults").texts_by_name(value_rules);
    let customers = reader
        .optional("customers")
        .nested_texts_by_name(value_rules);
    let columns = reader.optional("columns").texts_by_name(column_rules);
    let units = reader.optional("units").texts_by_name(unit_rules);
    let profile = ImportProfile {
        defaults: defaults.unwrap_or_default(),
        customers: customers.unwrap_or_default(),
        columns: columns.unwrap_or_default(),
        units: units.unwrap_or_default(),
    };
    warn_of_headers_for_same_field(reader, &profile);
    let size = serde_json::to_string(&profile).map_or(usize::MAX, |text| text.len());
    if size > PROFILE_BYTES_MAX {
        let sentence = format!("makes the profile larger than {PROFILE_BYTES_MAX} bytes");
        reader.report_fault("customers", FieldRule::other("max", sentence));
    }
    Some(profile)
}

/// Warns if several column headers stand for the same field. The headers may come from files of different programs, but
/// one file must not have two of these headers.
fn warn_of_headers_for_same_field(reader: &Reader<'_>, profile: &ImportProfile) {
    let mut headers: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (header, field) in &profile.columns {
        let headers_of_field = headers.entry(field.to_lowercase()).or_default();
        headers_of_field.push(header);
    }
    for (field, headers) in headers {
        if headers.len() > 1 {
            reader.warn(format!(
                "columns: {} all mean {field}, so a file may have only one of them",
                shorten_headers(&headers)
            ));
        }
    }
}

fn shorten_headers(headers: &[&str]) -> String {
    let shown = headers.iter().take(HEADERS_SHOWN_MAX);
    let shown: Vec<String> = shown
        .map(|header| header.chars().take(HEADER_CHARS_SHOWN_MAX).collect())
        .collect();
    let count_text = match headers.len().saturating_sub(HEADERS_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{count_text}", shown.join(", "))
}

fn check_name(name: &str) -> Result<(), FieldRule> {
    if is_profile_field(name) {
        Ok(())
    } else {
        let sentence = format!(
            "is no field of the profile; the fields are {}",
            profile_field_names()
        );
        Err(FieldRule::other("one_of", sentence))
    }
}

/// Checks a value as the create requests check the field with this name.
fn check_profile_value(catalog: &Catalog, name: &str, text: &str) -> Result<(), FieldRule> {
    let result = match name {
        "no" | "tin" => check_identifier(text, TEXT_CHARS_MAX),
        "email" => check_email(text, TEXT_CHARS_MAX),
        "business_description" => check_single_line(text, DESCRIPTION_CHARS_MIN, TEXT_CHARS_MAX),
        "address_country" if country_code(catalog, text).is_some() => return Ok(()),
        "address_country" => return check_code(catalog, ReferenceList::Countries, text),
        "invoice_category" => {
            return parse_word(text, Category::parse, Category::allowed_words).map(drop);
        }
        "item_type" => return parse_word(text, ItemType::parse, ItemType::allowed_words).map(drop),
        "invoice_type_code" => return check_code(catalog, ReferenceList::InvoiceTypes, text),
        "currency" => return check_code(catalog, ReferenceList::Currencies, text),
        "tax_category" => return check_code(catalog, ReferenceList::TaxCategories, text),
        "price_unit" => return check_unit(catalog, text),
        "product_category" => return check_pattern(PRODUCT_CODE, text),
        "service_category" => return check_pattern(SERVICE_CODE, text),
        _ => return Ok(()),
    };
    result.map(drop)
}

/// Checks that a code is on one of the authority's lists. A list that was not fetched yet accepts any code.
fn check_code(catalog: &Catalog, list: ReferenceList, text: &str) -> Result<(), FieldRule> {
    if catalog.has(list, text) == Some(false) {
        return Err(FieldRule::Listed {
            list: list.as_str(),
            meant: code_in_another_spelling(catalog, list, text),
        });
    }
    Ok(())
}

fn check_field_name(_: &str, field: &str) -> Result<(), FieldRule> {
    if table_documents::is_table_field(field) {
        return Ok(());
    }
    let lines = LINE_COLUMNS
        .iter()
        .map(|name| format!("{LINE_PREFIX}{name}"));
    let names = INVOICE_COLUMNS.iter().map(|name| (*name).to_owned());
    let names: Vec<_> = names.chain(lines).collect();
    Err(FieldRule::OneOf(names.join(", ")))
}

fn check_unit(catalog: &Catalog, unit: &str) -> Result<(), FieldRule> {
    if unit.chars().count() > UNIT_CHARS_MAX {
        return Err(FieldRule::MaxChars(UNIT_CHARS_MAX));
    }
    check_code(catalog, ReferenceList::QuantityCodes, unit)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::http::forms::testing::{broken_rules, read as read_with};

    #[test]
    fn each_member_keeps_its_rule() {
        for (body, rules) in [
            (json!({}), &[][..]),
            (json!({ "defaults": { "email": "a@b.example" } }), &[]),
            (
                json!({ "defaults": { "quantity": "1" } }),
                &["defaults.quantity: one_of"],
            ),
            (
                json!({ "defaults": { "email": 7 } }),
                &["defaults.email: type"],
            ),
            (
                json!({ "defaults": { "price": 7 } }),
                &["defaults.price: one_of"],
            ),
            (
                json!({ "defaults": { "currency": "zzz", "invoice_category": "B2X", "item_type": "X" } }),
                &[
                    "defaults.currency: exists",
                    "defaults.invoice_category: one_of",
                    "defaults.item_type: one_of",
                ],
            ),
            (
                json!({ "defaults": { "price_unit": "XX", "product_category": "1", "tax_category": "VAT" } }),
                &[
                    "defaults.price_unit: exists",
                    "defaults.product_category: format",
                    "defaults.tax_category: exists",
                ],
            ),
            (
                json!({ "defaults": { "currency": "NGN", "item_type": "product", "price_unit": "EA" } }),
                &[],
            ),
            (
                json!({ "customers": { "C1": { "email": "bad", "address_country": "Atlantis" } } }),
                &[
                    "customers.C1.address_country: exists",
                    "customers.C1.email: email",
                ],
            ),
            (json!({ "units": { "XPP": "ZZZ" } }), &["units.XPP: exists"]),
            (json!({ "defaults": [] }), &["defaults: type"]),
            (
                json!({ "customers": { "C-1": { "tin": "1" }, "C-2": 7 } }),
                &["customers.C-2: type"],
            ),
            (
                json!({ "customers": { "C-1": { "x": "1" } } }),
                &["customers.C-1.x: one_of"],
            ),
            (
                json!({ "columns": { "Nr": "invoice_no", "Menge": "LINE.quantity" } }),
                &[],
            ),
            (
                json!({ "columns": { "Nr": "number" } }),
                &["columns.Nr: one_of"],
            ),
            (json!({ "units": { "XPP": "PIECES" } }), &["units.XPP: max"]),
            (json!({ "units": { "XPP": "  " } }), &["units.XPP: min"]),
            (
                json!({ "columns": { " Nr": "invoice_no", "Nr": "due_date" } }),
                &["columns.Nr: duplicate"],
            ),
            (
                json!({ "customers": { "\tC1": { "email": "a@b.example" }, "C1": { " tin": "1", "tin": "2" } } }),
                &["customers.C1: duplicate"],
            ),
            (
                json!({ "customers": { "C1": { " tin": "1", "tin": "2" } } }),
                &["customers.C1.tin: duplicate"],
            ),
        ] {
            assert_eq!(broken_rules(read_with(body.clone(), read)), rules, "{body}");
        }
    }

    #[test]
    fn a_profile_is_bounded() {
        let customers = |count: usize| {
            let entries = (0..count).map(|number| {
                let words = "x".repeat(200);
                (
                    format!("C-{number}"),
                    json!({ "business_description": words }),
                )
            });
            json!({ "customers": entries.collect::<serde_json::Map<String, Value>>() })
        };
        assert_eq!(broken_rules(read_with(customers(1_000), read)), [""; 0]);
        assert_eq!(
            broken_rules(read_with(customers(1_500), read)),
            ["customers: max"]
        );
    }

    #[test]
    fn two_headers_with_one_meaning_get_a_warning() {
        for (columns, expected) in [
            (json!({ "Nr": "invoice_no", "Menge": "line.quantity" }), ""),
            (
                json!({ "A": "invoice_no", "B": "Invoice_No" }),
                "A, B all mean invoice_no",
            ),
        ] {
            let form = read_with(json!({ "columns": columns }), read).unwrap();
            assert_eq!(form.warnings.len(), usize::from(!expected.is_empty()));
            assert!(
                form.warnings.concat().contains(expected),
                "{:?}",
                form.warnings
            );
        }
    }

    #[test]
    fn many_headers_with_one_meaning_are_counted() {
        let columns = (0..200).map(|number| {
            let header = format!("{number:03}{}", "x".repeat(200));
            (header, json!("invoice_no"))
        });
        let columns: serde_json::Map<String, Value> = columns.collect();
        let form = read_with(json!({ "columns": columns }), read).unwrap();
        let [warning] = form.warnings.as_slice() else {
            panic!("{:?}", form.warnings);
        };
        assert!(
            warning.contains(" and 197 more all mean invoice_no"),
            "{warning}"
        );
        assert!(warning.len() < 300, "{warning}");
    }
}
