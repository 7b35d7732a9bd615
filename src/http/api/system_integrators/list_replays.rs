//! GET /v1/system-integrators/taxpayers/{id}/webhook/replays: every replay that was asked for, the newest first.

use actix_web::web;

use crate::domain::access::caller::IntegratorCaller;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::paginator::Paginator;
use crate::http::views::replay::ReplayView;
use crate::store::webhooks;
use crate::store::webhooks::replays;

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) async fn list_replays(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::taxpayer(&state, integrator, &id).await?;
    let page = query.page(PER_PAGE_DEFAULT);
    let endpoint = webhooks::owned_by(state.store.reader(), taxpayer.id).await?;
    let (found, total) = replays::page_owned_by(&state.store, taxpayer.id, page).await?;
    let items = found.iter().map(|replay| ReplayView::at(endpoint.as_ref(), replay)).collect();
    Ok(ApiResponse::ok("Webhook replays retrieved successfully", Paginator::new(page, total, items)))
}
