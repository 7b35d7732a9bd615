//! Approves, submits, cancels or takes back to draft one of the invoices that a person selected in the list, with the
//! same effect as the button on the page of the invoice.

use jiff::Timestamp;

use crate::actors::taxpayer::commands::{
    IfUnchanged, OpenAuditedRun, OpenRun, SeenInvoice, SetStatus,
};
use crate::console::accounts::bulk_selection::BulkAction;
use crate::console::accounts::invoice_submission::prepare_submission;
use crate::console::badges::{Badge, badge};
use crate::console::form_values::FormValues;
use crate::console::session::accounts::AccountSession;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::kernel::codes::{AuthorityStatus, SettableStatus, UniqueNoType};
use crate::domain::kernel::fault::Faults;
use crate::domain::pipeline::RunRequest;
use crate::domain::reference::catalog::Catalog;
use crate::http::approval;
use crate::http::forms::field::LONG_TEXT_CHARS_MAX;
use crate::http::forms::reader;
use crate::http::forms::update_status::REMARK_CHARS_MIN;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// The remark that is stored with the new status of each invoice if the person gives none.
const DEFAULT_REMARK: &str = "Changed in the dashboard, together with other invoices";

/// A bulk action as a person confirmed it.
pub(super) struct ConfirmedAction {
    pub(super) action: BulkAction,
    /// The remark that is stored with the new status of each invoice.
    remark: String,
}

impl ConfirmedAction {
    /// Reads the form of the preview. Its remark may be empty, and otherwise follows the rule of Update Invoice Status.
    pub(super) fn read(
        action: BulkAction,
        form: &FormValues,
        catalog: &Catalog,
    ) -> Result<Self, Faults> {
        let read = reader::read(&form.to_object(&["remark"]), catalog, |reader| {
            let remark = reader.optional("remark");
            Some(remark.long_text(REMARK_CHARS_MIN, LONG_TEXT_CHARS_MAX))
        });
        let remark = read?.value.unwrap_or_else(|| DEFAULT_REMARK.to_owned());
        Ok(Self { action, remark })
    }
}

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

/// Sets the status of one invoice, submits it, or both, as the action says. Does nothing if the invoice was changed after
/// the preview showed it. `seen_at` is the time of the invoice's last change when the preview was made.
pub(super) async fn apply_bulk_action(
    state: &ApiState,
    session: &AccountSession,
    confirmed: &ConfirmedAction,
    invoice: &Invoice,
    seen_at: Option<Timestamp>,
) -> ActionOutcome {
    let action = confirmed.action;
    if let Some(reason) = action.obstacle(invoice) {
        let text = format!("It was changed after the preview: it is {reason}.");
        return ActionOutcome::not_done(badge("warn", "Left out"), text);
    }
    let current_version = SeenInvoice::from(invoice);
    if seen_at != Some(current_version.updated_at) {
        let text = "It has changed since it was shown. Select it in the list again to see its current state.";
        return ActionOutcome::not_done(badge("warn", "Left out"), text.to_owned());
    }
    let Some(status) = action.new_status() else {
        return match submit_invoice(
            state,
            session,
            invoice,
            VersionToSubmit::Seen(current_version),
        )
        .await
        {
            Ok(()) => ActionOutcome::success("It is on its way to the authority.".to_owned()),
            Err(error) => ActionOutcome::not_done(badge("bad", "Failed"), error_text(&error)),
        };
    };
    let changed = match set_status(state, session, invoice, status, &confirmed.remark).await {
        Ok(changed) if !action.includes_submission() => {
            return ActionOutcome::success(changed.text);
        }
        Ok(changed) => changed,
        Err(error) => return ActionOutcome::not_done(badge("bad", "Failed"), error_text(&error)),
    };
    match submit_invoice(state, session, invoice, changed.version).await {
        Ok(()) => {
            let text = format!("{} It is on its way to the authority.", changed.text);
            ActionOutcome::success(text)
        }
        Err(error) => {
            let text = format!("Approved, but not submitted. {}", error_text(&error));
            ActionOutcome::not_done(badge("warn", "Approved only"), text)
        }
    }
}

/// An invoice whose status was set.
struct ChangedInvoice {
    /// A message for the person, with warnings.
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

/// Sets the status of an invoice if it has not changed since it was loaded.
async fn set_status(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
    status: SettableStatus,
    remark: &str,
) -> Result<ChangedInvoice, ApiError> {
    let invoice_ref = InvoiceRef {
        kind: UniqueNoType::PortalId,
        text: invoice.id.to_string(),
    };
    let approval =
        approval::prepare_approval(state, session.taxpayer, &invoice_ref, status).await?;
    let started_request = approval.started_request().cloned();
    let notes = approval.warnings.iter();
    let notes: Vec<_> = notes.map(|warning| format!(" Note: {warning}.")).collect();
    let command = IfUnchanged {
        seen: Some(SeenInvoice::from(invoice)),
        command: SetStatus {
            invoice: invoice_ref,
            status,
            remark: remark.to_owned(),
            submission: approval.submission,
        },
    };
    let changed = state.taxpayers.send(session.taxpayer, command).await?;
    let sentence = change_sentence(status, started_request.is_some(), &changed);
    Ok(ChangedInvoice {
        text: format!("{sentence}{}", notes.concat()),
        version: VersionToSubmit::after_approval(&changed, started_request),
    })
}

/// Says which status an invoice has now. `is_submitted` is true if its approval has started a submission.
fn change_sentence(status: SettableStatus, is_submitted: bool, changed: &Invoice) -> &'static str {
    match status {
        SettableStatus::Approved if is_submitted => {
            "Approved. This account submits approved invoices automatically."
        }
        SettableStatus::Approved => "Approved.",
        SettableStatus::Cancelled if changed.authority.status == AuthorityStatus::Queued => {
            "Cancelled. A call of its submission may have reached the authority: the submission goes on until its outcome is known."
        }
        SettableStatus::Cancelled => "Cancelled.",
        SettableStatus::Draft => "It is a draft again.",
    }
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
