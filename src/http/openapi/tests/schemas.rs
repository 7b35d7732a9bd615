//! The schemas of bodies: one for each name, a sentence for each property, and examples that have their fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{operations, parse_document};
use crate::http::endpoint::ApiPart;
use crate::http::openapi::conditions::CONDITIONAL_EXTENSION;
use crate::http::openapi::glossary::SENTENCES;
use crate::http::parts;

/// If two types have the same schema name, the document keeps the schema of only one of them. A response with the other
/// type then breaks generated clients.
#[test]
fn a_schema_name_has_one_schema() {
    let mut schemas = BTreeMap::new();
    for operation in parts().iter().flat_map(ApiPart::operations) {
        for (name, schema) in operation.doc.components {
            let schema = serde_json::to_value(schema).unwrap();
            let first = schemas
                .entry(name.clone())
                .or_insert_with(|| schema.clone());
            assert_eq!(*first, schema, "{name} names two schemas");
        }
    }
    assert!(schemas.len() > 50);
}

/// The contract accepts a payment status in either case and shows it in upper case.
#[test]
fn a_payment_status_may_be_written_in_either_case() {
    let document = parse_document();
    let pointer = "/components/schemas/UpdatePaymentStatusRequest/properties";
    for field in ["payment_status", "status"] {
        let words = &document.pointer(pointer).unwrap()[field]["anyOf"][0];
        let listed = [
            "pending", "paid", "rejected", "partial", "PENDING", "PAID", "REJECTED", "PARTIAL",
        ];
        let all = |name: &str| words[name].as_array().unwrap().clone();
        assert_eq!(all("enum").len(), 8);
        assert!(
            listed.iter().all(|word| all("enum").contains(&json!(word))),
            "{words}"
        );
        let names: BTreeSet<_> = all("x-enum-varnames")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names.len(), 8, "generators need names that differ");
    }
}

/// A client that is generated from the document splits a list that is too long before it sends it.
#[test]
fn a_list_in_a_request_has_a_maximum_number_of_items() {
    let document = parse_document();
    for (pointer, max) in [
        ("CreateInvoiceRequest/properties/invoice_lines", 10_000),
        (
            "CreateFullInvoiceRequest/properties/allowance_charge",
            10_000,
        ),
        ("CreateBatchRequest/properties/invoices", 1_000),
        ("MoveRunsRequest/properties/filter/properties/ids", 1_000),
    ] {
        let list = document.pointer(&format!("/components/schemas/{pointer}"));
        assert_eq!(list.unwrap()["maxItems"], json!(max), "{pointer}");
    }
    for (path, method, operation) in operations(&document) {
        let body = operation.pointer("/requestBody/content/application~1json/schema/$ref");
        let Some(reference) = body.and_then(Value::as_str) else {
            continue;
        };
        let mut open = vec![document.pointer(&reference[1..]).unwrap()];
        while let Some(value) = open.pop() {
            let kinds = value.get("type").map(Value::to_string).unwrap_or_default();
            let is_list = kinds.contains("\"array\"");
            assert!(
                !is_list || value["maxItems"].is_u64(),
                "{method} {path}: {value}"
            );
            match value {
                Value::Object(members) => open.extend(members.values()),
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
    }
}

/// Collects the properties within a schema, as the name of the object around them and their own.
fn collect_properties<'d>(
    schema: &'d Value,
    around: &str,
    found: &mut Vec<(String, String, &'d Value)>,
) {
    // The part of a schema that is not there.
    if schema.is_null() {
        return;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        found.push((around.to_owned(), name.clone(), property));
        collect_properties(property, name, found);
    }
    for part in ["items", "additionalProperties"] {
        collect_properties(&schema[part], around, found);
    }
    for parts in ["allOf", "oneOf", "anyOf"] {
        for part in schema[parts].as_array().into_iter().flatten() {
            collect_properties(part, around, found);
        }
    }
}

#[test]
fn every_operation_and_every_property_has_a_sentence_and_the_glossary_no_other() {
    let document = parse_document();
    for (path, method, operation) in operations(&document) {
        let sentence = operation["description"].as_str().unwrap_or_default();
        assert!(sentence.ends_with('.'), "{method} {path}: {sentence:?}");
    }
    let mut found = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        collect_properties(schema, name, &mut found);
    }
    assert!(found.len() > 1_000);
    let mut used = BTreeSet::new();
    for (around, name, property) in found {
        let sentence = property["description"].as_str().unwrap_or_default();
        assert!(!sentence.is_empty(), "{around}.{name}");
        let keys = [format!("{around}.{name}"), name];
        used.extend(keys.into_iter().filter(|key| SENTENCES[key] == sentence));
    }
    let told = SENTENCES.as_object().unwrap().keys();
    let unused: Vec<_> = told.filter(|key| !used.contains(*key)).collect();
    assert_eq!(unused, [""; 0], "sentences of glossary.json about nothing");
}

/// A sentence about a property names a thing. It is no question, and no answer to one.
#[test]
fn no_sentence_about_a_property_begins_like_a_question() {
    let document = parse_document();
    let mut found = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        collect_properties(schema, name, &mut found);
    }
    let first_words = [
        "how", "of", "what", "when", "where", "whether", "who", "whose", "why",
    ];
    let mut refused = BTreeSet::new();
    for (around, name, property) in found {
        let sentence = property["description"].as_str().unwrap_or_default();
        let first = sentence.split(' ').next().unwrap_or_default();
        if first_words.contains(&first.to_lowercase().as_str()) {
            refused.insert(format!("{around}.{name}: {sentence}"));
        }
    }
    assert_eq!(refused, BTreeSet::new());
}

