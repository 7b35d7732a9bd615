//! Each route is in the document, with its key, its headers and its failures, and each event as a webhook.

use std::collections::BTreeSet;

use serde_json::json;

use super::{operations, parse_document};
use crate::domain::events::event::EventKind;
use crate::http::path_table;

/// The path of a redirect, which the document does not describe.
const REDIRECT: &str = "/";

#[test]
fn the_document_has_every_route_and_nothing_else() {
    let document = parse_document();
    let documented: BTreeSet<_> = operations(&document)
        .into_iter()
        .map(|(path, method, _)| format!("{method} {path}"))
        .collect();
    let paths = path_table();
    let routed: BTreeSet<_> = paths
        .iter()
        .filter(|path| path.pattern != REDIRECT)
        .flat_map(|path| path.methods.iter().map(|method| (method, path.pattern)))
        .filter(|(method, _)| method.as_str() != "HEAD")
        .map(|(method, path)| format!("{method} {path}"))
        .collect();
    assert_eq!(
        routed.difference(&documented).collect::<Vec<_>>(),
        [""; 0],
        "routes that are not documented"
    );
    assert_eq!(
        documented.difference(&routed).collect::<Vec<_>>(),
        [""; 0],
        "operations without a route"
    );
}

#[test]
fn an_operation_has_one_name_a_key_and_its_failures() {
    let document = parse_document();
    let mut names = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let call = format!("{method} {path}");
        let name = operation["operationId"].as_str().unwrap().to_owned();
        assert!(names.insert(name.clone()), "{name} names two operations");
        assert!(operation["responses"]["500"].is_object(), "{call}");
        let is_keyed = operation
            .get("security")
            .is_some_and(|all| all.as_array().is_some_and(|all| !all.is_empty()));
        let is_open = path.starts_with("/health")
            || path.ends_with("invoice-categories")
            || path == "/openapi.json"
            || path.starts_with("/authority/");
        assert_eq!(is_keyed, !is_open, "{call}");
        assert!(
            is_open || operation["responses"]["401"].is_object(),
            "{call}"
        );
    }
    let metrics = &document["paths"]["/metrics"]["get"];
    assert_eq!(metrics["security"], json!([{}, { "operator_key": [] }]));
}

/// `/health/ready` answers 503 with a report, and not with a failure that has an error code.
#[test]
fn an_answer_of_an_operation_is_not_documented_as_a_failure_of_the_same_status() {
    let document = parse_document();
    let answers = &document["paths"]["/health/ready"]["get"]["responses"];
    for (status, description, is_failure) in [
        ("200", "ready", false),
        ("429", "RATE_LIMITED", true),
        ("500", "INTERNAL_ERROR", true),
        ("503", "not ready", false),
    ] {
        let answer = &answers[status];
        assert_eq!(answer["description"], description, "{status}");
        let problem = &answer["content"]["application/problem+json"];
        assert_eq!(problem.is_object(), is_failure, "{status}");
    }
}

#[test]
fn every_reference_to_a_header_leads_to_its_description() {
    let document = parse_document();
    for (path, method, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let call = format!("{method} {path} {status}");
            let headers = response["headers"].as_object().unwrap();
            assert!(headers.contains_key("x-request-id"), "{call}");
            assert_eq!(
                headers.contains_key("www-authenticate"),
                status == "401",
                "{call}"
            );
            let operation_id = operation["operationId"].as_str().unwrap();
            let waits_with_500 = status == "500" && ["transmit", "report"].contains(&operation_id);
            assert!(
                headers.contains_key("retry-after") || !(status == "429" || waits_with_500),
                "{call}"
            );
            let is_success = ["200", "304"].contains(&status.as_str());
            let has_next_page = operation_id == "list_invoices" && is_success;
            for header in ["link", "x-next-cursor"] {
                assert_eq!(headers.contains_key(header), has_next_page, "{call}");
            }
            for header in headers.values() {
                let target = header["$ref"].as_str().unwrap();
                let header_component = document.pointer(target.trim_start_matches('#')).unwrap();
                assert!(header_component["description"].is_string(), "{call}");
            }
            let is_create = ["create_invoice", "create_full_invoice"].contains(&operation_id);
            assert_eq!(
                headers.contains_key("x-duplicate"),
                is_create && status == "200",
                "{call}"
            );
            let has_tag = headers.contains_key("etag");
            let may_be_unchanged = operation["responses"]["304"].is_object();
            assert!(!has_tag || may_be_unchanged, "{call}");
            assert!(
                status != "304" || (has_tag && response["content"].is_null()),
                "{call}"
            );
        }
    }
}

#[test]
fn every_event_is_a_webhook_with_a_schema_of_its_own() {
    let document = parse_document();
    let webhooks = document["webhooks"].as_object().unwrap();
    let documented: BTreeSet<_> = webhooks.keys().map(String::as_str).collect();
    let known: BTreeSet<_> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(documented, known);
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
