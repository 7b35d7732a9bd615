//! The audit: who changed what, when and why. The database refuses to change or delete its entries.

use std::collections::HashMap;

use actix_web::web;
use askama::Template;
use database::page::Page;

use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::operators::list_query::ListQuery;
use crate::console::page::Answer;
use crate::console::session::operators::Viewer;
use crate::domain::kernel::audit::{
    Actor, ActorKind, ActorWithName, AuditAction, AuditEntry, NamedActor,
};
use crate::http::api::ops::audit::read_audit_filter;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::operations::audit;
use crate::store::operations::audit::AuditFilter;

/// The newest entries, which other pages show.
const NEWEST_PAGE: Page = Page {
    number: 1,
    per_page: 10,
};

pub(super) fn paths() -> Vec<Path> {
    vec![path("/console/audit").page(list_audit_entries)]
}

#[derive(Template)]
#[template(path = "operators/audit.html")]
struct AuditPage {
    frame: Frame,
    list: ListQuery,
    audit: Vec<AuditLine>,
    pages: PagePosition,
}

/// An entry of the audit as pages show it.
pub(super) struct AuditLine {
    pub(super) entry: AuditEntry,
    pub(super) actor: String,
    /// The address of the page about the subject of the entry; `None` if there is none.
    pub(super) subject_page: Option<String>,
}

/// GET /console/audit: lists the entries that match, newest first.
async fn list_audit_entries(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let list = ListQuery::new(&query);
    let filter = read_audit_filter(&list.0)?;
    let (found, total) = audit::page(&state.store, filter, list.page()).await?;
    let page = AuditPage {
        frame: Frame::for_operator(&session, "Audit"),
        pages: list.pages("/console/audit", total),
        audit: to_audit_lines(&state, found).await?,
        list,
    };
    show_list(&page.pages, &page)
}

/// Returns the newest entries that match.
pub(super) async fn load_newest(
    state: &ApiState,
    filter: AuditFilter,
) -> Result<Vec<AuditLine>, ApiError> {
    let (found, _) = audit::page(&state.store, filter, NEWEST_PAGE).await?;
    to_audit_lines(state, found).await
}

async fn to_audit_lines(
    state: &ApiState,
    found: Vec<AuditEntry>,
) -> Result<Vec<AuditLine>, ApiError> {
    let operators = found
        .iter()
        .filter_map(|entry| entry.actor.operator_id())
        .collect();
    let operators = audit::operator_emails(&state.store, operators).await?;
    let lines = found.into_iter().map(|entry| AuditLine {
        actor: actor_words(entry.actor, &operators),
        subject_page: subject_page(&entry),
        entry: entry.without_email(),
    });
    Ok(lines.collect())
}

fn actor_words(actor: Actor, operators: &HashMap<i64, String>) -> String {
    let email = actor.operator_id().and_then(|id| operators.get(&id));
    email.map_or_else(
        || numbered_actor(&NamedActor::from(&ActorWithName::from(actor))),
        String::clone,
    )
}

/// Returns an actor as operators see it: without the name of a person, which is contact data.
pub(super) fn numbered_actor(actor: &NamedActor) -> String {
    let id = actor.id.as_deref().unwrap_or_default();
    match actor.kind {
        ActorKind::Operator => format!("operator {id}"),
        ActorKind::Integrator => format!("integrator {id}"),
        ActorKind::Contact => format!("contact person {id}"),
        ActorKind::TaxpayerKey => format!("API key {id}"),
        ActorKind::CommandLine => "command line".to_owned(),
        ActorKind::Authority => "tax authority".to_owned(),
        ActorKind::Service => "this service".to_owned(),
    }
}

fn subject_page(entry: &AuditEntry) -> Option<String> {
    let subject = &entry.subject;
    match entry.action {
        AuditAction::PauseRun
        | AuditAction::ResumeRun
        | AuditAction::RetryRun
        | AuditAction::CancelRun => Some(format!("/console/runs/{subject}")),
        AuditAction::Reconcile | AuditAction::DecideFindings | AuditAction::ReopenFindings => {
            Some(format!("/console/reconciliations/{subject}"))
        }
        _ => entry
            .taxpayer_id
            .map(|taxpayer| format!("/console/taxpayers/{taxpayer}")),
    }
}
