//! The audit log, for operators.

use actix_web::web;

use crate::domain::access::caller::OpsViewer;
use crate::domain::kernel::audit::{ActorKind, AuditAction, AuditEntry};
use crate::http::forms::query::Query;
use crate::http::openapi::doc;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::audit::AuditView;
use crate::http::views::paginator::Paginator;
use crate::store::operations::audit::{self, AuditFilter};

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/ops/audit").get(list_audit, || {
        doc("list_audit", "Security changes and operator actions, newest first")
            .with_note(
                "The actor is an operator, an integrator, a contact person, a taxpayer's key, the command line, the \
                 authority or the service.",
            )
            .query("taxpayer_id", "of one taxpayer")
            .query("integrator_id", "those that an integrator may read")
            .query(
                "actor",
                "operator, integrator, contact, taxpayer-key, command-line, authority or service",
            )
            .query(
                "subject",
                "a run, a delivery, a replay, a reconciliation, a taxpayer, an integrator or an operator, by its id; a \
                 webhook endpoint by `default` or its id, together with taxpayer_id",
            )
            .query("operator", "the email of the operator who acted")
            .query("action", "such as `runs.move` or `session.sign-in`")
            .query("from", "at or after this time: RFC 3339, or a day or a time in UTC")
            .query("until", "before this time")
            .with_paging("100 at most")
            .with_page_response::<AuditView<'_>>("Audit retrieved successfully")
            .with_errors(&[ErrorCode::ValidationFailed])
    })]
}

/// GET /ops/audit: lists security changes and operator actions, newest first.
async fn list_audit(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let (entries, total) = audit::page(&state.store, read_audit_filter(&query)?, page).await?;
    let entries: Vec<_> = entries.into_iter().map(AuditEntry::without_email).collect();
    let operator_ids = entries
        .iter()
        .filter_map(|entry| entry.actor.operator_id())
        .collect();
    let operator_emails = audit::operator_emails(&state.store, operator_ids).await?;
    let items = entries
        .iter()
        .map(|entry| AuditView::new(entry, &operator_emails))
        .collect();
    Ok(ApiResponse::ok(
        "Audit retrieved successfully",
        Paginator::new(page, total, items),
    ))
}

/// Reads the filter of the audit log from the query string.
pub(crate) fn read_audit_filter(query: &Query) -> Result<AuditFilter, ApiError> {
    Ok(AuditFilter {
        integrator_id: query.integrator_id("integrator_id"),
        taxpayer_id: query.taxpayer_id("taxpayer_id"),
        actor: query.word("actor", ActorKind::parse, ActorKind::allowed_words)?,
        operator: query.trimmed_text("operator"),
        action: query.word("action", AuditAction::parse, AuditAction::allowed_words)?,
        from: query.utc_moment("from")?,
        until: query.utc_moment("until")?,
        subject: query.trimmed_text("subject"),
    })
}
