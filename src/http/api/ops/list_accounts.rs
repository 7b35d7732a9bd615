//! GET /ops/integrators and /ops/operators: the accounts with their API keys, in the order of their ids.

use actix_web::web;

use crate::domain::access::caller::{KeyKind, OperatorCaller};
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::account::AccountView;
use crate::http::views::paginator::Paginator;
use crate::store::accounts;

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) async fn list_integrators(
    state: web::Data<ApiState>,
    _: OperatorCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    list(&state, KeyKind::Integrator, "Integrators retrieved successfully", &query).await
}

pub(crate) async fn list_operators(
    state: web::Data<ApiState>,
    _: OperatorCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    list(&state, KeyKind::Operator, "Operators retrieved successfully", &query).await
}

async fn list(
    state: &ApiState,
    kind: KeyKind,
    message: &'static str,
    query: &Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let (found, total) = accounts::page(&state.store, kind, page).await?;
    let items = found.iter().map(|holder| AccountView::new(holder, state.now())).collect();
    Ok(ApiResponse::ok(message, Paginator::new(page, total, items)))
}
