//! One run: why it waits, its steps as a timeline, what was sent, what operators did with it, and what they can do now.

use actix_web::web;
use askama::Template;

use crate::actors::taxpayer::commands::ApplyOperatorAction;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::operators::audit::{self, AuditLine};
use crate::console::operators::contact_data;
use crate::console::operators::reason::ReasonForm;
use crate::console::page::{Answer, Form, go_to, show};
use crate::console::session::operators::{Operator, OperatorSession, Viewer};
use crate::domain::invoice::redaction;
use crate::domain::pipeline::{OperatorAction, Run, StepRecord};
use crate::http::extract::path_ids;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::search::irn_page_path;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::operations::audit::AuditFilter;
use crate::store::runs::step_log;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console/runs/{id}").page(show_run),
        path("/console/runs/{id}/contact-data").form(show_contact_data),
        path("/console/runs/{id}/{move}").form(move_run),
    ]
}

#[derive(Template)]
#[template(path = "operators/run.html")]
struct RunPage {
    frame: Frame,
    run: Run,
    badge: Badge,
    taxpayer: String,
    irn_address: String,
    is_overdue: bool,
    /// The actor who asked for the run, with its number but without a name; empty if it was not recorded.
    asker: String,
    why: String,
    moves: Vec<MoveButton>,
    steps: Vec<StepEntry>,
    /// True if the page shows the maximum number of calls, so that older ones may be missing.
    has_newest_steps_only: bool,
    /// The document that is sent to the authority.
    document: String,
    /// True if contact data is shown and not hidden.
    is_contact_data_shown: bool,
    audit: Vec<AuditLine>,
}

/// A button that moves the run, such as "pause".
struct MoveButton {
    word: &'static str,
    label: &'static str,
    class: &'static str,
    hint: &'static str,
}

struct StepEntry {
    record: StepRecord,
    class: &'static str,
    outcome: &'static str,
}

/// GET /console/runs/{id}: shows a run.
async fn show_run(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    id: web::Path<String>,
) -> Answer {
    let run = path_ids::find_run(&state, &id).await?;
    render(&state, &session, run, false).await
}

/// POST `/console/runs/{id}/contact-data`: shows the same page with contact data, which the audit records.
async fn show_contact_data(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    id: web::Path<String>,
    form: Form<ReasonForm>,
) -> Answer {
    let run = path_ids::find_run(&state, &id).await?;
    let reason = form.0.reason;
    contact_data::record_contact_data_view(&state, &session, run.taxpayer_id, &run.irn, reason)
        .await?;
    render(&state, &session, run, true).await
}

async fn render(
    state: &ApiState,
    session: &OperatorSession,
    run: Run,
    is_contact_data_shown: bool,
) -> Answer {
    let now = state.now();
    let steps = step_log::newest_steps(&state.store, run.taxpayer_id, run.id).await?;
    let taxpayer = taxpayers::find_by_id(state.store.reader(), run.taxpayer_id).await?;
    let filter = AuditFilter {
        subject: Some(run.id.to_string()),
        ..AuditFilter::default()
    };
    let document = run.document();
    let document = if is_contact_data_shown {
        document
    } else {
        redaction::redact(document)
    };
    let page = RunPage {
        frame: Frame::for_operator(session, "Run"),
        why: state.pipeline.explain_wait(&run, now).await?,
        audit: audit::load_newest(state, filter).await?,
        badge: run.state().into(),
        taxpayer: taxpayer.map_or_else(|| run.taxpayer_id.to_string(), |found| found.name),
        irn_address: irn_page_path(run.taxpayer_id, &run.irn),
        is_overdue: run.is_overdue(now),
        asker: run
            .asked_by
            .as_ref()
            .map(audit::numbered_actor)
            .unwrap_or_default(),
        moves: run
            .allowed_actions()
            .into_iter()
            .map(MoveButton::from)
            .collect(),
        has_newest_steps_only: steps.len() == step_log::CALLS_SHOWN_MAX,
        steps: steps.into_iter().map(StepEntry::from).collect(),
        document: format!("{document:#}"),
        is_contact_data_shown,
        run,
    };
    show(&page)
}

/// POST /console/runs/{id}/{move}: pauses, resumes, retries or cancels a run.
async fn move_run(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    names: web::Path<(String, String)>,
    form: Form<ReasonForm>,
) -> Answer {
    let (id, word) = names.into_inner();
    let to = OperatorAction::parse(&word).ok_or_else(ApiError::route_not_found)?;
    let by = form.0.to_operator_request(&state, &session)?;
    let run = path_ids::find_run(&state, &id).await?;
    let command = ApplyOperatorAction {
        run: run.id,
        irn: run.irn,
        to,
        by,
    };
    let run = state.taxpayers.send(run.taxpayer_id, command).await?;
    let notice = match to {
        OperatorAction::Pause => "The run is paused.",
        OperatorAction::Resume => "The run goes on.",
        OperatorAction::Retry => "The run is tried again now.",
        OperatorAction::Cancel => "The run is cancelled.",
    };
    Ok(go_to(&format!("/console/runs/{}", run.id), notice))
}

impl From<OperatorAction> for MoveButton {
    fn from(action: OperatorAction) -> Self {
        let (label, class, hint) = match action {
            OperatorAction::Pause => ("Pause", "", "It stops before its next step."),
            OperatorAction::Resume => ("Resume", "primary", "It goes on where it stopped."),
            OperatorAction::Retry => (
                "Retry now",
                "primary",
                "It goes on at once, and its time for retries begins again.",
            ),
            OperatorAction::Cancel => (
                "Cancel",
                "danger",
                "It ends, and the taxpayer may change or send the invoice again.",
            ),
        };
        Self {
            word: action.as_str(),
            label,
            class,
            hint,
        }
    }
}

impl From<StepRecord> for StepEntry {
    fn from(record: StepRecord) -> Self {
        let (class, outcome) = match record.outcome.as_deref() {
            None => ("wait", "No answer is recorded yet"),
            Some("done") => ("ok", "Done"),
            Some("unchanged") => ("ok", "The authority had it already"),
            Some("refused") => ("bad", "Rejected"),
            Some("retry") => ("warn", "Failed; to be tried again"),
            Some("held") => ("wait", "Not called: calls are held back"),
            Some("paused") => ("bad", "Failed; the run is paused"),
            Some("interrupted") => ("warn", "The service ended while it was under way"),
            Some(_) => ("", "Ended"),
        };
        Self {
            record,
            class,
            outcome,
        }
    }
}
