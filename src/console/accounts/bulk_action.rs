//! Approves or submits one of the invoices that a person selected in the list, with the same effect as the button on
//! the page of the invoice.

use jiff::Timestamp;

use crate::actors::taxpayer::commands::{
    IfUnchanged, OpenAuditedRun, OpenRun, SeenInvoice, SetStatus,
};
use crate::console::accounts::bulk_selection::BulkAction;
use crate::console::accounts::invoice_submission::prepare_submission;
use crate::console::badges::{Badge, badge};
use crate::console::session::accounts::AccountSession;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::kernel::codes::{SettableStatus, UniqueNoType};
use crate::domain::pipeline::RunRequest;
use crate::http::approval;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// The remark that is stored with the new status of each invoice.
const REMARK: &str = "Set in the dashboard, with others";

/// The outcome of a bulk action for one of the selected invoices or taxpayers.
pub(super) struct ActionOutcome {
    pub(super) is_done: bool,
    pub(super) badge: Badge,
    /// A message about the outcome, or the reason why nothing was done.
    pub(super) text: String,
}

impl ActionOutcome {
    pub(super) fn success(text: String) -> Self {
        Self {
            is_done: true,
            badge: badge("ok", "Done"),
            text,
        }
    }

    pub(super) fn not_done(badge: Badge, text: String) -> Self {
        Self {
            is_done: false,
            badge,
            text,
        }
    }
}

/// Approves or submits one invoice, or both, as `action` says. Does nothing if the invoice was changed after the preview
/// showed it. `seen_at` is the time of the invoice's last change when the preview was made.
pub(super) async fn apply_bulk_action(
    state: &ApiState,
    session: &AccountSession,
    action: BulkAction,
    invoice: &Invoice,
    seen_at: Option<Timestamp>,
) -> ActionOutcome {
    if let Some(reason) = action.obstacle(invoice) {
        let text = format!("It has changed meanwhile: {reason}.");
        return ActionOutcome::not_done(badge("warn", "Left out"), text);
    }
    let current_version = SeenInvoice::from(invoice);
    if seen_at != Some(current_version.updated_at) {
        let text = "It has changed since it was shown. Choose it again to see it as it is now.";
        return ActionOutcome::not_done(badge("warn", "Left out"), text.to_owned());
    }
    if !action.includes_approval() {
        return match submit_invoice(
            state,
            session,
            invoice,
            VersionToSubmit::Seen(current_version),
        )
        .await
        {
            Ok(()) => ActionOutcome::success("Sent to the authority.".to_owned()),
            Err(error) => ActionOutcome::not_done(badge("bad", "Failed"), error_text(&error)),
        };
    }
    let approved = match approve_invoice(state, session, invoice).await {
        Ok(approved) if action == BulkAction::Approve => {
            return ActionOutcome::success(approved.text);
        }
        Ok(approved) => approved,
        Err(error) => return ActionOutcome::not_done(badge("bad", "Failed"), error_text(&error)),
    };
    match submit_invoice(state, session, invoice, approved.version).await {
        Ok(()) => ActionOutcome::success(format!("{} Sent to the authority.", approved.text)),
        Err(error) => {
            let text = format!("Approved, but not submitted. {}", error_text(&error));
            ActionOutcome::not_done(badge("warn", "Approved only"), text)
        }
    }
}

/// An invoice after its approval.
struct ApprovedInvoice {
    /// A message for the approver, with warnings.
    text: String,
    version: VersionToSubmit,
}

/// The version of an invoice to submit.
enum VersionToSubmit {
    /// The stored invoice, if it has not changed since it was read.
    Seen(SeenInvoice),
    /// The document that the approval has made from the invoice.
    ApprovedDocument(RunRequest),
}

