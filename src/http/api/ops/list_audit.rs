//! GET /ops/audit: security changes and operator actions, newest first; filtered by actor, integrator, taxpayer or subject.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::domain::kernel::audit::ActorKind;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::audit::AuditView;
use crate::http::views::paginator::Paginator;
use crate::store::operations::audit::{self, AuditFilter};

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) async fn list_audit(
    state: web::Data<ApiState>,
    _: OperatorCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let subject = query.equal("subject");
    let integrator_id = query.integrator_id("integrator_id");
    let actor = query.word("actor", ActorKind::parse, ActorKind::allowed)?;
    let taxpayer_id = query.taxpayer_id("taxpayer_id");
    let filter = AuditFilter { integrator_id, taxpayer_id, actor, subject };
    let (found, total) = audit::page(&state.store, filter, page).await?;
    let operators = found.iter().filter_map(|entry| entry.actor.operator_id()).collect();
    let operators = audit::operators(&state.store, operators).await?;
    let items = found.iter().map(|entry| AuditView::new(entry, &operators)).collect();
    Ok(ApiResponse::ok("Audit retrieved successfully", Paginator::new(page, total, items)))
}
