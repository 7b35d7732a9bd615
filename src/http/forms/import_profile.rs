//! The profile of imports: what a taxpayer answers in advance for its files.

use crate::domain::import::profile::{ImportProfile, PROFILE_BYTES_MAX, answers, is_answer};
use crate::domain::import::table_documents;
use crate::domain::invoice::table_columns::{INVOICE_COLUMNS, LINE_COLUMNS, LINE_PREFIX};
use crate::domain::kernel::field_rule::FieldRule;
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::reader::Reader;

/// The maximum length of a unit of our own, in characters.
const UNIT_CHARS_MAX: usize = 3;

/// Reads a profile. A member that is left out is empty.
#[expect(
    clippy::unnecessary_wraps,
    reason = "forms are read alike, and this one requires nothing"
)]
pub(crate) fn read(reader: &mut Reader<'_>) -> Option<ImportProfile> {
    let defaults = reader
        .optional("defaults")
        .texts_by_name(TEXT_CHARS_MAX, check_answer);
    let customers = reader
        .optional("customers")
        .texts_by_names(TEXT_CHARS_MAX, check_answer);
    let columns = reader
        .optional("columns")
        .texts_by_name(TEXT_CHARS_MAX, check_column);
    let units = reader
        .optional("units")
        .texts_by_name(TEXT_CHARS_MAX, check_unit);
    let profile = ImportProfile {
        defaults: defaults.unwrap_or_default(),
        customers: customers.unwrap_or_default(),
        columns: columns.unwrap_or_default(),
        units: units.unwrap_or_default(),
    };
    let size = serde_json::to_string(&profile).map_or(usize::MAX, |text| text.len());
    if size > PROFILE_BYTES_MAX {
        let sentence = format!("makes the profile larger than {PROFILE_BYTES_MAX} bytes");
        reader.report_fault("customers", FieldRule::other("max", sentence));
    }
    Some(profile)
}

fn check_answer(name: &str, _: &str) -> Result<(), FieldRule> {
    if is_answer(name) {
        Ok(())
    } else {
        let sentence = format!("is no field of the profile; the fields are {}", answers());
        Err(FieldRule::other("one_of", sentence))
    }
}

fn check_column(_: &str, field: &str) -> Result<(), FieldRule> {
    if table_documents::is_field(field) {
        return Ok(());
    }
    let lines = LINE_COLUMNS
        .iter()
        .map(|name| format!("{LINE_PREFIX}{name}"));
    let names = INVOICE_COLUMNS.iter().map(|name| (*name).to_owned());
    let names: Vec<_> = names.chain(lines).collect();
    Err(FieldRule::OneOf(names.join(", ")))
}

fn check_unit(_: &str, unit: &str) -> Result<(), FieldRule> {
    if unit.chars().count() <= UNIT_CHARS_MAX {
        Ok(())
    } else {
        Err(FieldRule::MaxChars(UNIT_CHARS_MAX))
    }
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
        ] {
            assert_eq!(broken_rules(read_with(body.clone(), read)), rules, "{body}");
        }
    }

    #[test]
    fn a_profile_is_bounded() {
        let customers = |count: usize| {
            let entries = (0..count)
                .map(|number| (format!("C-{number}"), json!({ "email": "x".repeat(200) })));
            json!({ "customers": entries.collect::<serde_json::Map<String, Value>>() })
        };
        assert_eq!(broken_rules(read_with(customers(1_000), read)), [""; 0]);
        assert_eq!(
            broken_rules(read_with(customers(1_500), read)),
            ["customers: max"]
        );
    }
}
