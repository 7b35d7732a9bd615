//! The import profile of a taxpayer: values for the fields that its files lack, and the meaning of the columns and
//! units in the files.

use actix_web::web;

use crate::actors::taxpayer::commands::SetImportProfile;
use crate::domain::access::caller::TaxpayerCaller;
use crate::http::extract::body::Body;
use crate::http::forms::{import_profile, reader};
use crate::http::idempotency::IdempotentRequest;
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::import::ImportProfileView;
use crate::store::invoices::import_profiles;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/import-profile")
            .get(get_import_profile, || {
                doc("get_import_profile", "What is answered for imported files")
                    .with_note(
                        "The answers that files lack: units, columns, defaults \
                         and the data of customers.",
                    )
                    .with_response::<ImportProfileView<'_>>(
                        200,
                        "Import profile retrieved successfully",
                    )
            })
            .put(set_import_profile, || {
                doc(
                    "set_import_profile",
                    "Answer in advance what imported files lack",
                )
                .with_note(
                    "Replaces the whole profile. A file wins over the entry \
                     of its customer, and that over the defaults; each value \
                     that an invoice takes from the profile is named in its \
                     warnings.",
                )
                .with_body(import_profile::read, example!("set_import_profile"))
                .with_response::<ImportProfileView<'_>>(200, "Import profile updated successfully")
                .with_idempotency_key()
            }),
    ]
}

/// GET /v1/tax-payers/import-profile: returns the profile, which is empty until one is set.
async fn get_import_profile(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
) -> Result<ApiResponse, ApiError> {
    let profile = import_profiles::owned_by(state.store.reader(), id).await?;
    Ok(ApiResponse::ok(
        "Import profile retrieved successfully",
        ImportProfileView::from(&profile),
    ))
}

/// PUT /v1/tax-payers/import-profile: replaces the profile.
async fn set_import_profile(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let catalog = state.catalog.get();
    let (_, form) = body
        .object_and_form(move |body| reader::read(body, &catalog, import_profile::read))
        .await?;
    let form = form?;
    let warnings = form.warnings;
    idempotent
        .answer_once(
            &state.taxpayers,
            id,
            SetImportProfile(form.value),
            move |profile| {
                let view = ImportProfileView::from(profile);
                ApiResponse::ok("Import profile updated successfully", view).warn(&warnings)
            },
        )
        .await
}
