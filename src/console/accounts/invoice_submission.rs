//! Submits, retries and transmits one invoice for an accountant, with the commands and the pipeline of the API.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use tokio::time::Instant;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::{
    IfUnchanged, OpenAuditedRun, OpenRun, RecheckRun, SeenInvoice, StoppedRun,
};
use crate::console::accounts::invoice::{InvoiceForms, find, render};
use crate::console::accounts::invoice_fields::form_field_name;
use crate::console::accounts::pause_cause::{InvoiceRuns, PauseCause, RunsPausedByOperators};
use crate::console::accounts::seen_invoice;
use crate::console::accounts::source_list::SourceList;
use crate::console::form_values::{FormState, FormValues};
use crate::console::page::{Answer, Form};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::domain::invoice::Invoice;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::pipeline::{Operation, Run, RunPayload, RunRequest, RunState};
use crate::http::api::app::documents::prepare_stored_submission;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::runs;

/// The longest time that a page waits for the authority. Afterwards the page says that the invoice is waiting.
const RESPONSE_WAIT_MAX: Duration = Duration::from_secs(4);

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/{id}/submit").form(handle_submit_form),
        path("/dashboard/{taxpayer}/invoices/{id}/retry")
            .form(retry_run)
            .allows_form_repeat(),
        path("/dashboard/{taxpayer}/invoices/{id}/transmit").form(transmit_invoice),
    ]
}

/// POST of the button Submit: submits the stored invoice, like the API call Submit with only an IRN.
async fn handle_submit_form(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let invoice = find(&state, &session, &ids.1).await?;
    match submit_seen_version(&state, &session, &invoice, &form.0).await {
        Ok(run) => go_to_run(&state, &session, &request, &run, invoice.id).await,
        Err(error) => {
            let forms = InvoiceForms::from_submission_error(error)?;
            render(&state, &request, &session, invoice, forms).await
        }
    }
}

async fn submit_seen_version(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
    form: &FormValues,
) -> Result<Run, ApiError> {
    let seen = seen_invoice::read_seen_version(form, invoice)?;
    let command = submission_command(state, session, invoice, seen).await?;
    start_run(state, session, command).await
}

impl InvoiceForms {
    /// Returns the forms of the page if the invoice lacks something for its submission, was changed meanwhile, or
    /// cannot be submitted now. Returns any other error unchanged.
    pub(super) fn from_submission_error(error: ApiError) -> Result<Self, ApiError> {
        let is_stale = error.status == StatusCode::PRECONDITION_FAILED;
        if error.faults.is_empty() && !is_stale && error.code != ErrorCode::Overloaded {
            return Err(error);
        }
        let faults = error.faults.clone().rename_fields(form_field_name);
        Ok(Self {
            is_stale,
            submission: FormState::from_refusal(error.with_faults(faults), FormValues::default())?,
            ..Self::default()
        })
    }
}

/// Returns the command that submits the stored invoice. The command fails if the invoice was changed since it was seen.
async fn submission_command(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
    seen: SeenInvoice,
) -> Result<IfUnchanged<OpenAuditedRun>, ApiError> {
    Ok(IfUnchanged {
        seen: Some(seen),
        command: OpenAuditedRun(prepare_submission(state, session, invoice).await?.command),
    })
}

/// Submits the stored invoice after another command of the same form, which has already stored the form's idempotency
/// claim.
pub(super) async fn perform_submission(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
    seen: SeenInvoice,
) -> Result<Run, ApiError> {
    let command = submission_command(state, session, invoice, seen).await?;
    let deadline = Instant::now() + RESPONSE_WAIT_MAX;
    let run = state.taxpayers.send(session.taxpayer, command).await?;
    Ok(state.pipeline.wait_for_response(run, deadline).await?)
}

/// Returns the command that submits the stored invoice, unless the invoice is changed before the command is executed.
pub(super) async fn prepare_submission(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
) -> Result<IfUnchanged<OpenRun>, ApiError> {
    let taxpayer = taxpayers::find_by_id(state.store.reader(), session.taxpayer).await?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    let prepared = prepare_stored_submission(state, &taxpayer, &invoice.irn).await?;
    Ok(prepared.command)
}

