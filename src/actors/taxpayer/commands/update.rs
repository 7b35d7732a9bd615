//! Changes an invoice: its status, or its customer, lines and details. May cancel a submission that is still open.

use jiff::Timestamp;
use serde_json::json;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::create::{resolve_customer, resolve_items};
use crate::actors::taxpayer::commands::runs::OpenRun;
use crate::actors::taxpayer::commands::signature::unlocked_after_refusal;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::CommandSize;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::invoice::revision::{RevisedLine, RevisedParts, Revision};
use crate::domain::invoice::totals;
use crate::domain::invoice::{Invoice, Line};
use crate::domain::kernel::codes::{AuthorityStatus, SettableStatus, WorkflowStatus};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::payment::Payment;
use crate::domain::pipeline::{Operation, Run, RunRequest, RunState};
use crate::store::ids::IdKind;
use crate::store::invoices::customers_and_items::ItemIdentifiers;

pub struct SetStatus {
    pub invoice: InvoiceRef,
    pub status: SettableStatus,
    pub remark: String,
    /// The submission that follows an approval; `None` if none is to follow.
    pub submission: Option<SubmissionAfterApproval>,
}

/// The submission that follows an approval of an account that submits what is approved.
#[derive(Debug, Clone)]
pub enum SubmissionAfterApproval {
    /// The submission starts together with the approval.
    Started(SubmissionOfStored),
    /// The invoice cannot be submitted, for this reason. It is approved all the same, and the event of the approval
    /// keeps the reason.
    NotPossible(String),
}

/// A submission of the stored invoice, made from the invoice as the sender read it.
#[derive(Debug, Clone)]
pub struct SubmissionOfStored {
    pub request: RunRequest,
    /// The `updated_at` of the invoice when the sender read it. An invoice that has changed since is not approved.
    pub seen_updated_at: Timestamp,
}

/// Cancels an invoice, unless it is cancelled already. The output is true if this command has cancelled it.
pub struct CancelUnlessCancelled {
    pub invoice: InvoiceRef,
    pub remark: String,
}

/// Replaces the customer, the lines and the details of an invoice. Cancels an open submission or report of the previous
/// content. Is refused if the authority has signed or taken the previous content, or may have done so.
pub struct ReviseInvoice {
    pub invoice: InvoiceRef,
    pub revision: Revision,
}

/// The invoice after an update.
#[derive(Debug, Clone)]
pub struct RevisedInvoice {
    pub invoice: Invoice,
    /// The operations whose runs were cancelled, because they would have sent the previous content.
    pub withdrawn: Vec<Operation>,
}

impl SubmissionAfterApproval {
    /// Returns the submission that starts; `None` if the invoice cannot be submitted.
    pub fn submission(&self) -> Option<&SubmissionOfStored> {
        match self {
            Self::Started(submission) => Some(submission),
            Self::NotPossible(_) => None,
        }
    }

    /// Returns the reason why the invoice cannot be submitted; `None` if it is submitted.
    fn obstacle(&self) -> Option<&str> {
        match self {
            Self::Started(_) => None,
            Self::NotPossible(reason) => Some(reason),
        }
    }
}

impl SetStatus {
    fn started_submission(&self) -> Option<&SubmissionOfStored> {
        self.submission.as_ref()?.submission()
    }
}

impl TaxpayerCommand for SetStatus {
    type Output = Invoice;

    const NAME: &'static str = "set-status";

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_invoice(&self.invoice);
        if self.status == SettableStatus::Cancelled {
            wanted.add_invoice_runs();
        }
        if let Some(submission) = self.started_submission() {
            wanted.add_invoice_with_runs(&submission.request.irn);
            wanted.add_runs_paused_by_operator();
        }
    }

    fn size(&self) -> CommandSize {
        let document = self
            .started_submission()
            .and_then(|submission| submission.request.payload.submission());
        document
            .map(|document| CommandSize::for_document(document.as_json()))
            .unwrap_or_default()
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Invoice, Refusal> {
        let before = uow.invoice(&self.invoice)?;
        if let Some(submission) = self.started_submission()
            && submission.seen_updated_at != before.updated_at
        {
            return Err(Refusal::ChangedDuringApproval);
        }
        let previous = before.status;
        // Refusals of earlier versions left their invoices validated. The runs are read only for a cancellation.
        let submission = (self.status == SettableStatus::Cancelled)
            .then(|| uow.run(Operation::Submit, &before.irn))
            .flatten();
        let mut invoice = unlocked_after_refusal(before, submission, uow.now)
            .apply_transition(Transition::Set(self.status), uow.now)?;
        if self.status == SettableStatus::Cancelled && cancel_runs(uow, &invoice) {
            invoice.authority.status = AuthorityStatus::Pending;
        }
        let mut extra = json!({ "previous_status": previous, "remark": self.remark });
        let after_approval = self.submission.as_ref();
        if let Some(reason) = after_approval.and_then(SubmissionAfterApproval::obstacle) {
            extra["not_submitted"] = json!(reason);
        }
        uow.emit_about(EventKind::InvoiceStatusUpdated, &invoice, extra);
        uow.put_invoice(invoice.clone());
        let Some(submission) = self.started_submission() else {
            return Ok(invoice);
        };
        // A refusal is ignored: another submission of this invoice is in progress already, and continues.
        let _ = OpenRun(submission.request.clone()).execute(uow);
        uow.invoice(&self.invoice).cloned()
    }
}

