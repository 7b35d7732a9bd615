//! Taxpayers of all integrators: list them, confirm the identity of one, and read and set the ERP integration of one.

use actix_web::web;
use address_policy::AddressPolicy;

use crate::actors::taxpayer::commands::{RecordVerification, SetIntegration};
use crate::domain::access::caller::{OpsAdmin, OpsViewer};
use crate::domain::kernel::audit::Actor;
use crate::domain::party::verification::{ConfirmedBy, Verification, VerificationStatus};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::reader::Reader;
use crate::http::forms::{integration, reader, reason};
use crate::http::openapi::{OperationDoc, doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::erp_settings::ErpSettings;
use crate::http::views::paginator::Paginator;
use crate::http::views::taxpayer::{OperatedTaxpayer, TaxpayerView};
use crate::store::accounts::taxpayers;
use crate::store::accounts::taxpayers::TaxpayerFilter;
use crate::store::webhooks::integrations;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/ops/taxpayers").get(list_all_taxpayers, || {
            doc(
                "list_all_taxpayers",
                "Taxpayers of all integrators, newest first",
            )
            .query_word(
                "verification",
                VerificationStatus::allowed_words,
                "of a result of the verification",
            )
            .query("tin", "a tax number, in whichever spelling")
            .with_paging("100 at most")
            .with_page_response::<OperatedTaxpayer<'_>>("Taxpayers retrieved successfully")
            .with_errors(&[ErrorCode::ValidationFailed])
        }),
        path("/ops/taxpayers/{id}/verify").post(verify_taxpayer, || {
            doc(
                "verify_taxpayer",
                "Confirm who a taxpayer is, in the authority's place",
            )
            .with_body(reason::read_required, example!("reason"))
            .with_response::<TaxpayerView<'_>>(200, "Taxpayer verified successfully")
            .with_errors(&[ErrorCode::TaxpayerNotFound])
        }),
        path("/ops/taxpayers/{id}/integration")
            .get(get_integration, || {
                doc(
                    "get_integration",
                    "How a taxpayer's ERP takes notifications",
                )
                .with_response::<ErpSettings>(200, "Integration retrieved successfully")
                .with_errors(&[ErrorCode::TaxpayerNotFound])
            })
            .put(set_integration, set_integration_doc),
    ]
}

fn set_integration_doc() -> OperationDoc {
    let policy = AddressPolicy::default();
    doc("set_integration", "Set how a taxpayer's ERP takes notifications")
        .with_note(
            "Secrets are never shown; one that is left out stays, while auth_type, the origin and the token endpoint do. \
             Credentials are sent to `origin` alone: the one in the body, else that of the webhook's URL at this moment.",
        )
        .with_body(|reader| integration::read(reader, &policy, &[]), example!("set_integration"))
        .with_response::<ErpSettings>(200, "Integration updated successfully")
        .with_errors(&[ErrorCode::TaxpayerNotFound])
}

const PER_PAGE_DEFAULT: u64 = 15;

/// GET /ops/taxpayers: lists the taxpayers of all integrators, newest first.
async fn list_all_taxpayers(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let verification = query.word(
        "verification",
        VerificationStatus::parse,
        VerificationStatus::allowed_words,
    )?;
    let filter = TaxpayerFilter {
        verification,
        tin: query.trimmed_text("tin"),
        search: None,
    };
    let page = query.page(PER_PAGE_DEFAULT);
    let (taxpayers, total) = taxpayers::page(&state.store, filter, page).await?;
    let items = taxpayers.iter().map(OperatedTaxpayer::new).collect();
    Ok(ApiResponse::ok(
        "Taxpayers retrieved successfully",
        Paginator::new(page, total, items),
    ))
}

/// POST /ops/taxpayers/{id}/verify: an operator confirms the identity of a taxpayer, in place of the authority.
async fn verify_taxpayer(
    state: web::Data<ApiState>,
    OpsAdmin(operator_id): OpsAdmin,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        reason::read_required,
    )?;
    let id = path_ids::existing_taxpayer_id(&state, &id).await?;
    let command = RecordVerification {
        found: Verification::Verified(ConfirmedBy::Operator),
        by: Some(Actor::Operator(operator_id)),
        reason: Some(form.value),
    };
    let taxpayer = state.taxpayers.send(id, command).await?;
    let contacts = taxpayers::contacts_owned_by(&state.store, id).await?;
    let view = TaxpayerView::new(&taxpayer, &contacts);
    Ok(ApiResponse::ok("Taxpayer verified successfully", view).warn(&form.warnings))
}

/// GET /ops/taxpayers/{id}/integration: returns a taxpayer's settings for notifying the ERP. Secrets are not shown.
async fn get_integration(
    state: web::Data<ApiState>,
    _: OpsViewer,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::existing_taxpayer_id(&state, &id).await?;
    let stored = integrations::owned_by(&state.store, state.store.reader(), taxpayer).await?;
    Ok(ApiResponse::ok(
        "Integration retrieved successfully",
        ErpSettings::new(taxpayer, stored),
    ))
}

/// PUT /ops/taxpayers/{id}/integration: sets a taxpayer's settings for notifying the ERP.
async fn set_integration(
    state: web::Data<ApiState>,
    OpsAdmin(operator_id): OpsAdmin,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::existing_taxpayer_id(&state, &id).await?;
    let read = |reader: &mut Reader<'_>| {
        integration::read(reader, &state.webhook_urls, &state.settings.erp_systems)
    };
    let form = reader::read(&*body.object().await?, &state.catalog.get(), read)?;
    let integration::Integration {
        erp_system,
        auth,
        origin,
        format,
        allowed_networks,
        reason,
    } = form.value;
    let by = Actor::Operator(operator_id);
    let allowed_networks = Some(allowed_networks);
    let command = SetIntegration {
        erp_system,
        auth,
        origin,
        format,
        allowed_networks,
        by,
        reason,
    };
    let stored = state.taxpayers.send(taxpayer, command).await?;
    let view = ErpSettings::new(taxpayer, Some(stored));
    Ok(ApiResponse::ok("Integration updated successfully", view).warn(&form.warnings))
}
