//! Records what the authority reports outside a run: transmissions, receipts, supplier invoices and outages. Reports
//! may repeat and arrive in any order, so each fact is recorded once and emits its event once.

use serde_json::{Value, json};

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::steps::{emit_stage_event, move_invoice_to_stage};
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::CommandSize;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::lifecycle::Stage;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::codes::AuthorityStatus;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::outage::OutageNotice;
use crate::domain::pipeline::{Operation, Step};
use crate::domain::supplier_invoice::{SupplierDocument, SupplierInvoice};
use crate::store::operations::outages::OutageEvent;

/// Records that an invoice was transmitted and, if `is_delivered`, that its receipt was confirmed. The invoice's status
/// never moves backward.
pub struct RecordTransmission {
    pub irn: Irn,
    pub is_delivered: bool,
}

/// Records that the authority has confirmed the receipt of a transmitted invoice.
pub struct RecordReceipt {
    pub irn: Irn,
}

/// Adds a supplier's invoice to the inbox, unless the inbox already has it.
pub struct ReceiveSupplierInvoice(pub SupplierDocument);

/// Records that the authority has our acknowledgement of a supplier's invoice. Of several acknowledgements of an
/// invoice, the first one recorded counts.
pub struct AcknowledgeSupplierInvoice {
    pub irn: Irn,
}

/// Emits the event of an outage, if an endpoint has enabled events of this kind and the event was not emitted before.
pub struct NotifyOutage(pub OutageNotice);

impl TaxpayerCommand for RecordTransmission {
    type Output = ();

    const NAME: &'static str = "record-transit";

    fn default_audit_actor(&self) -> Actor {
        Actor::Authority
    }

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_invoice_with_receipt(&self.irn);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<(), Refusal> {
        let ended = complete_stopped_transmission(uow, &self.irn);
        match uow.find_invoice_by_irn(&self.irn).cloned() {
            Some(invoice) if invoice.status.stage() < Some(Stage::Transmitted) => {
                // For a cancelled invoice `move_invoice_to_stage` returns a refusal, which is ignored because nobody
                // waits for it. The invoice stays cancelled.
                let _ = move_invoice_to_stage(uow, invoice, Stage::Transmitted, None);
            }
            Some(_) => {}
            None => {
                if let Some(irn) = ended {
                    emit_stage_event(uow, &irn, Stage::Transmitted);
                }
            }
        }
        if self.is_delivered {
            record_receipt(uow, &self.irn);
        }
        Ok(())
    }
}

impl TaxpayerCommand for RecordReceipt {
    type Output = ();

    const NAME: &'static str = "record-receipt";

    fn default_audit_actor(&self) -> Actor {
        Actor::Authority
    }

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_invoice_with_receipt(&self.irn);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<(), Refusal> {
        record_receipt(uow, &self.irn);
        Ok(())
    }
}

impl TaxpayerCommand for ReceiveSupplierInvoice {
    type Output = ();

    const NAME: &'static str = "receive-supplier-invoice";

    fn default_audit_actor(&self) -> Actor {
        Actor::Authority
    }

    fn size(&self) -> CommandSize {
        CommandSize::for_document(&self.0.document)
    }

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_supplier_invoice(&self.0.irn);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<(), Refusal> {
        let Self(document) = self;
        uow.taxpayer()?;
        if uow.supplier_invoice(&document.irn).is_some() {
            return Ok(());
        }
        let invoice = document.to_inbox_entry(uow.id, uow.now);
        let data = json!({
            "irn": invoice.irn,
            "supplier_irn": invoice.irn,
            "supplier_name": invoice.supplier_name,
            "supplier_tin": invoice.supplier_tin,
            "received_at": precise_time(invoice.received_at),
        });
        uow.emit(
            EventKind::SupplierInvoiceReceived,
            Some(&invoice.irn),
            &data,
        );
        uow.writes
            .received
            .push((invoice.clone(), document.document.clone()));
        uow.put_supplier_invoice(invoice);
        Ok(())
    }
}

impl TaxpayerCommand for AcknowledgeSupplierInvoice {
    type Output = SupplierInvoice;

