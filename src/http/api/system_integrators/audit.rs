//! The audit log of an integrator: the changes that the integrator made, and those that others made to its account.

use actix_web::web;

use crate::domain::access::caller::IntegratorCaller;
use crate::http::forms::query::Query;
use crate::http::openapi::doc;
use crate::http::paths::{Path, path};
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::audit::IntegratorAuditView;
use crate::http::views::paginator::Paginator;
use crate::store::operations::audit;
use crate::store::operations::audit::AuditFilter;

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/v1/system-integrators/audit").get(list_own_audit, || {
        doc("list_own_audit", "Your security changes and those of your account, newest first")
            .with_note(
                "New taxpayers, profiles, keys, webhook URLs and secrets, each with its actor; never a secret.",
            )
            .with_paging("15 by default, 100 at most")
            .query("taxpayer_id", "of one taxpayer")
            .query(
                "subject",
                "a taxpayer, a delivery, a replay or your account, by its id; a webhook endpoint by `default` or its id",
            )
            .with_page_response::<IntegratorAuditView<'_>>("Audit retrieved successfully")
    })]
}

const PER_PAGE_DEFAULT: u64 = 15;

/// GET /v1/system-integrators/audit: lists the audit entries that the integrator may read, newest first.
async fn list_own_audit(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let taxpayer_id = query.checked_taxpayer_id("taxpayer_id")?;
    let filter = AuditFilter {
        taxpayer_id,
        subject: query.trimmed_text("subject"),
        ..AuditFilter::default()
    };
    let (entries, total) = audit::page_owned_by(&state.store, integrator, filter, page).await?;
    let items = entries.iter().map(IntegratorAuditView::from).collect();
    Ok(ApiResponse::ok(
        "Audit retrieved successfully",
        Paginator::new(page, total, items),
    ))
}
