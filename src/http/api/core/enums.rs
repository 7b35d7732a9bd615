//! GET /v1/core/commons/enums: the option lists of an integration record (spec.md, "Option lists").

use actix_web::web;

use crate::domain::access::caller::Caller;
use crate::domain::integration::{AuthType, DataFormat};
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::choice::{Choice, Enums};

pub(crate) async fn enums(state: web::Data<ApiState>, _: Caller) -> Result<ApiResponse, ApiError> {
    let data = Enums {
        erp_systems: state.settings.erp_systems.iter().map(|value| choice(value)).collect(),
        auth_types: AuthType::ALL.iter().map(|kind| choice(kind.as_str())).collect(),
        data_formats: DataFormat::ALL.iter().map(|kind| choice(kind.as_str())).collect(),
    };
    Ok(ApiResponse::ok("Enums retrieved successfully", data))
}

/// The label is the value in upper case with spaces; two have words of their own.
fn choice(value: &str) -> Choice {
    let label = match value {
        "custom" => "BESPOKE".to_owned(),
        "jsonrpc" => "JSON RPC".to_owned(),
        other => other.to_uppercase().replace('_', " "),
    };
    Choice::new(label, value)
}
