//! Updating an invoice: whether it may be edited, what its customer, lines and payable are now, and what becomes of a
//! submission that is under way with its older content.

use serde_json::json;

use crate::actors::taxpayer::command::{Reply, Revised, Which};
use crate::actors::taxpayer::decide::matching;
use crate::actors::taxpayer::desk::Desk;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::invoice::revision::{RevisedParts, Revision};
use crate::domain::invoice::totals;
use crate::domain::invoice::{Invoice, Line};
use crate::domain::kernel::codes::{AuthorityStatus, WorkflowStatus};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::payment::Payment;
use crate::domain::pipeline::{Operation, Run, RunState};

pub(super) fn revise(
    desk: &mut Desk,
    cause: CommandId,
    which: &Which,
    revision: &Revision,
) -> Result<Reply, Refusal> {
    let before = desk.invoice(which)?.clone();
    before.status.after(Transition::Edit)?;
    let overtaken = overtaken(desk, &before)?;
    let (mut lines, payment) = check(desk, &before, revision)?;
    let customer = matching::customer(desk, &revision.customer, revision.category);
    let shown = matching::shown(&customer, &revision.customer);
    matching::note_items(desk, &mut lines);
    desk.put_customer(customer);
    let rewritten = RevisedParts { customer: shown, lines, payment };
    let mut invoice = before.revised(revision, rewritten, desk.now);
    let withdrawn = overtaken.is_some();
    if let Some(run) = overtaken {
        invoice.authority.status = AuthorityStatus::Pending;
        desk.put_run(run.cancelled(desk.now));
    }
    let extra = json!({ "previous_status": invoice.status });
    desk.emit_about(cause, EventKind::InvoiceUpdated, &invoice, extra);
    desk.put_invoice(invoice.clone());
    Ok(Reply::Revised(Box::new(Revised { invoice, withdrawn })))
}

/// The submission that must not go on, since what it would sign is older than the invoice. Once something was signed,
/// or may have been, it is the invoice that must not change, also where it was stored after it was submitted.
fn overtaken(desk: &Desk, invoice: &Invoice) -> Result<Option<Run>, Refusal> {
    let Some(run) = desk.run(Operation::Submit, &invoice.irn) else { return Ok(None) };
    if !run.is_replaceable() {
        return Err(Refusal::InvoiceLocked(WorkflowStatus::Submitted));
    }
    let has_ended = matches!(run.state, RunState::Refused | RunState::Cancelled);
    Ok((!has_ended).then(|| run.clone()))
}

/// All that the books have against the update, at once; else its lines and what is left to pay.
fn check(desk: &Desk, before: &Invoice, revision: &Revision) -> Result<(Vec<Line>, Payment), Refusal> {
    let mut faults = Faults::default();
    let mut note = |fault: Option<Fault>| fault.into_iter().for_each(|fault| faults.push(fault));
    note(contradiction(desk, revision));
    note(unknown_original(desk, before, revision));
    let lines = revision.complete_lines(&desk.items);
    let lines = lines.map_err(|wrong| wrong.iter().cloned().for_each(|fault| note(Some(fault)))).ok();
    let payment = lines.as_deref().map(|lines| reprice(before, revision, lines));
    let payment = payment.and_then(|payment| payment.map_err(|fault| note(Some(fault))).ok());
    match (lines, payment) {
        (Some(lines), Some(payment)) if faults.is_empty() => Ok((lines, payment)),
        _ => Err(faults.into()),
    }
}

fn contradiction(desk: &Desk, revision: &Revision) -> Option<Fault> {
    let stored = desk.customer(&revision.customer)?.category;
    let message = || format!("The invoice_category contradicts the stored customer, who is {stored}.");
    (stored != revision.category).then(|| Fault::new("invoice_category", "category_conflict", message()))
}

fn unknown_original(desk: &Desk, before: &Invoice, revision: &Revision) -> Option<Fault> {
    let irn = Irn::parse(revision.original.as_ref()?).ok();
    let found = irn.and_then(|irn| desk.invoice_with_irn(&irn)).filter(|other| other.id != before.id);
    let message = "The original_invoice_reference field must be the IRN of another invoice of this account.";
    found.is_none().then(|| Fault::new("original_invoice_reference", "exists", message))
}

fn reprice(before: &Invoice, revision: &Revision, lines: &[Line]) -> Result<Payment, Fault> {
    let payable = totals::payable(lines, &before.currency, &revision.catalog);
    let message = "The lines field comes to a total that is too large.";
    before.payment.repriced(payable.map_err(|_| Fault::new("lines", "max", message))?)
}