impl CancelUnlessCancelled {
    fn set_status(&self) -> SetStatus {
        SetStatus {
            invoice: self.invoice.clone(),
            status: SettableStatus::Cancelled,
            remark: self.remark.clone(),
            submission: None,
        }
    }
}

impl TaxpayerCommand for CancelUnlessCancelled {
    type Output = bool;

    const NAME: &'static str = "cancel-once";

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        self.set_status().add_reads(wanted, context);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<bool, Refusal> {
        if uow.invoice(&self.invoice)?.status == WorkflowStatus::Cancelled {
            return Ok(false);
        }
        self.set_status().execute(uow)?;
        Ok(true)
    }
}

/// Cancels the submission and the report of a cancelled invoice. A run whose call may have reached the authority
/// continues until its outcome is known. Returns true if a run was cancelled.
fn cancel_runs(uow: &mut UnitOfWork, invoice: &Invoice) -> bool {
    let runs = [Operation::Submit, Operation::Report]
        .map(|operation| uow.run(operation, &invoice.irn).cloned());
    let cancelled: Vec<Run> = runs
        .into_iter()
        .flatten()
        .filter(|run| {
            (run.state().is_open() || run.state() == RunState::Paused) && run.is_replaceable()
        })
        .collect();
    let any = !cancelled.is_empty();
    for run in cancelled {
        uow.put_run(run.cancel(uow.now));
    }
    any
}

impl TaxpayerCommand for ReviseInvoice {
    type Output = RevisedInvoice;

    const NAME: &'static str = "revise";

    fn size(&self) -> CommandSize {
        CommandSize {
            lines: self.revision.lines.len(),
            bytes: 0,
        }
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        wanted.add(IdKind::Customer, 1);
        wanted.add(IdKind::Item, self.revision.lines.len());
    }

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_invoice(&self.invoice);
        wanted.add_invoice_runs();
        let original = self
            .revision
            .original
            .as_deref()
            .and_then(|text| Irn::parse(text).ok());
        if let Some(irn) = original {
            wanted.add_irn(&irn);
        }
        wanted.add_customer(&self.revision.customer);
        self.revision
            .lines
            .iter()
            .for_each(|line| add_item_identifier(line, wanted.items_mut()));
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<RevisedInvoice, Refusal> {
        let Self { invoice, revision } = self;
        let stored = uow.invoice(invoice)?;
        let previous = stored.status;
        // Refusals of earlier versions left their invoices validated.
        let submission = uow.run(Operation::Submit, &stored.irn);
        let before = unlocked_after_refusal(stored, submission, uow.now);
        before.status.after(Transition::Edit)?;
        let outdated = outdated_runs(uow, &before)?;
        let (mut lines, payment) = check_revision(uow, &before, revision)?;
        let customer = resolve_customer(uow, &revision.customer, revision.category);
        resolve_items(uow, &mut lines);
        let rewritten = RevisedParts {
            customer,
            lines,
            payment,
        };
        let mut invoice = before.revise(revision, rewritten, uow.now);
        let withdrawn: Vec<_> = outdated.iter().map(Run::operation).collect();
        // The authority status is reset: it is about the previous content, which was withdrawn or rejected.
        if !withdrawn.is_empty() || invoice.authority.status == AuthorityStatus::Rejected {
            invoice.authority.status = AuthorityStatus::Pending;
        }
        for run in outdated {
            uow.put_run(run.cancel(uow.now));
        }
        let extra = json!({ "previous_status": previous });
        uow.emit_about(EventKind::InvoiceUpdated, &invoice, extra);
        uow.put_invoice(invoice.clone());
        Ok(RevisedInvoice { invoice, withdrawn })
    }
}

