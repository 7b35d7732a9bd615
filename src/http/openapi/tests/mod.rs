//! Tests that the API document matches the route table, and that the examples match the forms.

mod conditions;
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
fn every_reference_leads_to_a_component_and_every_component_is_referred_to() {
    let document = parse_document();
    let text = openapi_document();
    for kind in ["schemas", "headers", "examples"] {
        let start = format!("\"#/components/{kind}/");
        let references = text.split(&start).skip(1);
        let referred: BTreeSet<_> = references
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
        assert_eq!(referred, known, "{kind}");
    }
}
