//! `/v1/core`: option lists, and the authority's reference lists. A reference list is fetched live and returned
//! unmodified. The codes in request bodies are checked against a separate snapshot.

use std::future::{Ready, ready};

use actix_web::web;
use authority_client::{AuthorityFailure, CallerAccount, Cause, ResourceList};

use crate::actors::on_behalf::authority_for_taxpayer;
use crate::domain::access::caller::Caller;
use crate::domain::integration::{AuthType, DataFormat};
use crate::domain::kernel::nearest_word::suggestion;
use crate::http::openapi::{doc, schema};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::choice::{Enums, InvoiceCategories, SelectOption, option_label};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/v1/core/commons/invoice-categories")
            .without_key()
            .get(list_invoice_categories, || {
                doc("invoice_categories", "Invoice categories")
                    .with_note(
                        "The three kinds of buyers that an invoice can have, \
                         and `Blank`, which no invoice takes. Needs no key.",
                    )
                    .with_response::<InvoiceCategories>(
                        200,
                        "Invoice categories retrieved successfully",
                    )
            }),
        path("/v1/core/commons/enums").get(list_enums, || {
            doc("enums", "Option lists of an integration record")
                .with_note(
                    "The words that the record of an integration may have \
                     for its ERP, its authentication and its format.",
                )
                .with_response::<Enums>(200, "Enums retrieved successfully")
        }),
        path("/v1/core/resources/{list}")
            .waits_for_other_systems()
            .get(fetch_reference_list, || {
                doc("resources", "A reference list, live from the authority")
                    .with_note(
                        "A code list of the authority, such as its currencies, \
                         which invoices may use.",
                    )
                    .with_schema_response(
                        200,
                        "Resources retrieved successfully",
                        schema::envelope(schema::objects()),
                    )
                    .with_errors(&[
                        ErrorCode::RouteNotFound,
                        ErrorCode::AuthorityUnavailable,
                        ErrorCode::AuthorityTimeout,
                    ])
            }),
    ]
}

/// GET /v1/core/commons/invoice-categories: lists the invoice categories. Needs no key. "Blank" is listed, but no
/// write accepts it.
fn list_invoice_categories() -> Ready<ApiResponse> {
    let choices = ["Blank", "B2B", "B2C", "B2G"].map(|name| SelectOption::new(name, name));
    let data = InvoiceCategories {
        invoice_categories: choices.into(),
    };
    ready(ApiResponse::ok(
        "Invoice categories retrieved successfully",
        data,
    ))
}

/// GET /v1/core/commons/enums: lists the options of an integration record (spec.md, "Option lists").
async fn list_enums(state: web::Data<ApiState>, _: Caller) -> Result<ApiResponse, ApiError> {
    let data = Enums {
        erp_systems: state
            .settings
            .erp_systems
            .iter()
            .map(|value| to_select_option(value))
            .collect(),
        auth_types: AuthType::ALL
            .iter()
            .map(|kind| to_select_option(kind.as_str()))
            .collect(),
        data_formats: DataFormat::ALL
            .iter()
            .map(|kind| to_select_option(kind.as_str()))
            .collect(),
    };
    Ok(ApiResponse::ok("Enums retrieved successfully", data))
}

fn to_select_option(value: &str) -> SelectOption {
    SelectOption::new(option_label(value), value)
}

/// GET /v1/core/resources/{list}: fetches a reference list from the authority and returns it unmodified.
async fn fetch_reference_list(
    state: web::Data<ApiState>,
    caller: Caller,
    list: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let list = ResourceList::from_name(&list).ok_or_else(|| unknown_list_error(&list))?;
    let authority = match caller {
        Caller::Taxpayer(id) => authority_for_taxpayer(&state.authority, &state.store, id).await?,
        Caller::Integrator(id) => state.authority.for_account(CallerAccount::Payer(id.0)),
    };
    let items = authority
        .fetch_resource_list(list)
        .await
        .map_err(fetch_error)?;
    Ok(ApiResponse::with_data_text(
        "Resources retrieved successfully",
        &items.text,
    ))
}

fn unknown_list_error(name: &str) -> ApiError {
    let known = ResourceList::ALL.map(ResourceList::name);
    let message = format!("No such list{}", suggestion(name, known));
    ApiError::new(ErrorCode::RouteNotFound, message)
}

/// Returns the error for a failed fetch. The caller's request is valid, so even a refusal becomes a temporary failure.
fn fetch_error(failure: AuthorityFailure) -> ApiError {
    match failure {
        AuthorityFailure::Refused { status, .. } => ApiError::from(AuthorityFailure::Retryable {
            reason: Cause::Down { status },
        }),
        AuthorityFailure::NotFound { .. } => ApiError::from(AuthorityFailure::Retryable {
            reason: Cause::Down { status: 404 },
        }),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_an_unknown_list_suggests_the_nearest_name() {
        for (sent, message) in [
            ("invoice-type", "No such list (did you mean invoice-types?)"),
            ("Currencies", "No such list (did you mean currencies?)"),
            (
                "vat_exemptions",
                "No such list (did you mean vat-exemptions?)",
            ),
            ("hs-codes", "No such list"),
        ] {
            assert_eq!(&*unknown_list_error(sent).message, message, "{sent}");
        }
    }
}