/// Collects the fields of an example that the schema does not know, and the required fields that are missing.
fn unknown_fields(example: &Value, schema: &Value, path: &str, found: &mut Vec<String>) {
    match example {
        Value::Object(fields) => {
            for (name, value) in fields {
                let inner = match &schema["properties"][name] {
                    // A map takes any name.
                    Value::Null => &schema["additionalProperties"],
                    property => property,
                };
                if inner.is_null() {
                    found.push(format!("{path}/{name}"));
                }
                unknown_fields(value, inner, &format!("{path}/{name}"), found);
            }
            for name in schema["required"].as_array().into_iter().flatten() {
                if !fields.contains_key(name.as_str().unwrap()) {
                    found.push(format!("{path} lacks {name}"));
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                unknown_fields(item, &schema["items"], &format!("{path}/*"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn an_example_has_the_fields_of_its_form_and_no_others() {
    let document = parse_document();
    for (path, method, operation) in operations(&document) {
        let Some(body) = operation.pointer("/requestBody/content/application~1json") else {
            continue;
        };
        assert_ne!(
            body["example"],
            json!(null),
            "{method} {path} has no example"
        );
        let mut found = Vec::new();
        let schema = body["schema"]["$ref"].as_str().unwrap();
        unknown_fields(
            &body["example"],
            document.pointer(schema.trim_start_matches('#')).unwrap(),
            &format!("{method} {path}"),
            &mut found,
        );
        assert_eq!(found, [""; 0]);
    }
}

/// True if a value of this schema may be null.
fn may_be_null(schema: &Value) -> bool {
    let null = json!("null");
    match &schema["type"] {
        Value::Array(kinds) => kinds.contains(&null),
        Value::Null => schema["anyOf"]
            .as_array()
            .is_some_and(|either| either.iter().any(may_be_null)),
        kind => *kind == null,
    }
}

/// Collects the optional properties of a body that may not be null.
fn collect_never_null(schema: &Value, path: &str, found: &mut Vec<String>) {
    if schema.is_null() {
        return;
    }
    let lists = ["required", CONDITIONAL_EXTENSION].map(|list| schema[list].as_array());
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let mut listed = lists.into_iter().flatten().flatten();
        let is_required = listed.any(|one| one == name);
        if !is_required && !may_be_null(property) {
            found.push(path.clone());
        }
        collect_never_null(property, &path, found);
    }
    collect_never_null(&schema["items"], path, found);
}

/// A form reads null as if the field was left out.
#[test]
fn an_optional_field_of_a_body_may_be_null() {
    let document = parse_document();
    let mut found = Vec::new();
    for (path, method, operation) in operations(&document) {
        let pointer = "/requestBody/content/application~1json/schema/$ref";
        let Some(target) = operation.pointer(pointer).and_then(Value::as_str) else {
            continue;
        };
        let schema = document.pointer(target.trim_start_matches('#')).unwrap();
        collect_never_null(schema, &format!("{method} {path}"), &mut found);
    }
    assert_eq!(found, [""; 0]);
}
