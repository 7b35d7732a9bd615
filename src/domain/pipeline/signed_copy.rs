//! Compares the authority's signed copy of an invoice with the document that was sent. Only the fields that were sent
//! are compared. Absent, null and empty values are equal. The order of a list is ignored, except in a very long list.

use jiff::civil::Date;
use serde_json::{Map, Number, Value};

use crate::domain::kernel::digest;
use crate::domain::pipeline::Run;
use crate::domain::pipeline::authority_document::{AuthorityDocument, parse_date_prefix};

/// The message of a run that is refused because other content was signed under its IRN.
pub const SIGNED_OTHERWISE_MESSAGE: &str = "the authority has signed another document under this IRN, so this one was not \
    signed and will not be: issue it under another invoice number, or download the IRN to see what was signed";

/// The beginning of the message of a run that is paused because the authority's signed copy cannot be read.
pub const UNREADABLE_COPY_MESSAGE: &str =
    "the authority has signed a document under this IRN that cannot be read";

/// The only field that is not compared, because its value changes over time.
const CHANGING_FIELD: &str = "payment_status";
/// The names of identifiers that are compared ignoring case.
const CASELESS_FIELDS: [&str; 2] = ["business_id", "irn"];
/// The longest list that is compared ignoring the order. In a longer list, comparing each entry with each other one
/// would take too long.
const UNORDERED_ENTRIES_MAX: usize = 256;

/// True if every field of the sent document has an equal value in the authority's copy.
pub fn has_sent_values(copy: &Value, sent: &Value) -> bool {
    let (Value::Object(copy), Value::Object(sent)) = (copy, sent) else {
        return false;
    };
    let copy = lasting_fields(copy);
    let sent = without_empty(&lasting_fields(sent));
    digest::document_digest(&reduce_to_sent(&copy, &sent)) == digest::document_digest(&sent)
}

/// Returns the fields that do not change over time, with caseless identifiers in lower case.
fn lasting_fields(fields: &Map<String, Value>) -> Value {
    let lasting = fields.iter().filter(|(name, _)| *name != CHANGING_FIELD);
    let lasting = lasting.map(|(name, value)| (name.clone(), without_case(name, value)));
    Value::Object(lasting.collect())
}

/// Compares the authority's dates with those of the document. Returns false if a date differs, and true if all are
/// equal. A missing or malformed due date is ignored. `None` if an issue date is missing or malformed and the due dates
/// do not differ.
pub fn has_sent_dates(
    sent: &AuthorityDocument,
    issue_date: Option<&str>,
    due_date: Option<&str>,
) -> Option<bool> {
    match (
        is_same_date(issue_date, sent.issue_date),
        is_same_date(due_date, sent.due_date),
    ) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (issued, _) => issued,
    }
}

fn is_same_date(reported: Option<&str>, sent: Option<Date>) -> Option<bool> {
    Some(reported.and_then(parse_date_prefix)? == sent?)
}

/// True if the run ended because another document was signed under its IRN.
pub fn has_other_signed_document(run: &Run) -> bool {
    run.last_error.as_deref() == Some(SIGNED_OTHERWISE_MESSAGE)
}

/// True if the run stopped because the authority's signed copy could not be read.
pub fn has_unreadable_copy(run: &Run) -> bool {
    run.last_error
        .as_deref()
        .is_some_and(|error| error.starts_with(UNREADABLE_COPY_MESSAGE))
}

/// Returns the value of a field in `CASELESS_FIELDS` in lower case, and any other value unchanged.
fn without_case(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if CASELESS_FIELDS.contains(&name) => text.to_lowercase().into(),
        other => other.clone(),
    }
}

