//! The objects within request bodies are components with names of their own.

use std::collections::BTreeSet;

use serde_json::Value;

use super::parse_document;
use crate::http::openapi::nested_objects::SHAPE_NAMES;
use crate::http::parts;
use crate::http::paths::ApiPart;

/// Collects the places of objects that a client would have to invent a name for.
fn collect_unnamed(schema: &Value, place: &str, unnamed: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        for part in [property, &property["items"]] {
            if part["properties"].is_object() {
                unnamed.push(place.clone());
            }
            collect_unnamed(part, &place, unnamed);
        }
    }
}

/// The table of names lacks an object whose place this test tells.
#[test]
fn every_object_within_a_request_body_has_a_name() {
    let document = parse_document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut unnamed = Vec::new();
    for operation in parts().iter().flat_map(ApiPart::operations) {
        for (name, _) in operation.doc.components {
            if name.ends_with("Request") {
                collect_unnamed(&schemas[&name], &name, &mut unnamed);
            }
        }
    }
    for (name, _) in SHAPE_NAMES {
        collect_unnamed(&schemas[name], name, &mut unnamed);
    }
    assert_eq!(unnamed, [""; 0]);
}

#[test]
fn a_shape_has_one_name_and_a_name_has_one_shape() {
    let document = parse_document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let names: BTreeSet<_> = SHAPE_NAMES.iter().map(|entry| entry.0.to_owned()).collect();
    assert_eq!(names.len(), SHAPE_NAMES.len());
    let shapes: BTreeSet<_> = names.iter().map(|name| schemas[name].to_string()).collect();
    assert_eq!(shapes.len(), names.len());
    for operation in parts().iter().flat_map(ApiPart::operations) {
        for (name, _) in operation.doc.components {
            assert!(!names.contains(&name), "{name} is a schema of an answer");
        }
    }
}

#[test]
fn an_object_that_may_be_null_refers_to_the_same_component() {
    let document = parse_document();
    let schemas = &document["components"]["schemas"];
    for (body, field, place, name) in [
        ("CreateInvoice", "customer", "", "CustomerInput"),
        ("UpdateInvoice", "customer", "", "CustomerInput"),
        (
            "CreateInvoice",
            "invoice_lines",
            "/items",
            "InvoiceLineInput",
        ),
        (
            "Submit",
            "accounting_customer_party",
            "/oneOf/0",
            "SubmitPartyInput",
        ),
        (
            "Submit",
            "contract_document_reference",
            "/oneOf/0",
            "DocumentReferenceInput",
        ),
    ] {
        let property = &schemas[format!("{body}Request")]["properties"][field];
        let reference = &property.pointer(place).unwrap()["$ref"];
        let expected = format!("#/components/schemas/{name}");
        assert_eq!(*reference, expected, "{body} {field}");
    }
}
