//! GET /v1/core/commons/enums: the option lists of an integration record (spec.md, "Option lists").

use actix_web::web;
use serde_json::{Value, json};

use crate::domain::caller::Caller;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::state::State;

const AUTH_TYPES: [&str; 6] = ["none", "basic", "api_key", "oauth2", "ntlm", "client_credentials"];
const DATA_FORMATS: [&str; 5] = ["rest", "soap", "graphql", "odata", "jsonrpc"];

pub(crate) async fn enums(state: web::Data<State>, _: Caller) -> Result<Answer, ApiError> {
    let options = |values: &[&str]| values.iter().map(|value| option(value)).collect::<Vec<_>>();
    let erp_systems: Vec<_> = state.settings.erp_systems.iter().map(String::as_str).collect();
    let data = json!({
        "erp_systems": options(&erp_systems),
        "auth_types": options(&AUTH_TYPES),
        "data_formats": options(&DATA_FORMATS),
    });
    Ok(Answer::ok("Enums retrieved successfully", data))
}

/// The label is the value in upper case with spaces; two have words of their own.
fn option(value: &str) -> Value {
    let label = match value {
        "custom" => "BESPOKE".to_owned(),
        "jsonrpc" => "JSON RPC".to_owned(),
        other => other.to_uppercase().replace('_', " "),
    };
    json!({ "label": label, "value": value })
}
