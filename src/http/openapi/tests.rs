//! Tests that the API document matches the route table, and that the examples match the forms.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::domain::events::event::EventKind;
use crate::http::endpoint::Part;
use crate::http::openapi::glossary::SENTENCES;
use crate::http::respond::code::ErrorCode;
use crate::http::{openapi_document, parts, table};

/// A path that leads elsewhere. The document does not describe it.
const REDIRECT: &str = "/";

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
        .filter(|path| path.pattern != REDIRECT)
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

#[test]
fn every_reference_to_a_header_leads_to_its_description() {
    let document = parse_document();
    for (path, method, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let at = format!("{method} {path} {status}");
            let headers = response["headers"].as_object().unwrap();
            assert!(headers.contains_key("x-request-id"), "{at}");
            assert_eq!(
                headers.contains_key("www-authenticate"),
                status == "401",
                "{at}"
            );
            assert!(
                headers.contains_key("retry-after") || status != "429",
                "{at}"
            );
            for header in headers.values() {
                let target = header["$ref"].as_str().unwrap();
                let described = document.pointer(target.trim_start_matches('#')).unwrap();
                assert!(described["description"].is_string(), "{at}");
            }
            let is_create = matches!(
                operation["operationId"].as_str(),
                Some("create_invoice" | "create_full_invoice")
            );
            assert_eq!(
                headers.contains_key("x-duplicate"),
                is_create && status == "200",
                "{at}"
            );
            let has_tag = headers.contains_key("etag");
            let may_be_unchanged = operation["responses"]["304"].is_object();
            assert!(!has_tag || may_be_unchanged, "{at}");
            assert!(
                status != "304" || (has_tag && response["content"].is_null()),
                "{at}"
            );
        }
    }
}

#[test]
fn every_event_is_a_webhook_with_a_schema_of_its_own() {
    let document = parse_document();
    let webhooks = document["webhooks"].as_object().unwrap();
    let told: BTreeSet<_> = webhooks.keys().map(String::as_str).collect();
    let known: BTreeSet<_> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(told, known);
    let mut schemas = BTreeSet::new();
    for (event, item) in webhooks {
        let pointer = "/post/requestBody/content/application~1json/schema/$ref";
        let target = item.pointer(pointer).unwrap().as_str().unwrap();
        assert!(schemas.insert(target.to_owned()), "{target}");
        let schema = document.pointer(target.trim_start_matches('#')).unwrap();
        assert_eq!(schema["properties"]["type"]["enum"], json!([event]));
        assert!(item["post"]["summary"].as_str().unwrap().ends_with('.'));
    }
}

/// A parameter that takes a few words, a number or a day says so, so that generated clients check it.
#[test]
fn a_parameter_of_a_query_says_its_type() {
    let document = parse_document();
    let list = &document["paths"]["/v1/tax-payers/invoices"]["get"]["parameters"];
    let schema = |name: &str| {
        let all = list.as_array().unwrap();
        &all.iter().find(|one| one["name"] == name).unwrap()["schema"]
    };
    assert_eq!(
        schema("invoice_category")["enum"],
        json!(["B2B", "B2C", "B2G"])
    );
    assert_eq!(schema("date_from")["format"], "date");
    assert_eq!(schema("updated_since")["format"], "date-time");
    assert_eq!(schema("overdue")["type"], "boolean");
    assert_eq!(schema("per_page")["type"], "integer");
    assert_eq!(schema("q")["type"], "string");
}

/// Generated clients and the commands of the reference take the type and the example from here.
#[test]
fn a_parameter_of_a_path_says_its_type() {
    let document = parse_document();
    let parameter = |at: &str, name: &str| {
        let item = document["paths"][at].as_object().unwrap();
        let operation = item.values().next().unwrap();
        let mut all = operation["parameters"].as_array().unwrap().iter();
        all.find(|one| one["name"] == name).unwrap().clone()
    };
    let contact = "/ops/taxpayers/{id}/contacts/{contact_id}/role";
    let webhook = "/v1/system-integrators/taxpayers/{id}/webhook";
    let pdf = "/v1/system-integrators/taxpayers/{id}/invoices/{invoice_id}/pdf";
    let endpoint = format!("{webhook}/endpoints/{{endpoint_id}}");
    let replay = format!("{webhook}/replays/{{replay_id}}");
    let received = "/v1/tax-payers/supplier-invoices/{supplier_irn}/pdf";
    for (at, name, kind, start, example) in [
        (contact, "id", "integer", "The id, a number", json!(1)),
        (contact, "contact_id", "integer", "The id of the", json!(1)),
        (pdf, "invoice_id", "integer", "The id of the", json!(1)),
        (
            &endpoint,
            "endpoint_id",
            "string",
            "`default`, or",
            json!("2"),
        ),
        (
            received,
            "supplier_irn",
            "string",
            "The IRN of the received",
            json!("INV9001-5A3F00C1-20260115"),
        ),
        (
            "/ops/invoices/{irn}",
            "irn",
            "string",
            "The IRN: ",
            json!("INV0001-94CD90AA-20260115"),
        ),
        (
            "/ops/breakers/{operation}/trip",
            "operation",
            "string",
            "The operation",
            json!("sign"),
        ),
        (
            &replay,
            "replay_id",
            "string",
            "The id, a UUID",
            json!("01a1fe6b-07c5-77be-bffc-3c9cdd06c3ab"),
        ),
    ] {
        let found = parameter(at, name);
        assert_eq!(found["schema"]["type"], kind, "{at}");
        assert_eq!(found["example"], example, "{at}");
        let sentence = found["description"].as_str().unwrap();
        assert!(sentence.starts_with(start), "{at}: {sentence}");
    }
    let operation = parameter("/ops/breakers/{operation}/trip", "operation");
    let words = operation["schema"]["enum"].as_array().unwrap();
    assert_eq!(words.len(), authority_client::Operation::ALL.len());
}