fn add_item_identifier(line: &RevisedLine, items: &mut ItemIdentifiers) {
    match (line.item_id, &line.item_no, &line.item_name) {
        (Some(id), _, _) => drop(items.ids.insert(id)),
        (None, Some(no), _) => drop(items.numbers.insert(no.clone())),
        (None, None, Some(name)) => drop(items.names.insert(name.clone())),
        (None, None, None) => {}
    }
}

/// Returns the open runs to cancel, because they would send the previous content to the authority. Refuses the update
/// if the authority has signed or taken the invoice, or may have done so.
fn outdated_runs(uow: &UnitOfWork, invoice: &Invoice) -> Result<Vec<Run>, Refusal> {
    let mut outdated = Vec::new();
    for (operation, reached) in [
        (Operation::Submit, WorkflowStatus::Submitted),
        (Operation::Report, WorkflowStatus::Reported),
    ] {
        let Some(run) = uow.run(operation, &invoice.irn) else {
            continue;
        };
        if !run.is_replaceable() {
            return Err(Refusal::InvoiceLocked(reached));
        }
        if !matches!(run.state(), RunState::Refused | RunState::Cancelled) {
            outdated.push(run.clone());
        }
    }
    Ok(outdated)
}

/// Makes the checks that need stored data. Returns the new lines and the new payment, or all faults found.
fn check_revision(
    uow: &UnitOfWork,
    before: &Invoice,
    revision: &Revision,
) -> Result<(Vec<Line>, Payment), Refusal> {
    let mut faults = Faults::default();
    let mut add = |fault: Option<Fault>| fault.into_iter().for_each(|fault| faults.push(fault));
    add(category_conflict_fault(uow, revision));
    add(unknown_original_fault(uow, before, revision));
    let lines = revision.complete_lines(&uow.items);
    let lines = lines
        .map_err(|wrong| wrong.iter().cloned().for_each(|fault| add(Some(fault))))
        .ok();
    let payment = lines
        .as_deref()
        .map(|lines| payment_after_revision(before, revision, lines));
    let payment = payment.and_then(|payment| payment.map_err(|fault| add(Some(fault))).ok());
    match (lines, payment) {
        (Some(lines), Some(payment)) if faults.is_empty() => Ok((lines, payment)),
        _ => Err(faults.into()),
    }
}

fn category_conflict_fault(uow: &UnitOfWork, revision: &Revision) -> Option<Fault> {
    let stored = uow.customer(&revision.customer)?.category;
    (stored != revision.category).then(|| {
        let message =
            format!("The invoice_category contradicts the stored customer, who is {stored}.");
        Fault::new("invoice_category", "category_conflict", message)
    })
}

fn unknown_original_fault(
    uow: &UnitOfWork,
    before: &Invoice,
    revision: &Revision,
) -> Option<Fault> {
    let irn = Irn::parse(revision.original.as_ref()?).ok();
    let found = irn
        .and_then(|irn| uow.find_invoice_by_irn(&irn))
        .filter(|other| other.id != before.id);
    let message =
        "The original_invoice_reference field must be the IRN of another invoice of this account.";
    found
        .is_none()
        .then(|| Fault::new("original_invoice_reference", "exists", message))
}

/// Returns the payment with the new payable amount: the total of these lines and of the charges and allowances of the
/// document, which a revision does not change.
fn payment_after_revision(
    before: &Invoice,
    revision: &Revision,
    lines: &[Line],
) -> Result<Payment, Fault> {
    let too_large = |_| {
        let message = "The lines field comes to a total that is too large.";
        Fault::new("lines", "max", message)
    };
    let digits = revision.catalog.currency_digits(&before.currency);
    let gross =
        totals::payable_amount(lines, &before.currency, &revision.catalog).map_err(too_large)?;
    let payable = totals::add_charges(gross, &before.extras).map_err(too_large)?;
    if payable.is_negative() {
        let message = format!(
            "The lines come to {}, which is less than the allowances of the document take off.",
            gross.to_currency_text(digits)
        );
        return Err(Fault::new("lines", "min", message));
    }
    before.payment.reprice(payable, digits)
}
