//! Each route stands in the document, with its key, its headers and its failures, and each event as a webhook.

use std::collections::BTreeSet;

use serde_json::json;

use super::{operations, parse_document};
use crate::domain::events::event::EventKind;
use crate::http::endpoint_table;

/// A path that leads elsewhere. The document does not describe it.
const REDIRECT: &str = "/";

#[test]
fn every_route_stands_in_the_document_and_nothing_else() {
    let document = parse_document();
    let told: BTreeSet<_> = operations(&document)
        .into_iter()
        .map(|(path, method, _)| format!("{method} {path}"))
        .collect();
    let paths = endpoint_table();
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
            || path.ends_with("invoice-categories")
            || path == "/openapi.json"
            || path.starts_with("/authority/");
        assert_eq!(is_keyed, !is_open, "{at}");
        assert!(is_open || operation["responses"]["401"].is_object(), "{at}");
    }
    let metrics = &document["paths"]["/metrics"]["get"];
    assert_eq!(metrics["security"], json!([{}, { "operator_key": [] }]));
}

/// `/health/ready` answers 503 with a report, and not with a failure that has an error code.
#[test]
fn an_answer_of_an_operation_is_not_told_as_a_failure_of_the_same_status() {
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