    const NAME: &'static str = "acknowledge-supplier-invoice";

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_supplier_invoice(&self.irn);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<SupplierInvoice, Refusal> {
        let mut invoice = uow
            .supplier_invoice(&self.irn)
            .cloned()
            .ok_or(Refusal::NotAddressedToCaller)?;
        if invoice.acknowledged_at.is_some() {
            return Err(Refusal::AlreadyAcknowledged);
        }
        invoice.acknowledged_at = Some(uow.now);
        let data = json!({
            "irn": invoice.irn,
            "supplier_irn": invoice.irn,
            "acknowledged_at": precise_time(uow.now),
        });
        uow.emit(
            EventKind::SupplierInvoiceAcknowledged,
            Some(&invoice.irn),
            &data,
        );
        let irn = invoice.irn.clone();
        uow.writes.acknowledged.push((irn, uow.now));
        uow.put_supplier_invoice(invoice.clone());
        Ok(invoice)
    }
}

impl TaxpayerCommand for NotifyOutage {
    type Output = ();

    const NAME: &'static str = "notify-outage";

    fn default_audit_actor(&self) -> Actor {
        Actor::Authority
    }

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_outage_event(OutageEvent {
            outage: self.0.outage,
            edge: self.0.edge,
        });
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<(), Refusal> {
        let Self(notice) = self;
        let event = OutageEvent {
            outage: notice.outage,
            edge: notice.edge,
        };
        let kind = notice.edge.event_kind();
        let is_enabled = uow
            .endpoints
            .iter()
            .any(|endpoint| endpoint.has_enabled_kind(kind));
        if is_enabled && !uow.sent_outages.contains(&event) {
            let sequence = uow.emit(kind, None, &notice.data);
            uow.sent_outages.push(event);
            uow.writes.sent_outages.push((event, sequence));
        }
        Ok(())
    }
}

/// Completes the transmission run of this IRN if the run stopped before the authority's answer arrived. Returns the IRN
/// in the spelling of the completed run; `None` if no run was completed. An open run is left as it is, because it will
/// learn the outcome itself.
fn complete_stopped_transmission(uow: &mut UnitOfWork, irn: &Irn) -> Option<Irn> {
    let run = uow.run(Operation::Transmit, irn);
    let stopped = run
        .filter(|run| !run.state().is_open() && !run.done.contains(&Step::Send))
        .cloned();
    let run = stopped?.end_as_transmitted(uow.now);
    let irn = run.irn.clone();
    uow.put_run(run);
    Some(irn)
}

/// Records once that the receipt of an invoice was confirmed: in the invoice's run, in its authority status, and as an
/// event. If neither a run nor the invoice is stored, there is only the event.
fn record_receipt(uow: &mut UnitOfWork, irn: &Irn) {
    let runs =
        [Operation::Transmit, Operation::Submit].map(|operation| uow.run(operation, irn).cloned());
    let invoice = uow.find_invoice_by_irn(irn).cloned();
    let is_recorded = uow
        .acknowledged
        .iter()
        .any(|recorded| recorded.key() == irn.key())
        || runs
            .iter()
            .flatten()
            .any(|run| run.done.contains(&Step::Receipt))
        || invoice
            .as_ref()
            .is_some_and(|invoice| invoice.authority.status == AuthorityStatus::Acknowledged);
    if is_recorded {
        return;
    }
    uow.acknowledged.push(irn.clone());
    // All events about an invoice spell its IRN in the same way, because the order of notifications is kept only among
    // events with the same spelling.
    let first_run = runs.iter().flatten().next();
    let irn = &first_run.map_or(irn, |run| &run.irn).clone();
    if let Some(mut run) = runs.into_iter().flatten().next() {
        run.done.push(Step::Receipt);
        uow.put_run(run);
    }
    if let Some(mut invoice) = invoice {
        if invoice.authority.status.progress_rank() < AuthorityStatus::Acknowledged.progress_rank()
        {
            invoice.authority.status = AuthorityStatus::Acknowledged;
        }
        invoice.updated_at = uow.now;
        let extra = json!({ "previous_status": invoice.status });
        uow.emit_about(EventKind::InvoiceAcknowledged, &invoice, extra);
        uow.put_invoice(invoice);
    } else {
        let data = json!({ "irn": irn.as_str(), "invoice": Value::Null });
        uow.emit(EventKind::InvoiceAcknowledged, Some(irn), &data);
    }
}
