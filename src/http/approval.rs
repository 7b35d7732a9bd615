//! Prepares the submission that follows an approval, for accounts with the setting `submit_after_approval`. The
//! document is made here from the stored invoice. The transaction that stores the approval also starts the submission.

use crate::actors::taxpayer::commands::{SubmissionAfterApproval, SubmissionOfStored};
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::kernel::codes::SettableStatus;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::{RunPayload, RunRequest};
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::document::ValidDocument;
use crate::http::forms::reader::AcceptedForm;
use crate::http::forms::submission::{self, DocumentSource};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::stored_invoice::{StoredInvoice, drop_refused_telephones, to_stored_faults};
use crate::store::accounts::taxpayers;
use crate::store::invoices;

/// The effects of an approval besides the new status: a submission, if any, and warnings.
#[derive(Debug, Default)]
pub(crate) struct PreparedApproval {
    /// `None` if no submission is to follow the approval.
    pub(crate) submission: Option<SubmissionAfterApproval>,
    /// Warnings for the approver, such as the reason why the invoice is not submitted.
    pub(crate) warnings: Vec<String>,
}

/// Prepares the submission that an approval starts. There is no submission if the new status is not the approval, or if
/// the account lacks the setting. An invoice that cannot be submitted is approved all the same; a warning says why it
/// is not submitted.
pub(crate) async fn prepare_approval(
    state: &ApiState,
    taxpayer: TaxpayerId,
    invoice_ref: &InvoiceRef,
    status: SettableStatus,
) -> Result<PreparedApproval, ApiError> {
    if status != SettableStatus::Approved {
        return Ok(PreparedApproval::default());
    }
    let supplier = taxpayers::find_by_id(state.store.reader(), taxpayer).await?;
    let supplier = supplier.filter(|supplier| supplier.settings.submit_after_approval);
    let Some(supplier) = supplier else {
        return Ok(PreparedApproval::default());
    };
    let invoice = invoices::find_owned_by_unique_no(
        &state.store,
        taxpayer,
        invoice_ref.kind,
        &invoice_ref.text,
    )
    .await?;
    let Some(invoice) = invoice else {
        return Ok(PreparedApproval::default());
    };
    if let Err(refusal) = supplier.check_verified(state.settings.verification) {
        return Ok(PreparedApproval::without_submission(refusal.to_string()));
    }
    let stored = StoredInvoice::load(&state.store, supplier, invoice).await?;
    let form = read_submission(&stored, &state.catalog.get())?
        .and_then(|form| submission::check_signing_terms(form, state.signing_terms()));
    let AcceptedForm {
        value: form,
        warnings,
    } = match form {
        Ok(form) => form,
        Err(faults) => return Ok(PreparedApproval::without_submission(faults.summary())),
    };
    let submission = SubmissionOfStored {
        request: submission_request(form),
        seen_updated_at: stored.invoice.updated_at,
    };
    Ok(PreparedApproval {
        submission: Some(SubmissionAfterApproval::Started(submission)),
        warnings,
    })
}

/// True if the account submits what is approved.
pub(crate) async fn submits_after_approval(
    state: &ApiState,
    taxpayer: TaxpayerId,
) -> Result<bool, ApiError> {
    let supplier = taxpayers::find_by_id(state.store.reader(), taxpayer).await?;
    Ok(supplier.is_some_and(|supplier| supplier.settings.submit_after_approval))
}

/// Reads the document of a stored invoice with the form of Submit. The inner `Result` has the faults of the document,
/// which name the fields of the invoice. The warnings name the telephone numbers that are left out of the document.
pub(crate) fn read_submission(
    stored: &StoredInvoice,
    catalog: &Catalog,
) -> Result<Result<AcceptedForm<ValidDocument>, Faults>, ApiError> {
    let mut fields = stored.document(catalog)?;
    let warnings = drop_refused_telephones(&mut fields);
    let source = DocumentSource::StoredInvoice;
    let form = submission::read(source, &fields, Some(&stored.supplier), catalog);
    Ok(form
        .map(|form| AcceptedForm { warnings, ..form })
        .map_err(|faults| to_stored_faults(&stored.invoice, catalog, faults)))
}

/// Returns the request that submits this document.
pub(crate) fn submission_request(form: ValidDocument) -> RunRequest {
    RunRequest {
        irn: form.irn,
        payload: RunPayload::Submit(Box::new(form.document)),
    }
}

impl PreparedApproval {
    /// Returns the request of the submission that starts with the approval; `None` if none starts.
    pub(crate) fn started_request(&self) -> Option<&RunRequest> {
        let submission = self.submission.as_ref()?.submission()?;
        Some(&submission.request)
    }

    fn without_submission(reason: String) -> Self {
        let warning = format!("the invoice is approved, but not submitted: {reason}");
        Self {
            submission: Some(SubmissionAfterApproval::NotPossible(reason)),
            warnings: vec![warning],
        }
    }
}