/// Returns the document without empty values.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let filled = fields
                .iter()
                .map(|(name, value)| (name.clone(), without_empty(value)));
            Value::Object(filled.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(entries) => entries.iter().map(without_empty).collect(),
        Value::String(text) => text.trim().into(),
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the copy with only the fields that were sent.
fn reduce_to_sent(copy: &Value, sent: &Value) -> Value {
    match (copy, sent) {
        (Value::Object(copy), Value::Object(sent)) => {
            let kept = sent.iter().filter_map(|(name, sent)| {
                Some((name.clone(), reduce_to_sent(copy.get(name)?, sent)))
            });
            Value::Object(kept.collect())
        }
        (Value::Array(copy), Value::Array(sent)) if copy.len() == sent.len() => {
            pair_entries(copy, sent)
        }
        (Value::String(copy), Value::Number(_)) => to_number(copy),
        (Value::String(copy), Value::String(_)) => copy.trim().into(),
        (copy, _) => copy.clone(),
    }
}

/// Puts the entries of `copy` into the order of `sent`. An entry of `sent` without an equal entry in `copy` is paired
/// with the first unused entry, so that the comparison then finds a difference.
fn pair_entries(copy: &[Value], sent: &[Value]) -> Value {
    let mut left: Vec<&Value> = copy.iter().collect();
    let mut entries = Vec::with_capacity(sent.len());
    for entry in sent {
        let searched = if sent.len() > UNORDERED_ENTRIES_MAX {
            1
        } else {
            left.len()
        };
        let found = left[..searched]
            .iter()
            .position(|candidate| is_same(&reduce_to_sent(candidate, entry), entry));
        let candidate = left.remove(found.unwrap_or_default());
        entries.push(reduce_to_sent(candidate, entry));
    }
    Value::Array(entries)
}

fn is_same(copy: &Value, sent: &Value) -> bool {
    copy == sent || digest::document_digest(copy) == digest::document_digest(sent)
}

/// Converts a text that spells a number to a number. It is used if the sent document has a number in this place.
fn to_number(copy: &str) -> Value {
    copy.trim()
        .parse::<Number>()
        .map_or_else(|_| copy.into(), Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent_document() -> Value {
        json!({
            "irn": "INV1-94AD90FB-20260115", "business_id": "AAAAAAAA-1111-4111-8111-000000000001",
            "issue_date": "2026-01-15", "payment_status": "PENDING",
            "legal_monetary_total": { "payable_amount": 1075 },
            "invoice_line": [
                { "hsn_code": "8471.30", "line_extension_amount": 400 },
                { "hsn_code": "8528.52", "line_extension_amount": 600, "item": { "name": "Monitor" } },
            ],
        })
    }

    fn changed_document(pointer: &str, value: Value) -> Value {
        let mut copy = sent_document();
        *copy.pointer_mut(pointer).unwrap() = value;
        copy
    }

    #[test]
    fn additions_order_and_spelling_by_the_authority_make_no_difference() {
        let number = |digits: &str| strict_json::from_trusted::<Value>(digits).unwrap();
        let mut more = sent_document();
        more["sync_date"] = json!("2026-01-16");
        more["invoice_line"][0]["id"] = json!(1);
        more["note"] = Value::Null;
        let mut turned = sent_document();
        turned["invoice_line"].as_array_mut().unwrap().reverse();
        for copy in [
            sent_document(),
            more,
            turned,
            changed_document("/payment_status", json!("PAID")),
            changed_document(
                "/business_id",
                json!("aaaaaaaa-1111-4111-8111-000000000001"),
            ),
            changed_document("/legal_monetary_total/payable_amount", number("1.0750e3")),
            changed_document("/legal_monetary_total/payable_amount", json!("1075.00")),
            changed_document("/invoice_line/1/item/name", json!(" Monitor ")),
        ] {
            assert!(has_sent_values(&copy, &sent_document()), "{copy}");
        }
    }

    #[test]
    fn a_very_long_list_is_compared_in_its_order() {
        let lines = |numbers: Vec<usize>| json!({ "invoice_line": numbers });
        let (short, long): (Vec<_>, Vec<_>) = (
            (0..UNORDERED_ENTRIES_MAX).collect(),
            (0..20 * UNORDERED_ENTRIES_MAX).collect(),
        );
        let turned = |numbers: &[usize]| lines(numbers.iter().rev().copied().collect());
        assert!(has_sent_values(&turned(&short), &lines(short.clone())));
        assert!(!has_sent_values(&turned(&long), &lines(long.clone())));
        assert!(has_sent_values(&lines(long.clone()), &lines(long)));
    }

    #[test]
    fn absent_null_and_empty_are_one() {
        for empty in [
            Value::Null,
            json!(""),
            json!(" "),
            json!([]),
            json!({}),
            json!({ "a": null }),
        ] {
            let mut other = sent_document();
            other["note"] = empty;
            assert!(has_sent_values(&sent_document(), &other), "{other}");
            assert!(has_sent_values(&other, &sent_document()), "{other}");
        }
    }

    #[test]
    fn other_content_is_not_the_same() {
        let mut shorter = sent_document();
        shorter["invoice_line"].as_array_mut().unwrap().pop();
        let mut longer = sent_document();
        longer["invoice_line"]
            .as_array_mut()
            .unwrap()
            .push(sent_document()["invoice_line"][0].clone());
        let mut twice = sent_document();
        twice["invoice_line"][0] = sent_document()["invoice_line"][1].clone();
        let mut without = sent_document();
        without.as_object_mut().unwrap().remove("issue_date");
        for copy in [
            shorter,
            longer,
            twice,
            without,
            changed_document("/issue_date", json!("2026-01-16")),
            changed_document("/legal_monetary_total/payable_amount", json!("1075.01")),
            changed_document("/legal_monetary_total/payable_amount", json!("much")),
            changed_document("/legal_monetary_total", json!(1075)),
            changed_document("/invoice_line/1/item/name", json!("monitor")),
            changed_document("/invoice_line/1/line_extension_amount", json!(600.01)),
            changed_document("/irn", json!("INV2-94AD90FB-20260115")),
            json!([]),
            Value::Null,
        ] {
            assert!(!has_sent_values(&copy, &sent_document()), "{copy}");
        }
    }

    #[test]
    fn dates_agree_differ_or_say_nothing() {
        let document = AuthorityDocument::from_json(
            json!({ "issue_date": "2026-01-15", "due_date": "2026-02-15" }),
        );
        for (issue_date, due_date, expected) in [
            (Some("2026-01-15"), Some("2026-02-15"), Some(true)),
            (Some("2026-01-15T00:00:00Z"), None, Some(true)),
            (Some("2026-01-15"), Some("soon"), Some(true)),
            (Some("2026-01-16"), Some("2026-02-15"), Some(false)),
            (Some("2026-01-15"), Some("2026-02-16"), Some(false)),
            (None, Some("2026-02-16"), Some(false)),
            (None, Some("2026-02-15"), None),
            (Some("15.01.2026"), None, None),
            (None, None, None),
        ] {
            assert_eq!(
                has_sent_dates(&document, issue_date, due_date),
                expected,
                "{issue_date:?} {due_date:?}"
            );
        }
        assert_eq!(
            has_sent_dates(
                &AuthorityDocument::from_json(json!({ "issue_date": "2026-01-15" })),
                Some("2026-01-15"),
                Some("2027-01-01")
            ),
            Some(true)
        );
    }
}
