//! Create Invoices (Bulk) (spec.md). Each invoice is read independently, with the rules of Create Invoice (Standard),
//! except that the customer's tax number is always optional and a quantity is at least 1.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::domain::invoice::batch::{BatchCandidate, INVOICES_MAX};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::invisible::is_unprintable;
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::reader::Reader;
use crate::http::forms::standard_invoice;

/// The maximum number of invoices whose warnings are shown. Further invoices with warnings are only counted.
const WARNED_INVOICES_MAX: usize = 10;
/// The maximum length of all warnings of one invoice together, in characters. Longer text is cut, because the warnings
/// of all invoices must fit in the response headers.
const WARNING_CHARS_MAX: usize = 200;

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Vec<BatchCandidate>> {
    if !reader.has("invoices") && reader.has("invoice_no") {
        let sentence = "is required; wrap the invoice: {\"invoices\":[…]}";
        reader.report_fault("invoices", FieldRule::other("required", sentence));
        return None;
    }
    let items = reader
        .required("invoices")
        .independent_objects(INVOICES_MAX, standard_invoice::read_in_batch)?;
    let mut candidates = Vec::with_capacity(items.len());
    for (item, result) in items {
        let invoice_no = item.as_object().and_then(invoice_no);
        candidates.push(match result {
            Ok(form) => BatchCandidate {
                invoice_no,
                draft: Ok(Box::new(form.value.draft)),
                warnings: form.warnings,
            },
            Err(faults) => BatchCandidate {
                invoice_no,
                draft: Err(faults),
                warnings: Vec::new(),
            },
        });
    }
    add_invoice_warnings(reader, &candidates);
    Some(candidates)
}

/// Refuses the items whose JSON has a duplicate or reserved key. An item with two `invoice_no` keys gets no invoice
/// number, because either of the two could be meant.
pub(crate) fn refuse_items_with_key_faults(
    candidates: &mut [BatchCandidate],
    key_faults: BTreeMap<usize, Faults>,
) {
    for (index, faults) in key_faults {
        if let Some(candidate) = candidates.get_mut(index) {
            if faults.iter().any(|fault| fault.path == "invoice_no") {
                candidate.invoice_no = None;
            }
            candidate.draft = Err(faults);
            candidate.warnings = Vec::new();
        }
    }
}

/// Returns the item's trimmed invoice number; `None` if it is absent, blank, too long or has control characters.
pub(crate) fn invoice_no(item: &Map<String, Value>) -> Option<String> {
    let text = item.get("invoice_no")?.as_str()?.trim();
    let is_plain = !text.is_empty() && !text.chars().any(is_unprintable);
    (is_plain && text.chars().count() <= TEXT_CHARS_MAX).then(|| text.to_owned())
}

