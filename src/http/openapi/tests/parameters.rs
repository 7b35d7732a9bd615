//! The parameters of paths and query strings say their types, so that generated clients check them.

use serde_json::json;

use super::parse_document;

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
    for name in ["overdue", "refund_due", "without_cancelled"] {
        assert_eq!(schema(name)["type"], "boolean", "{name}");
    }
    assert_eq!(schema("per_page")["type"], "integer");
    assert_eq!(schema("q")["type"], "string");
    let orders = schema("sort")["enum"].as_array().unwrap();
    assert_eq!(orders.len(), 8);
    assert!(orders.contains(&json!("payable")) && orders.contains(&json!("-payable")));
    let validate = &document["paths"]["/v1/app/invoices/validate"]["post"]["parameters"];
    let explain = &validate.as_array().unwrap()[0];
    assert_eq!(
        (&explain["name"], &explain["schema"]["enum"]),
        (&json!("explain"), &json!(["patch"]))
    );
}

/// Generated clients and the commands of the reference take the type and the example from here.
#[test]
fn a_parameter_of_a_path_says_its_type() {
    let document = parse_document();
    let parameter = |path: &str, name: &str| {
        let item = document["paths"][path].as_object().unwrap();
        let operation = item.values().next().unwrap();
        let mut parameters = operation["parameters"].as_array().unwrap().iter();
        parameters.find(|one| one["name"] == name).unwrap().clone()
    };
    let contact = "/ops/taxpayers/{id}/contacts/{contact_id}/role";
    let webhook = "/v1/system-integrators/taxpayers/{id}/webhook";
    let pdf = "/v1/system-integrators/taxpayers/{id}/invoices/{invoice_id}/pdf";
    let endpoint = format!("{webhook}/endpoints/{{endpoint_id}}");
    let replay = format!("{webhook}/replays/{{replay_id}}");
    let received = "/v1/tax-payers/supplier-invoices/{supplier_irn}/pdf";
    for (path, name, kind, start, example) in [
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
        let parameter = parameter(path, name);
        assert_eq!(parameter["schema"]["type"], kind, "{path}");
        assert_eq!(parameter["example"], example, "{path}");
        let sentence = parameter["description"].as_str().unwrap();
        assert!(sentence.starts_with(start), "{path}: {sentence}");
    }
    let operation = parameter("/ops/breakers/{operation}/trip", "operation");
    let words = operation["schema"]["enum"].as_array().unwrap();
    assert_eq!(words.len(), authority_client::Operation::ALL.len());
}