impl VersionToSubmit {
    /// Returns the version to submit after an approval. A later edit is not submitted, because the approver has not
    /// seen it. If the approval itself has started a submission, the document of that submission is used: unlike the
    /// invoice, it cannot change any more.
    fn after_approval(approved: &Invoice, submission: Option<RunRequest>) -> Self {
        submission.map_or_else(
            || Self::Seen(SeenInvoice::from(approved)),
            Self::ApprovedDocument,
        )
    }
}

/// Approves an invoice if it has not changed since it was loaded.
async fn approve_invoice(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
) -> Result<ApprovedInvoice, ApiError> {
    let invoice_ref = InvoiceRef {
        kind: UniqueNoType::PortalId,
        text: invoice.id.to_string(),
    };
    let status = SettableStatus::Approved;
    let approval =
        approval::prepare_approval(state, session.taxpayer, &invoice_ref, status).await?;
    let started_request = approval.started_request().cloned();
    let sentence = if started_request.is_some() {
        "Approved. The account submits what is approved."
    } else {
        "Approved."
    };
    let notes = approval.warnings.iter();
    let notes: Vec<_> = notes.map(|warning| format!(" Note: {warning}.")).collect();
    let text = format!("{sentence}{}", notes.concat());
    let command = IfUnchanged {
        seen: Some(SeenInvoice::from(invoice)),
        command: SetStatus {
            invoice: invoice_ref,
            status,
            remark: REMARK.to_owned(),
            submission: approval.submission,
        },
    };
    let approved = state.taxpayers.send(session.taxpayer, command).await?;
    Ok(ApprovedInvoice {
        text,
        version: VersionToSubmit::after_approval(&approved, started_request),
    })
}

/// Submits this version of an invoice.
async fn submit_invoice(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
    version: VersionToSubmit,
) -> Result<(), ApiError> {
    let (seen, run) = match version {
        VersionToSubmit::Seen(seen) => {
            let prepared = prepare_submission(state, session, invoice).await?;
            (Some(seen), prepared.command)
        }
        VersionToSubmit::ApprovedDocument(request) => (None, OpenRun(request)),
    };
    let command = IfUnchanged {
        seen,
        command: OpenAuditedRun(run),
    };
    state.taxpayers.send(session.taxpayer, command).await?;
    Ok(())
}

/// Returns the message of an error followed by its faults. Leaves out a message that only summarises the faults.
pub(super) fn error_text(error: &ApiError) -> String {
    let summary = error.faults.summary();
    let message = Some(error.message.to_string());
    let message = message.filter(|message| error.faults.is_empty() || *message != summary);
    let faults = error.faults.iter().map(ToString::to_string);
    message
        .into_iter()
        .chain(faults)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;
    use crate::domain::kernel::fault::{Fault, Faults};
    use crate::domain::pipeline::Operation;
    use crate::http::respond::code::ErrorCode;

    #[test]
    fn the_message_of_an_error_comes_before_its_faults() {
        let faults = || Faults::from(Fault::new("irn", "odd", "The number is odd."));
        let message = "Nothing was sent.";
        let refused = ApiError::new(ErrorCode::ValidationFailed, message).with_faults(faults());
        assert_eq!(error_text(&refused), "Nothing was sent. The number is odd.");
        assert_eq!(
            error_text(&ApiError::invalid(faults())),
            "The number is odd."
        );
    }

    #[test]
    fn the_document_of_the_approval_is_submitted_and_nothing_later() {
        let approved = signed(draft(vec![Line::sample()]));
        let approved_document = RunRequest::sample(approved.irn.as_str(), Operation::Submit);
        for submission in [None, Some(approved_document)] {
            let is_document = submission.is_some();
            match VersionToSubmit::after_approval(&approved, submission) {
                VersionToSubmit::Seen(seen) => {
                    assert!(!is_document);
                    let expected = SeenInvoice::from(&approved);
                    assert_eq!(seen.updated_at, expected.updated_at);
                }
                VersionToSubmit::ApprovedDocument(request) => {
                    assert!(is_document);
                    assert_eq!(request.irn, approved.irn);
                }
            }
        }
    }
}
