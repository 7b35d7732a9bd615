//! The fields that callers may leave out on a condition, the headers that they may send, and the answers that they get.

use serde_json::{Value, json};

use super::{operations, parse_document, without_references};
use crate::http::openapi::conditions::CONDITIONAL_EXTENSION;
use crate::http::openapi::schema;

/// A client that is generated from the document sends a body only if it has the required fields.
#[test]
fn a_field_that_may_be_left_out_on_a_condition_is_not_required() {
    let document = parse_document();
    let lines = "/properties/invoice_line/items";
    let price = "/properties/invoice_line/items/properties/price";
    for (body, object_pointer, field) in [
        ("SubmitRequest", "", "business_id"),
        ("SubmitRequest", "", "legal_monetary_total"),
        ("SubmitRequest", lines, "line_extension_amount"),
        ("SubmitRequest", price, "price_amount"),
        ("ValidateRequest", "", "accounting_supplier_party"),
        ("ValidateRequest", "", "tax_total"),
        ("ReportRequest", "", "base_amount"),
        ("CorrectInvoiceRequest", "", "invoice_lines"),
        ("CreateFullInvoiceRequest", "", "legal_monetary_total"),
        ("CreateFullInvoiceRequest", lines, "total_tax"),
        ("CreateFullInvoiceRequest", price, "price_amount"),
    ] {
        let schema = &document["components"]["schemas"][body];
        let schema = without_references(&document, schema);
        let object = schema.pointer(object_pointer).unwrap();
        let count_in = |list: &str| {
            let names = object[list].as_array().into_iter().flatten();
            names.filter(|name| *name == field).count()
        };
        assert!(object["properties"][field].is_object(), "{body} {field}");
        assert_eq!(count_in("required"), 0, "{body} {field}");
        assert_eq!(count_in(CONDITIONAL_EXTENSION), 1, "{body} {field}");
    }
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["SubmitRequest"]["required"], json!(["irn"]));
    assert_eq!(schemas["CorrectInvoiceRequest"]["required"], Value::Null);
    let full = without_references(&document, &schemas["CreateFullInvoiceRequest"]);
    let with_tax = &full.pointer(price).unwrap()["properties"]["price_amount_with_tax"];
    assert_eq!(with_tax["type"], json!(["number", "null"]));
    let required = full["required"].as_array().unwrap();
    assert!(required.contains(&json!("invoice_no")), "{required:?}");
}

#[test]
fn a_header_that_changes_a_call_is_a_parameter() {
    let document = parse_document();
    let operations = operations(&document);
    for (path, method, header, expected) in [
        ("/v1/app/invoices/submit", "POST", "Prefer", true),
        ("/v1/app/invoices/submit", "POST", "x-taxpayer-id", true),
        ("/v1/app/invoices/report", "POST", "x-taxpayer-id", true),
        ("/v1/app/invoices/validate", "POST", "x-taxpayer-id", true),
        ("/v1/app/invoices/validate", "POST", "Prefer", false),
        ("/ops/reconciliations", "POST", "Prefer", true),
        ("/v1/tax-payers/invoices", "GET", "If-None-Match", true),
        ("/v1/tax-payers/invoices", "POST", "If-None-Match", false),
        ("/health/live", "GET", "If-None-Match", false),
        ("/openapi.json", "GET", "If-None-Match", true),
    ] {
        let (_, _, operation) = operations
            .iter()
            .find(|operation| operation.0 == path && operation.1 == method)
            .unwrap();
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let is_parameter = parameters.filter(|one| one["name"] == header).count() == 1;
        assert_eq!(is_parameter, expected, "{method} {path} {header}");
    }
}

#[test]
fn an_answer_of_one_method_is_documented_for_that_method_only() {
    let document = parse_document();
    let test = "/v1/system-integrators/taxpayers/{id}/webhook/test";
    let confirm = "/v1/app/invoices/{irn}/confirm";
    let download = "/v1/app/invoices/{irn}/download";
    let acknowledge = "/v1/tax-payers/invoices/acknowledge-supplier-invoice";
    let validate = "/v1/app/invoices/validate";
    for (path, method, status, expected) in [
        (confirm, "get", "304", true),
        (confirm, "post", "304", false),
        (test, "get", "304", true),
        (test, "post", "304", false),
        (confirm, "get", "422", true),
        (download, "post", "422", true),
        (validate, "post", "400", true),
        (validate, "post", "422", false),
        (acknowledge, "post", "404", true),
    ] {
        let answers = &document["paths"][path][method]["responses"];
        assert!(answers.is_object(), "{method} {path}");
        let is_documented = answers.get(status).is_some();
        assert_eq!(is_documented, expected, "{method} {path} {status}");
    }
}

#[test]
fn an_answer_has_the_headers_that_its_path_and_status_give() {
    let document = parse_document();
    let submit = "/v1/app/invoices/submit";
    let categories = "/v1/core/commons/invoice-categories";
    for (path, method, status, header, expected) in [
        (submit, "post", "202", "location", true),
        (submit, "post", "200", "location", false),
        (submit, "post", "200", "x-ratelimit-limit", true),
        ("/ops/reconciliations", "post", "202", "location", true),
        (categories, "get", "200", "x-ratelimit-limit", true),
        ("/ops/overview", "get", "200", "x-ratelimit-limit", false),
    ] {
        let headers = &document["paths"][path][method]["responses"][status]["headers"];
        assert!(headers.is_object(), "{method} {path} {status}");
        let is_documented = headers.get(header).is_some();
        assert_eq!(is_documented, expected, "{method} {path} {status} {header}");
    }
}

/// A client assumes that a whole number without a format has 32 bits.
#[test]
fn a_number_that_may_be_large_has_64_bits() {
    let document = parse_document();
    let inbox = &document["paths"]["/v1/tax-payers/supplier-invoices"]["get"]["responses"]["200"];
    let page = &inbox["content"]["application/json"]["schema"]["properties"]["data"];
    let schemas = &document["components"]["schemas"];
    let parameter = |path: &str| &document["paths"][path]["get"]["parameters"][0]["schema"];
    for (schema, name) in [
        (&page["properties"]["total"], "total"),
        (parameter("/v1/tax-payers/invoices/{id}"), "id"),
        (parameter("/v1/tax-payers/events"), "after"),
        (
            &schemas["EventInvoiceCreated"]["properties"]["sequence"],
            "sequence",
        ),
        (
            &schemas["CreateReconciliationRequest"]["properties"]["taxpayer_id"],
            "taxpayer_id",
        ),
    ] {
        assert_eq!(schema["format"], "int64", "{name}: {schema}");
    }
}

#[test]
fn a_file_of_bytes_is_not_documented_as_a_text() {
    let xlsx = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    for (media_type, expected) in [
        ("application/pdf", json!("binary")),
        ("image/png", json!("binary")),
        (xlsx, json!("binary")),
        ("multipart/form-data", json!("binary")),
        ("text/csv", Value::Null),
        ("application/xml", Value::Null),
        ("image/svg+xml", Value::Null),
        ("application/x-ndjson", Value::Null),
    ] {
        let documented_schema = serde_json::to_value(schema::file(media_type).build()).unwrap();
        assert_eq!(documented_schema["format"], expected, "{media_type}");
    }
}
