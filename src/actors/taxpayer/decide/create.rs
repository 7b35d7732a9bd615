//! Creating an invoice: the gates, the twin that may exist already, the customer, the IRN.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::actors::taxpayer::command::{Created, Duplicate, Reply};
use crate::actors::taxpayer::desk::Desk;
use crate::domain::event::EventKind;
use crate::domain::fault::Fault;
use crate::domain::ids::CommandId;
use crate::domain::invoice::{Draft, Identity, Invoice};
use crate::domain::irn::Irn;
use crate::domain::party::{Customer, InvoiceCustomer, Taxpayer};
use crate::domain::refusal::Refusal;
use crate::store::entity::payment_entry;

pub(super) fn create(desk: &mut Desk, cause: CommandId, draft: &Draft) -> Result<Reply, Refusal> {
    Ok(Reply::Created(Box::new(add(desk, cause, draft)?)))
}

/// Adds an invoice, unless there is one already.
pub(super) fn add(desk: &mut Desk, cause: CommandId, draft: &Draft) -> Result<Created, Refusal> {
    let taxpayer = desk.taxpayer()?;
    taxpayer.may_create_invoices()?;
    let irn = irn(draft, taxpayer)?;
    if let Some(twin) = twin(desk, draft, &irn) {
        return Ok(Created { invoice: twin.clone(), duplicate: Some(compare(draft, twin)) });
    }
    let customer = customer(desk, draft);
    let identity = Identity {
        id: desk.next_invoice_id(),
        taxpayer_id: desk.id,
        provisional_qr: provisional_qr(&irn),
        irn,
        customer: InvoiceCustomer {
            id: customer.id,
            external_customer_no: draft.customer.no.clone(),
            name: customer.details.name.clone(),
            tin: customer.details.tin.clone(),
            email: customer.details.email.clone(),
        },
    };
    let (invoice, posting) = draft.clone().into_invoice(identity, desk.now);
    desk.put_customer(customer);
    let sequence =
        desk.emit_about(cause, EventKind::InvoiceCreated, &invoice, json!({ "previous_status": null }));
    if let Some(posting) = posting {
        desk.changes.postings.push(payment_entry::Model::of(&invoice, sequence, posting, desk.now));
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

fn twin<'a>(desk: &'a Desk, draft: &Draft, irn: &Irn) -> Option<&'a Invoice> {
    let by_number = desk.invoices.with_number(&draft.invoice_no);
    by_number.or_else(|| desk.invoice_with_irn(irn))
}

fn compare(draft: &Draft, twin: &Invoice) -> Duplicate {
    if draft.digest() == twin.content_digest { Duplicate::Identical } else { Duplicate::Different }
}

/// The stored customer, with its tax number filled in where it had none; else a new one.
fn customer(desk: &mut Desk, draft: &Draft) -> Customer {
    if let Some(stored) = desk.customer(&draft.customer) {
        let mut stored = stored.clone();
        stored.fill_tin(draft.customer.tin.as_ref());
        return stored;
    }
    Customer { id: desk.next_customer_id(), category: draft.category, details: draft.customer.clone() }
}

/// What the QR code says until the authority's signature: the reference number alone.
fn provisional_qr(irn: &Irn) -> String {
    STANDARD.encode(json!({ "irn": irn.as_str() }).to_string())
}
