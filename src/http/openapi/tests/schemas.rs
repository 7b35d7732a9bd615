//! The schemas of bodies: one for each name, a sentence for each property, and examples that have their fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{operations, parse_document, without_references};
use crate::http::openapi::conditions::CONDITIONAL_EXTENSION;
use crate::http::openapi::glossary::SENTENCES;
use crate::http::openapi::schema::{FAILURE_SCHEMA_NAME, PROBLEM_SCHEMA_NAME};
use crate::http::parts;
use crate::http::paths::ApiPart;

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

/// Returns the schemas of answers, by name. The messages of events and the two formats of failures are not among them,
/// and neither are the schemas of requests.
fn answer_schemas(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let schemas = document["components"]["schemas"].as_object().unwrap();
    schemas.iter().filter(|(name, _)| {
        let is_message = name.starts_with("Event") && *name != "Event";
        let is_failure = [FAILURE_SCHEMA_NAME, PROBLEM_SCHEMA_NAME].contains(&name.as_str());
        let is_request = name.ends_with("Request") || name.ends_with("Input");
        !is_request && !is_message && !is_failure
    })
}

/// Returns the objects of a schema: itself, and the parts of which it consists.
fn objects(schema: &Value) -> impl Iterator<Item = &Value> {
    let parts = schema["allOf"].as_array().into_iter().flatten();
    std::iter::once(schema).chain(parts)
}

/// A generated client then knows two cases of a member: a value or null, or a value or nothing.
#[test]
fn a_member_of_an_answer_that_may_be_null_is_always_there() {
    let document = parse_document();
    let mut optional = Vec::new();
    for (name, schema) in answer_schemas(&document) {
        for object in objects(schema) {
            let required = object["required"].as_array();
            for (member, property) in object["properties"].as_object().into_iter().flatten() {
                let is_required = required.is_some_and(|names| names.contains(&json!(member)));
                if !is_required && may_be_null(property) {
                    optional.push(format!("{name}.{member}"));
                }
            }
        }
    }
    assert_eq!(optional, [""; 0]);
    let invoice = &document["components"]["schemas"]["Invoice"];
    let required = invoice["required"].as_array().unwrap();
    assert!(required.contains(&json!("due_date")));
    assert!(may_be_null(&invoice["properties"]["due_date"]));
    let account = &document["components"]["schemas"]["Account"];
    let required = account["required"].as_array().unwrap();
    assert!(!required.contains(&json!("role")));
    assert!(!may_be_null(&account["properties"]["role"]));
}

/// In the clients that openapi-python-client generates, a list in a schema of its own name has the type of the schema.
#[test]
fn no_list_is_named_like_the_schema_that_has_it() {
    let document = parse_document();
    for (name, schema) in answer_schemas(&document) {
        for object in objects(schema) {
            for (member, property) in object["properties"].as_object().into_iter().flatten() {
                let is_named_alike = member.replace('_', "") == name.to_lowercase();
                assert!(!is_named_alike || property["type"] == "string", "{name}");
            }
        }
    }
}

/// Without the type of a file, the types of a generated client lose the JSON of the same answer, too.
#[test]
fn a_file_of_a_list_is_a_text_or_bytes() {
    let document = parse_document();
    for path in [
        "/v1/tax-payers/invoices",
        "/v1/tax-payers/invoices/batches/{batch_no}",
    ] {
        let content = &document["paths"][path]["get"]["responses"]["200"]["content"];
        for (media_type, format) in [
            ("text/csv", Value::Null),
            ("application/x-ndjson", Value::Null),
            (
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
                json!("binary"),
            ),
        ] {
            let schema = &content[media_type]["schema"];
            assert_eq!(schema["type"], "string", "{path} {media_type}");
            assert_eq!(schema["format"], format, "{path} {media_type}");
        }
    }
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
        ("RunFilterInput/properties/ids", 1_000),
    ] {
        let list = document.pointer(&format!("/components/schemas/{pointer}"));
        assert_eq!(list.unwrap()["maxItems"], json!(max), "{pointer}");
    }
    for (path, method, operation) in operations(&document) {
        let body = operation.pointer("/requestBody/content/application~1json/schema/$ref");
        let Some(reference) = body.and_then(Value::as_str) else {
            continue;
        };
        let schema = document.pointer(&reference[1..]).unwrap();
        let schema = without_references(&document, schema);
        let mut unvisited = vec![&schema];
        while let Some(value) = unvisited.pop() {
            let kinds = value.get("type").map(Value::to_string).unwrap_or_default();
            let is_list = kinds.contains("\"array\"");
            assert!(
                !is_list || value["maxItems"].is_u64(),
                "{method} {path}: {value}"
            );
            match value {
                Value::Object(members) => unvisited.extend(members.values()),
                Value::Array(items) => unvisited.extend(items),
                _ => {}
            }
        }
    }
}

