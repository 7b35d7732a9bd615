//! The shell command that calls an operation. Its variables `URL`, `KEY`, `SIK` and `OPK` stand for the address of the
//! service and the keys of a taxpayer, an integrator and an operator.

use serde_json::Value;

use crate::console::docs::operations::Operation;

/// Returns the curl command that calls the operation, with the examples that the API document gives for the path's
/// parameters and for the body.
pub(super) fn curl_command(operation: &Operation) -> String {
    let mut path = operation.path.to_owned();
    for parameter in operation.parameters() {
        let (name, example) = (&parameter["name"], &parameter["example"]);
        if let Some(name) = name.as_str() {
            path = path.replace(&format!("{{{name}}}"), &example_text(example));
        }
    }
    let mut lines = vec![format!(
        "curl -sS{} \"$URL{path}\"",
        method_option(operation)
    )];
    let scheme = operation.key_schemes().into_iter().next();
    if let Some(variable) = scheme.map(key_variable) {
        lines.push(format!("-H \"x-api-key: ${variable}\""));
    }
    if let Some(body) = operation.json_body() {
        lines.push("-H \"content-type: application/json\"".to_owned());
        let text = serde_json::to_string_pretty(&body["example"]).unwrap_or_default();
        lines.push(format!("-d '{}'", text.replace('\'', "'\\''")));
    }
    if let Some(file) = output_file(operation) {
        lines.push(format!("-o {file}"));
    }
    lines.join(" \\\n  ")
}

/// Returns curl's option for the method; empty where curl chooses it itself: POST with a body, else GET.
fn method_option(operation: &Operation) -> String {
    match (operation.method, operation.json_body()) {
        ("get", None) | ("post", Some(_)) => String::new(),
        _ => format!(" -X {}", operation.method_in_capitals()),
    }
}

/// Returns the name of the file for an answer that curl does not write to a terminal.
fn output_file(operation: &Operation) -> Option<&'static str> {
    let (_, answer) = operation.answers().find(|(status, _)| *status == "200")?;
    let files = [("application/pdf", "invoice.pdf"), ("image/png", "qr.png")];
    let file = files
        .into_iter()
        .find(|(kind, _)| answer["content"].get(kind).is_some());
    file.map(|(_, name)| name)
}

fn example_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the variable for this kind of key.
fn key_variable(scheme: &str) -> &'static str {
    match scheme {
        "integrator_key" => "SIK",
        "operator_key" => "OPK",
        _ => "KEY",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::docs::operations::{all, find_by_id};

    #[test]
    fn a_command_has_the_address_the_key_and_the_body() {
        let command = |id| curl_command(&find_by_id(id).unwrap());
        assert_eq!(
            command("get_invoice"),
            "curl -sS \"$URL/v1/tax-payers/invoices/1\" \\\n  -H \"x-api-key: $KEY\""
        );
        let created = command("create_taxpayer");
        assert!(created.starts_with(
            "curl -sS \"$URL/v1/system-integrators/taxpayers\" \\\n  -H \"x-api-key: $SIK\" \\\n"
        ));
        assert!(command("confirm_receipt").starts_with("curl -sS -X PATCH "));
        assert_eq!(command("live"), "curl -sS \"$URL/health/live\"");
        for (id, end) in [
            ("get_invoice_pdf", " \\\n  -o invoice.pdf"),
            ("get_supplier_invoice_pdf", " \\\n  -o invoice.pdf"),
            ("get_taxpayers_qr_png", " \\\n  -o qr.png"),
            ("get_invoice_qr_svg", "$KEY\""),
        ] {
            assert!(command(id).ends_with(end), "{id}: {}", command(id));
        }
    }

    #[test]
    fn the_address_of_a_command_has_no_placeholder() {
        for operation in all() {
            let address = curl_command(operation);
            let address = address.lines().next().unwrap();
            assert!(
                !address.contains('{') && !address.contains("null"),
                "{address}"
            );
        }
    }
}
