//! The runs on the overview: those that need a person, and those that continue by themselves.

use std::collections::HashMap;

use jiff::Timestamp;
use url::form_urlencoded::Serializer;

use crate::console::accounts::invoice_fields::{
    field_label, form_field_for_document_path, replace_path,
};
use crate::console::accounts::pause_cause::{PauseCause, RunsPausedByOperators};
use crate::console::accounts::timeline::operation_name;
use crate::console::badges::{Badge, badge};
use crate::console::deadline_words::DeadlineWords;
use crate::domain::access::session::ContactRole;
use crate::domain::incident::Incident;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::{AuthorityStatus, WorkflowStatus};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::signed_copy::{SIGNED_OTHERWISE_MESSAGE, has_other_signed_document};
use crate::domain::pipeline::{Operation, Run, RunState, WaitReason};
use crate::domain::reference::catalog::Catalog;
use crate::http::explain::authority;
use crate::http::respond::error::{ApiError, capitalize};
use crate::http::state::ApiState;
use crate::store::invoices::{self, InvoiceIdentifiers};
use crate::store::runs;

/// The number of runs that each part of the page shows.
const RUNS_MAX: u64 = 6;
const NEEDED_SHOWN_MAX: usize = 6;
/// The number of stopped runs that are searched for those that need a person.
const STOPPED_MAX: u64 = 200;

/// A run that was rejected or is paused.
pub(super) struct StoppedRunLine {
    pub(super) number: String,
    pub(super) name: &'static str,
    pub(super) badge: Badge,
    pub(super) why: String,
    /// The legal deadline of a submission; `None` for other runs, whose invoice is signed already.
    pub(super) deadline: Option<DeadlineWords>,
    /// The address of the invoice, or of a search for it if it is not stored.
    pub(super) address: String,
    pub(super) link_label: &'static str,
}

/// A run that continues by itself.
pub(super) struct ProgressLine {
    pub(super) number: String,
    pub(super) name: &'static str,
    pub(super) why: &'static str,
    /// The time at which the run is expected to end; `None` if it cannot be predicted.
    pub(super) expected: Option<Timestamp>,
    /// True if the run waits until an operator acts.
    pub(super) is_held: bool,
    /// True if the run waits until the operator of the service has mended a fault of the service.
    pub(super) is_fault_of_ours: bool,
    /// The legal deadline of a submission; `None` for other runs, whose invoice is signed already.
    pub(super) deadline: Option<DeadlineWords>,
    pub(super) address: String,
}

pub(super) async fn stopped_run_lines(
    state: &ApiState,
    taxpayer: TaxpayerId,
    base: &str,
    role: ContactRole,
) -> Result<Vec<StoppedRunLine>, ApiError> {
    let states = [RunState::Refused, RunState::Paused];
    let runs = runs::stopped_owned_by(&state.store, taxpayer, &states, STOPPED_MAX).await?;
    let stored_invoices = load_invoices(state, taxpayer, &runs).await?;
    let now = state.now();
    let stopped_runs = runs
        .into_iter()
        .filter(|run| needs_person(&stored_invoices, run));
    let stopped_runs: Vec<_> = stopped_runs.take(NEEDED_SHOWN_MAX).collect();
    let pauses = RunsPausedByOperators::load(&state.store, &stopped_runs).await?;
    let catalog = state.catalog.get();
    let line = |run: Run| {
        let cause = pauses.cause(&run);
        StoppedRunLine {
            number: run.irn.invoice_no().to_owned(),
            name: operation_name(run.operation()),
            badge: cause.map_or(badge("bad", "Rejected"), PauseCause::badge),
            why: cause.map_or_else(
                || rejection_reason(&run, stored_invoices.get(&run.irn.key()), &catalog),
                |cause| cause.explanation().to_owned(),
            ),
            deadline: legal_deadline(&run, now),
            address: run_address(base, &stored_invoices, &run),
            link_label: link_label(&run, role),
        }
    };
    Ok(stopped_runs.into_iter().map(line).collect())
}

/// Returns the legal deadline of a submission. Other runs have none, because their invoice is signed already.
fn legal_deadline(run: &Run, now: Timestamp) -> Option<DeadlineWords> {
    let is_submission = run.operation() == Operation::Submit;
    is_submission.then(|| DeadlineWords::new(run.deadline_at, now))
}

/// Returns the label of the link to a stopped run. Only the invoice of a rejected submission can be corrected: for
/// other runs it is signed already.
fn link_label(run: &Run, role: ContactRole) -> &'static str {
    let is_submission = run.operation() == Operation::Submit;
    let may_act = role >= ContactRole::Accountant;
    if may_act && is_submission && run.state() == RunState::Refused {
        "Correct"
    } else {
        "Look at it"
    }
}

/// True if somebody has to act on the run. Nobody has to for a cancelled invoice, or for a rejected submission of an
/// invoice that was changed since.
fn needs_person(stored_invoices: &KnownInvoices, run: &Run) -> bool {
    let is_rejected_submission =
        run.operation() == Operation::Submit && run.state() == RunState::Refused;
    stored_invoices.get(&run.irn.key()).is_none_or(|stored| {
        stored.status != WorkflowStatus::Cancelled
            && (!is_rejected_submission || stored.authority.status == AuthorityStatus::Rejected)
    })
}

