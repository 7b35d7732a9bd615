//! Tests that the API document matches the route table, and that the examples match the forms.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::http::endpoint::Part;
use crate::http::{openapi_document, parts, table};

/// The routes of the page that shows the API document to people. The document does not describe them.
const PAGES: [&str; 3] = ["/", "/docs", "/docs/{file:.*}"];

fn parse_document() -> Value {
    strict_json::from_trusted(openapi_document()).unwrap()
}

fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().iter();
            methods.map(move |(method, operation)| (path.clone(), method.to_uppercase(), operation))
        })
        .collect()
}

#[test]
fn every_route_stands_in_the_document_and_nothing_else() {
    let document = parse_document();
    let told: BTreeSet<_> = operations(&document)
        .into_iter()
        .map(|(path, method, _)| format!("{method} {path}"))
        .collect();
    let paths = table();
    let routed: BTreeSet<_> = paths
        .iter()
        .filter(|path| !PAGES.contains(&path.pattern))
        .flat_map(|path| path.allowed.iter().map(|method| (method, path.pattern)))
        .filter(|(method, _)| method.as_str() != "HEAD")
        .map(|(method, path)| format!("{method} {path}"))
        .collect();
    assert_eq!(
        routed.difference(&told).collect::<Vec<_>>(),
        [""; 0],
        "routes that are not told"
    );
    assert_eq!(
        told.difference(&routed).collect::<Vec<_>>(),
        [""; 0],
        "operations without a route"
    );
}

#[test]
fn every_magic_word_is_told() {
    let document = parse_document();
    let told = document["info"]["description"].as_str().unwrap();
    for known in sandbox::MAGIC_WORDS {
        assert!(
            told.contains(&format!("| `{}` | {} |", known.word, known.happens)),
            "{}",
            known.word
        );
    }
}

#[test]
fn an_operation_has_one_name_a_key_and_its_failures() {
    let document = parse_document();
    let mut names = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let at = format!("{method} {path}");
        let name = operation["operationId"].as_str().unwrap().to_owned();
        assert!(names.insert(name.clone()), "{name} names two operations");
        assert!(operation["responses"]["500"].is_object(), "{at}");
        let is_keyed = operation
            .get("security")
            .is_some_and(|all| all.as_array().is_some_and(|all| !all.is_empty()));
        let is_open = path.starts_with("/health")
            || path == "/metrics"
            || path.ends_with("invoice-categories")
            || path == "/openapi.json"
            || path.starts_with("/authority/");
        assert_eq!(is_keyed, !is_open, "{at}");
        assert!(is_open || operation["responses"]["401"].is_object(), "{at}");
    }
}

/// If two types have the same schema name, the document keeps the schema of only one of them. A response with the other
/// type then breaks generated clients.
#[test]
fn a_schema_name_has_one_schema() {
    let mut schemas = BTreeMap::new();
    for operation in parts().iter().flat_map(Part::operations) {
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
    let pointer = "/paths/~1v1~1tax-payers~1invoices~1update-payment-status/patch/requestBody/content\
        /application~1json/schema/properties";
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

#[test]
fn every_reference_leads_to_a_component() {
    let document = parse_document();
    let text = openapi_document();
    let names: BTreeSet<_> = text
        .split("\"#/components/schemas/")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(names.len() > 20);
    for name in names {
        assert!(
            document["components"]["schemas"][name].is_object(),
            "{name}"
        );
    }
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
        unknown_fields(
            &body["example"],
            &body["schema"],
            &format!("{method} {path}"),
            &mut found,
        );
        assert_eq!(found, [""; 0]);
    }
}