/// Collects the properties of a schema, each with the name of the enclosing object and its own name.
fn collect_properties<'d>(
    schema: &'d Value,
    enclosing_name: &str,
    properties: &mut Vec<(String, String, &'d Value)>,
) {
    // This part of the schema does not exist.
    if schema.is_null() {
        return;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        properties.push((enclosing_name.to_owned(), name.clone(), property));
        collect_properties(property, name, properties);
    }
    for part in ["items", "additionalProperties"] {
        collect_properties(&schema[part], enclosing_name, properties);
    }
    for parts in ["allOf", "oneOf", "anyOf"] {
        for part in schema[parts].as_array().into_iter().flatten() {
            collect_properties(part, enclosing_name, properties);
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
    let mut properties = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        collect_properties(schema, name, &mut properties);
    }
    assert!(properties.len() > 1_000);
    let mut used = BTreeSet::new();
    for (enclosing_name, name, property) in properties {
        let sentence = property["description"].as_str().unwrap_or_default();
        assert!(!sentence.is_empty(), "{enclosing_name}.{name}");
        let keys = [format!("{enclosing_name}.{name}"), name];
        used.extend(keys.into_iter().filter(|key| SENTENCES[key] == sentence));
    }
    let glossary_keys = SENTENCES.as_object().unwrap().keys();
    let unused: Vec<_> = glossary_keys.filter(|key| !used.contains(*key)).collect();
    assert_eq!(unused, [""; 0], "sentences of glossary.json about nothing");
}

/// The description of a property is neither a question nor the answer to a question.
#[test]
fn no_sentence_about_a_property_begins_like_a_question() {
    let document = parse_document();
    let mut properties = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        collect_properties(schema, name, &mut properties);
    }
    let first_words = [
        "how", "of", "what", "when", "where", "whether", "who", "whose", "why",
    ];
    let mut refused = BTreeSet::new();
    for (enclosing_name, name, property) in properties {
        let sentence = property["description"].as_str().unwrap_or_default();
        let first = sentence.split(' ').next().unwrap_or_default();
        if first_words.contains(&first.to_lowercase().as_str()) {
            refused.insert(format!("{enclosing_name}.{name}: {sentence}"));
        }
    }
    assert_eq!(refused, BTreeSet::new());
}

/// Collects the fields of an example that the schema does not have, and the required fields that are missing.
fn collect_unknown_fields(example: &Value, schema: &Value, path: &str, faults: &mut Vec<String>) {
    // An object that may be null is a choice.
    let schema = schema.pointer("/oneOf/0").unwrap_or(schema);
    match example {
        Value::Object(fields) => {
            for (name, value) in fields {
                let inner = match &schema["properties"][name] {
                    // A map takes any name.
                    Value::Null => &schema["additionalProperties"],
                    property => property,
                };
                if inner.is_null() {
                    faults.push(format!("{path}/{name}"));
                }
                collect_unknown_fields(value, inner, &format!("{path}/{name}"), faults);
            }
            for name in schema["required"].as_array().into_iter().flatten() {
                if !fields.contains_key(name.as_str().unwrap()) {
                    faults.push(format!("{path} lacks {name}"));
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_unknown_fields(item, &schema["items"], &format!("{path}/*"), faults);
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
        let mut faults = Vec::new();
        collect_unknown_fields(
            &body["example"],
            &without_references(&document, &body["schema"]),
            &format!("{method} {path}"),
            &mut faults,
        );
        assert_eq!(faults, [""; 0]);
    }
}

/// True if a value of this schema may be null.
fn may_be_null(schema: &Value) -> bool {
    let null = json!("null");
    match &schema["type"] {
        Value::Array(kinds) => kinds.contains(&null),
        Value::Null => {
            let mut choices = ["anyOf", "oneOf"]
                .map(|name| schema[name].as_array())
                .into_iter();
            choices.any(|either| either.is_some_and(|all| all.iter().any(may_be_null)))
        }
        kind => *kind == null,
    }
}

/// Collects the optional properties of a body that may not be null.
fn collect_never_null(schema: &Value, path: &str, never_null: &mut Vec<String>) {
    if schema.is_null() {
        return;
    }
    let schema = schema.pointer("/oneOf/0").unwrap_or(schema);
    let lists = ["required", CONDITIONAL_EXTENSION].map(|list| schema[list].as_array());
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let mut listed = lists.into_iter().flatten().flatten();
        let is_required = listed.any(|one| one == name);
        if !is_required && !may_be_null(property) {
            never_null.push(path.clone());
        }
        collect_never_null(property, &path, never_null);
    }
    collect_never_null(&schema["items"], path, never_null);
}

/// A form reads null as if the field was left out.
#[test]
fn an_optional_field_of_a_body_may_be_null() {
    let document = parse_document();
    let mut never_null = Vec::new();
    for (path, method, operation) in operations(&document) {
        let pointer = "/requestBody/content/application~1json/schema/$ref";
        let Some(target) = operation.pointer(pointer).and_then(Value::as_str) else {
            continue;
        };
        let schema = document.pointer(target.trim_start_matches('#')).unwrap();
        let schema = without_references(&document, schema);
        collect_never_null(&schema, &format!("{method} {path}"), &mut never_null);
    }
    assert_eq!(never_null, [""; 0]);
}