/// Copies the warnings of the first `WARNED_INVOICES_MAX` invoices with warnings to the response. The outcome of the
/// batch has the warnings of all invoices.
fn add_invoice_warnings(reader: &Reader<'_>, candidates: &[BatchCandidate]) {
    let mut warned_count = 0;
    for (index, candidate) in candidates.iter().enumerate() {
        if candidate.warnings.is_empty() {
            continue;
        }
        warned_count += 1;
        if warned_count <= WARNED_INVOICES_MAX {
            let warning = format!("invoices.{index}: {}", candidate.warnings.join("; "));
            reader.warn(warning.chars().take(WARNING_CHARS_MAX).collect::<String>());
        }
    }
    let further_count = warned_count.saturating_sub(WARNED_INVOICES_MAX);
    if further_count > 0 {
        reader.warn(format!(
            "{further_count} more of the invoices have warnings: the batch has those of each"
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::{
        INEXACT, broken_rules, number, numbers, read as read_with, standard_invoice, texts,
        with_member,
    };

    const PRICE: &str = "/invoice_lines/0/unit_price";

    /// Reads a batch that consists of this one invoice. Returns the faults, each as `path: rule`.
    fn faults(item: &Value) -> Vec<String> {
        let form = read_with(json!({ "invoices": [item] }), read).unwrap();
        match &form.value[0].draft {
            Ok(_) => Vec::new(),
            Err(faults) => faults
                .iter()
                .map(|fault| format!("{}: {}", fault.path, fault.rule()))
                .collect(),
        }
    }

    #[test]
    fn a_batch_has_from_one_to_a_thousand_invoices() {
        let rules = |body| broken_rules(read_with(body, read));
        assert_eq!(rules(json!({})), ["invoices: required"]);
        assert_eq!(rules(json!({ "invoices": null })), ["invoices: required"]);
        let single = read_with(standard_invoice(), read).unwrap_err();
        assert_eq!(
            single.summary(),
            "The invoices field is required; wrap the invoice: {\"invoices\":[…]}."
        );
        for odd in [json!({}), json!("x"), json!(1)] {
            assert_eq!(rules(json!({ "invoices": odd })), ["invoices: type"]);
        }
        assert_eq!(rules(json!({ "invoices": [] })), ["invoices: min"]);
        let batch_with_items = |count| json!({ "invoices": vec![Value::Null; count] });
        assert_eq!(rules(batch_with_items(INVOICES_MAX)), [""; 0]);
        assert_eq!(
            rules(batch_with_items(INVOICES_MAX + 1)),
            ["invoices: batch_too_large"]
        );
    }

    #[test]
    fn an_item_differs_from_a_standard_invoice_in_two_rules() {
        let item = standard_invoice();
        assert_eq!(faults(&item), [""; 0]);
        for category in ["B2B", "B2G", "B2C"] {
            let body = with_member(&item, "/invoice_category", Some(json!(category)));
            assert_eq!(
                faults(&with_member(&body, "/customer/tin", None)),
                [""; 0],
                "{category}"
            );
            let faults_without_description =
                faults(&with_member(&body, "/customer/business_description", None));
            let expected: &[&str] = if category == "B2C" {
                &[]
            } else {
                &["customer.business_description: required"]
            };
            assert_eq!(faults_without_description, expected, "{category}");
        }
        let quantity = |digits: &str| {
            faults(&with_member(
                &item,
                "/invoice_lines/0/quantity",
                Some(number(digits)),
            ))
        };
        assert_eq!(quantity("1"), [""; 0]);
        assert_eq!(quantity("1.000001"), [""; 0]);
        let with_short_description =
            with_member(&item, "/customer/business_description", Some(json!("Shop")));
        assert_eq!(
            faults(&with_short_description),
            ["customer.business_description: min"]
        );
        for digits in ["0.999999", "0", "-1"] {
            assert_eq!(
                quantity(digits),
                ["invoice_lines.0.quantity: min"],
                "{digits}"
            );
        }
        assert_eq!(
            faults(&with_member(&item, "/currency", None)),
            ["currency: required"]
        );
    }

    #[test]
    fn every_required_field_of_an_item_is_required() {
        for path in [
            "invoice_no",
            "invoice_category",
            "invoice_date",
            "due_date",
            "currency",
            "customer",
            "customer.no",
            "customer.name",
            "customer.email",
            "customer.address_street_name",
            "customer.address_city",
            "customer.address_state",
            "customer.address_postal_code",
            "customer.address_country",
            "invoice_lines",
            "invoice_lines.0.item_name",
            "invoice_lines.0.item_no",
            "invoice_lines.0.item_type",
            "invoice_lines.0.unit_price",
            "invoice_lines.0.quantity",
            "invoice_lines.0.price_unit",
            "invoice_lines.0.tax_category",
        ] {
            let pointer = format!("/{}", path.replace('.', "/"));
            let found = faults(&with_member(&standard_invoice(), &pointer, None));
            assert_eq!(found, [format!("{path}: required")]);
        }
    }

    #[test]
    fn an_item_that_is_no_invoice_has_the_fault_of_its_field() {
        for odd in [
            json!(null),
            json!(7),
            json!("x"),
            json!([]),
            json!([[{}]]),
            json!(true),
        ] {
            assert_eq!(faults(&odd), ["invoice: type"], "{odd}");
        }
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        for (pointer, values, rule) in [
            ("/invoice_no", vec![json!({ "a": [1] })], "invoice_no: type"),
            (
                "/invoice_no",
                texts(&["A\u{0}B"]),
                "invoice_no: control_characters",
            ),
            (
                "/invoice_no",
                vec![json!("x".repeat(256))],
                "invoice_no: max",
            ),
            ("/customer", vec![json!([1, 2])], "customer: type"),
            ("/customer/name", vec![deep.clone()], "customer.name: type"),
            ("/invoice_lines", vec![deep], "invoice_lines.0: type"),
            (
                "/invoice_lines",
                vec![json!({ "0": {} })],
                "invoice_lines: type",
            ),
            (
                "/invoice_date",
                texts(&["0000-00-00", "99999-01-01"]),
                "invoice_date: date",
            ),
            (
                PRICE,
                numbers(&INEXACT),
                "invoice_lines.0.unit_price: digits",
            ),
            (
                PRICE,
                numbers(&["-0.01"]),
                "invoice_lines.0.unit_price: min",
            ),
            (PRICE, texts(&["NaN"]), "invoice_lines.0.unit_price: type"),
        ] {
            for value in values {
                let found = faults(&with_member(
                    &standard_invoice(),
                    pointer,
                    Some(value.clone()),
                ));
                assert_eq!(found, [rule], "{value}");
            }
        }
    }

    #[test]
    fn each_item_is_checked_alone() {
        let bad = with_member(&standard_invoice(), "/due_date", None);
        let body =
            json!({ "invoices": [standard_invoice(), 7, bad, [], null, "x", { "invoice_no": 7 }] });
        let form = read_with(body, read).unwrap();
        let is_valid: Vec<_> = form
            .value
            .iter()
            .map(|candidate| candidate.draft.is_ok())
            .collect();
        assert_eq!(is_valid, [true, false, false, false, false, false, false]);
        let numbers: Vec<_> = form
            .value
            .iter()
            .map(|candidate| candidate.invoice_no.as_deref())
            .collect();
        assert_eq!(
            numbers,
            [Some("INV001"), None, Some("INV001"), None, None, None, None]
        );
        let rules = |index: usize| -> Vec<String> {
            let faults = form.value[index].draft.as_ref().unwrap_err();
            faults
                .iter()
                .map(|fault| format!("{}: {}", fault.path, fault.rule()))
                .collect()
        };
        assert_eq!(
            (rules(1), rules(2)),
            (
                vec!["invoice: type".to_owned()],
                vec!["due_date: required".to_owned()]
            )
        );
    }

    #[test]
    fn the_faults_of_an_item_are_few_however_odd_it_is() {
        let lines: Vec<_> = (0..5_000).map(|_| json!({})).collect();
        let item_faults = faults(&with_member(
            &standard_invoice(),
            "/invoice_lines",
            Some(json!(lines)),
        ));
        assert_eq!(
            item_faults.len(),
            crate::domain::invoice::batch::ITEM_FAULTS_MAX
        );
    }

    #[test]
    fn an_odd_number_is_not_shown_again() {
        for odd in [
            json!("x".repeat(256)),
            json!("a\u{0}b"),
            json!("  "),
            json!(["x"]),
        ] {
            let item = json!({ "invoice_no": odd });
            assert_eq!(invoice_no(item.as_object().unwrap()), None);
        }
        let item = json!({ "invoice_no": " A\u{202e}1 " });
        assert_eq!(
            invoice_no(item.as_object().unwrap()).as_deref(),
            Some("A\u{202e}1")
        );
    }

    #[test]
    fn warnings_name_their_invoice_and_are_few() {
        let odd = with_member(&standard_invoice(), "/colour", Some(json!("red")));
        let odd = with_member(&odd, &format!("/{}", "n".repeat(99)), Some(json!(1)));
        let odd = with_member(&odd, &format!("/{}", "m".repeat(99)), Some(json!(1)));
        let form = read_with(json!({ "invoices": vec![odd; 13], "shade": 1 }), read).unwrap();
        assert_eq!(form.warnings.len(), WARNED_INVOICES_MAX + 2);
        assert!(
            form.warnings[0].starts_with("invoices.0: unknown field: colour, "),
            "{:?}",
            form.warnings
        );
        assert!(
            form.warnings
                .iter()
                .all(|warning| warning.len() <= WARNING_CHARS_MAX)
        );
        assert_eq!(
            form.warnings[WARNED_INVOICES_MAX],
            "3 more of the invoices have warnings: the batch has those of each"
        );
        assert!(
            form.value
                .iter()
                .all(|candidate| !candidate.warnings.is_empty())
        );
        assert_eq!(
            form.warnings[WARNED_INVOICES_MAX + 1],
            "unknown field: shade"
        );
    }
}