async fn start_run(
    state: &ApiState,
    session: &AccountSession,
    command: impl TaxpayerCommand<Output = Run>,
) -> Result<Run, ApiError> {
    let deadline = Instant::now() + RESPONSE_WAIT_MAX;
    let run = session.send(state, command).await?;
    Ok(state.pipeline.wait_for_response(run, deadline).await?)
}

/// POST of the button Try now: makes the stopped run of the invoice call the authority at once.
async fn retry_run(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    _: Form<FormValues>,
) -> Answer {
    let invoice = find(&state, &session, &ids.1).await?;
    let keys = vec![invoice.irn.key()];
    let all_runs =
        runs::find_owned_by_irn_keys(state.store.reader(), session.taxpayer, keys).await?;
    let pauses = RunsPausedByOperators::load(&state.store, &all_runs).await?;
    let runs = InvoiceRuns {
        runs: &all_runs,
        pauses: &pauses,
    };
    let run = runs
        .continuable_run()
        .ok_or_else(|| nothing_to_retry_error(runs))?;
    let stopped_run = StoppedRun {
        run: run.id,
        irn: run.irn.clone(),
        seen_updated_at: run.updated_at,
    };
    let deadline = Instant::now() + RESPONSE_WAIT_MAX;
    let run = session.send(&state, RecheckRun(stopped_run)).await?;
    let run = state.pipeline.wait_for_response(run, deadline).await?;
    go_to_run(&state, &session, &request, &run, invoice.id).await
}

/// Returns the error for an invoice without a run that the account can continue. A paused run needs an operator.
fn nothing_to_retry_error(runs: InvoiceRuns<'_>) -> ApiError {
    if let Some(cause) = runs.pause_cause() {
        return ApiError::new(ErrorCode::InvalidTransition, cause.explanation());
    }
    let message = "Nothing about this invoice waits any more. Go back and reload the page.";
    ApiError::new(ErrorCode::RunNotFound, message)
}

/// POST of the button Transmit: starts to transmit the signed invoice to the customer.
async fn transmit_invoice(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    _: Form<FormValues>,
) -> Answer {
    let invoice = find(&state, &session, &ids.1).await?;
    if !invoice.authority.signed {
        let message = "The authority has not signed this invoice yet. Submit it first.";
        let error = ApiError::new(ErrorCode::InvoiceNotSigned, message);
        return Err(error.with_status(StatusCode::CONFLICT));
    }
    let taxpayer = taxpayers::find_by_id(state.store.reader(), session.taxpayer).await?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    taxpayer.check_verified(state.settings.verification)?;
    let transmission = RunRequest {
        irn: invoice.irn.clone(),
        payload: RunPayload::Transmit,
    };
    let run = start_run(&state, &session, OpenAuditedRun(OpenRun(transmission))).await?;
    go_to_run(&state, &session, &request, &run, invoice.id).await
}

/// Redirects to the page of the invoice, with a notice about the outcome of the run.
pub(super) async fn go_to_run(
    state: &ApiState,
    session: &AccountSession,
    request: &HttpRequest,
    run: &Run,
    invoice: InvoiceId,
) -> Answer {
    let pauses = RunsPausedByOperators::load(&state.store, std::slice::from_ref(run)).await?;
    let cause = pauses.cause(run);
    let sentence = cause.map_or_else(|| outcome_sentence(run), PauseCause::explanation);
    let source = SourceList::from_request(request, state);
    Ok(source.go_to_invoice(session, invoice, sentence))
}

fn outcome_sentence(run: &Run) -> &'static str {
    match (run.state(), run.operation()) {
        (RunState::Succeeded, Operation::Submit) => "The authority signed the invoice.",
        (RunState::Succeeded, Operation::Transmit) => {
            "The invoice was transmitted to the customer."
        }
        (RunState::Succeeded, _) => "It is done.",
        (RunState::Refused, _) => "The authority rejected the invoice. The reasons are below.",
        (RunState::Paused, _) => "It is paused.",
        (RunState::Cancelled, _) => "It was cancelled.",
        (RunState::Running | RunState::Waiting, _) => {
            "The invoice is on its way. The authority has not answered yet; the service goes on by itself."
        }
    }
}
