//! Tests that the API document matches the route table, and that the examples match the forms.

mod conditions;
mod nested_objects;
mod parameters;
mod routes;
mod schemas;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::http::openapi_document;
use crate::http::respond::code::ErrorCode;

fn parse_document() -> Value {
    strict_json::from_trusted(openapi_document()).unwrap()
}

/// Returns a schema of a request, with the schemas that it refers to in place of the references.
fn without_references(document: &Value, schema: &Value) -> Value {
    match schema {
        Value::Object(members) => match members.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                let target = document.pointer(reference.trim_start_matches('#'));
                without_references(document, target.unwrap())
            }
            None => members
                .iter()
                .map(|(name, member)| (name.clone(), without_references(document, member)))
                .collect(),
        },
        Value::Array(entries) => entries
            .iter()
            .map(|entry| without_references(document, entry))
            .collect(),
        other => other.clone(),
    }
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
fn every_magic_word_is_documented() {
    let document = parse_document();
    let description = document["info"]["description"].as_str().unwrap();
    for magic_word in sandbox::MAGIC_WORDS {
        let table_row = format!("| `{}` | {} |", magic_word.word, magic_word.happens);
        assert!(description.contains(&table_row), "{table_row}");
    }
}

#[test]
fn every_reference_leads_to_a_component_and_every_component_is_referred_to() {
    let document = parse_document();
    let text = openapi_document();
    for kind in ["schemas", "headers", "examples"] {
        let start = format!("\"#/components/{kind}/");
        let references = text.split(&start).skip(1);
        let targets: BTreeSet<_> = references
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let components = document["components"][kind].as_object().unwrap();
        // A method that a path does not take is no operation, so nothing in the document answers with this code. Its
        // page shows the example.
        let known: BTreeSet<_> = components
            .keys()
            .map(String::as_str)
            .filter(|name| *name != ErrorCode::MethodNotAllowed.as_str())
            .collect();
        assert_eq!(targets, known, "{kind}");
    }
}
