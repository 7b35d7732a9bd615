//! Creating an invoice: the gates, the twin that may exist already, the customer, the items, the IRN.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::actors::taxpayer::command::{Created, Duplicate, Reply};
use crate::actors::taxpayer::decide::matching;
use crate::actors::taxpayer::desk::Desk;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::{Draft, Invoice, InvoiceIdentity};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::Taxpayer;
use crate::store::invoices::payment_row;

pub(super) fn create(desk: &mut Desk, cause: CommandId, draft: &Draft) -> Result<Reply, Refusal> {
    Ok(Reply::Created(Box::new(add(desk, cause, draft)?)))
}

/// Adds an invoice, unless there is one already.
pub(super) fn add(desk: &mut Desk, cause: CommandId, draft: &Draft) -> Result<Created, Refusal> {
    let taxpayer = desk.taxpayer()?;
    taxpayer.may_create_invoices(desk.verification)?;
    let irn = irn(draft, taxpayer)?;
    if let Some(twin) = twin(desk, draft, &irn) {
        return Ok(Created { invoice: twin.clone(), duplicate: Some(compare(draft, twin)) });
    }
    let customer = matching::customer(desk, &draft.customer, draft.category);
    let identity = InvoiceIdentity {
        id: desk.next_invoice_id(),
        taxpayer_id: desk.id,
        provisional_qr: provisional_qr(&irn),
        irn,
        customer: matching::shown(&customer, &draft.customer),
    };
    let (mut invoice, posting) = draft.clone().into_invoice(identity, desk.now);
    matching::note_items(desk, &mut invoice.lines);
    desk.put_customer(customer);
    let sequence =
        desk.emit_about(cause, EventKind::InvoiceCreated, &invoice, json!({ "previous_status": null }));
    if let Some(posting) = posting {
        desk.changes.postings.push(payment_row::Model::of(&invoice, sequence, posting, desk.now));
    }
    desk.put_invoice(invoice.clone());
    Ok(Created { invoice, duplicate: None })
}

fn irn(draft: &Draft, taxpayer: &Taxpayer) -> Result<Irn, Refusal> {
    match &draft.irn {
        Some(irn) if irn.has_service_id(&taxpayer.service_id) => Ok(irn.clone()),
        Some(_) => Err(Refusal::IrnServiceIdMismatch(Fault::new(
            "irn",
            "irn_service_id_mismatch",
            "The irn must carry this account's authority_service_id.",
        ))),
        None => Irn::of_invoice(&draft.invoice_no, &taxpayer.service_id, draft.invoice_date)
            .map_err(|malformed| Fault::new("invoice_no", "irn_malformed", malformed.to_string()).into()),
    }
}

/// The invoice that has the number or the IRN already. Where they name two, what the caller gave by itself goes
/// first: the IRN on Full, the number elsewhere.
fn twin<'a>(desk: &'a Desk, draft: &Draft, irn: &Irn) -> Option<&'a Invoice> {
    let by_number = || desk.invoices.with_number(&draft.invoice_no);
    let by_irn = || desk.invoice_with_irn(irn);
    if draft.irn.is_some() { by_irn().or_else(by_number) } else { by_number().or_else(by_irn) }
}

/// An invoice that was edited is no longer what was sent to create it.
fn compare(draft: &Draft, twin: &Invoice) -> Duplicate {
    let is_identical = twin.edited_at.is_none() && draft.digest() == twin.content_digest;
    if is_identical { Duplicate::Identical } else { Duplicate::Different }
}

/// What the QR code says until the authority's signature: the reference number alone.
fn provisional_qr(irn: &Irn) -> String {
    STANDARD.encode(json!({ "irn": irn.as_str() }).to_string())
}