pub(super) async fn progress_lines(
    state: &ApiState,
    taxpayer: TaxpayerId,
    base: &str,
) -> Result<Vec<ProgressLine>, ApiError> {
    let states = [RunState::Waiting];
    let runs = runs::stopped_owned_by(&state.store, taxpayer, &states, RUNS_MAX).await?;
    let stored_invoices = load_invoices(state, taxpayer, &runs).await?;
    let now = state.now();
    let holds = state.pipeline.backlog.holds();
    let report = state.incidents.last_report();
    let has_fault_of_ours = report.incidents.iter().any(Incident::is_fault_of_ours);
    let mut lines = Vec::with_capacity(runs.len());
    for run in runs {
        let place = state.pipeline.backlog.queue_place(&run).await?;
        let prediction = place.map(|place| place.end.prediction);
        let is_held = holds.needs_operator(&run);
        let is_fault_of_ours = has_fault_of_ours && waits_for_authority(run.wait_reason());
        lines.push(ProgressLine {
            number: run.irn.invoice_no().to_owned(),
            name: operation_name(run.operation()),
            why: if is_held {
                "The operator of the service holds it back."
            } else if is_fault_of_ours {
                "This service cannot use the tax authority."
            } else {
                wait_reason_words(run.wait_reason())
            },
            is_held,
            is_fault_of_ours,
            // During an outage the prediction is a mere guess, so it is not shown.
            expected: prediction
                .filter(|prediction| prediction.latest.is_some() && !is_fault_of_ours)
                .map(|prediction| prediction.expected),
            deadline: legal_deadline(&run, now),
            address: run_address(base, &stored_invoices, &run),
        });
    }
    Ok(lines)
}

/// The stored invoices of runs, by their IRN in the form in which it is compared (`Irn::key`).
type KnownInvoices = HashMap<String, Invoice>;

async fn load_invoices(
    state: &ApiState,
    taxpayer: TaxpayerId,
    runs: &[Run],
) -> Result<KnownInvoices, ApiError> {
    let names = InvoiceIdentifiers {
        irn_keys: runs.iter().map(|run| run.irn.key()).collect(),
        ..InvoiceIdentifiers::default()
    };
    let reader = state.store.reader();
    let found = invoices::find_owned_by_identifiers(reader, taxpayer, names).await?;
    let found_invoices = found.into_iter();
    Ok(found_invoices
        .map(|invoice| (invoice.irn.key(), invoice))
        .collect())
}

fn run_address(base: &str, stored_invoices: &KnownInvoices, run: &Run) -> String {
    if let Some(stored) = stored_invoices.get(&run.irn.key()) {
        return format!("{base}/invoices/{}", stored.id);
    }
    let query = Serializer::new(String::new())
        .append_pair("q", run.irn.as_str())
        .finish();
    format!("{base}/invoices?{query}")
}

/// Returns the first reason of a rejection in plain words. It names a field as the page of the invoice does.
fn rejection_reason(run: &Run, invoice: Option<&Invoice>, catalog: &Catalog) -> String {
    if has_other_signed_document(run) {
        return capitalize(SIGNED_OTHERWISE_MESSAGE);
    }
    let words = run.last_error.as_deref();
    let words = words.unwrap_or("The authority gave no reason.");
    let first = authority::explain(words, &run.document())
        .into_iter()
        .next();
    let Some(why) = first else {
        return words.to_owned();
    };
    match (invoice, &why.path) {
        (Some(invoice), Some(path)) => {
            let label = field_label(&form_field_for_document_path(invoice, catalog, path));
            replace_path(&why.message, path, &label)
        }
        _ => why.message,
    }
}

/// True if the run waits because a call to the authority failed, and not for somebody else.
fn waits_for_authority(reason: Option<WaitReason>) -> bool {
    matches!(
        reason,
        Some(WaitReason::AuthorityUnavailable | WaitReason::AuthorityThrottles) | None
    )
}

fn wait_reason_words(reason: Option<WaitReason>) -> &'static str {
    match reason {
        Some(WaitReason::HealthCheckDown) => "The authority says that it is not well.",
        Some(WaitReason::AccessPointOffline) => "An access point is offline.",
        Some(WaitReason::AuthorityThrottles) => "The authority asked to be called less often.",
        Some(WaitReason::AuthorityUnavailable) | None => "The authority does not answer.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::ids::RunId;
    use crate::domain::pipeline::{RunPhase, RunRequest};

    #[test]
    fn only_a_submission_has_a_deadline_and_only_a_rejected_one_is_corrected() {
        let now = Timestamp::UNIX_EPOCH;
        for (operation, state, has_deadline, expected) in [
            (Operation::Submit, RunState::Refused, true, "Correct"),
            (Operation::Submit, RunState::Paused, true, "Look at it"),
            (Operation::Transmit, RunState::Refused, false, "Look at it"),
            (Operation::Report, RunState::Refused, false, "Look at it"),
            (Operation::Payment, RunState::Refused, false, "Look at it"),
            (Operation::Payment, RunState::Paused, false, "Look at it"),
        ] {
            let request = RunRequest::sample("INV001-94AD90FB-20261121", operation);
            let run = Run {
                phase: RunPhase::sample(state),
                ..Run::new(RunId::nil(), TaxpayerId(7), request, now)
            };
            let deadline = legal_deadline(&run, now);
            assert_eq!(deadline.is_some(), has_deadline, "{operation} {state}");
            let label = link_label(&run, ContactRole::Accountant);
            assert_eq!(label, expected, "{operation} {state}");
            let label = link_label(&run, ContactRole::ReadOnly);
            assert_eq!(label, "Look at it", "{operation} {state}");
        }
    }
}
