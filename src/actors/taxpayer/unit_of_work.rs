//! The unit of work of one batch: the rows that its commands read, and all changes so far. A command makes all checks
//! before its first change, so a refused command changes nothing.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::actors::taxpayer::indexes::{Customers, Invoices};
use crate::actors::taxpayer::read_set::CachedState;
use crate::actors::taxpayer::write_set::WriteSet;
use crate::domain::events::delivery::Delivery;
use crate::domain::events::event::{EventKind, EventStamp, NewEvent};
use crate::domain::events::replay::Replay;
use crate::domain::integration::Integration;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::item::{Item, Items};
use crate::domain::kernel::audit::{Acting, NamedActor};
use crate::domain::kernel::clock;
use crate::domain::kernel::codes::{UniqueNoType, WorkflowStatus};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{CommandId, CustomerId, InvoiceId, ItemId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::party::{Customer, CustomerDetails, Taxpayer};
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::pipeline::{Operation, Run};
use crate::domain::supplier_invoice::SupplierInvoice;
use crate::store::operations::outages::OutageEvent;

pub(crate) struct UnitOfWork {
    pub(crate) id: TaxpayerId,
    pub(crate) now: Timestamp,
    pub(crate) deadlines: DeadlinePolicy,
    pub(crate) verification: VerificationPolicy,
    pub(crate) cached: CachedState,
    pub(crate) invoices: Invoices,
    pub(crate) customers: Customers,
    pub(crate) items: Items,
    pub(crate) runs: Vec<Run>,
    pub(crate) supplier_invoices: Vec<SupplierInvoice>,
    /// The IRNs, among those that the batch needs, whose receipt is already in the event log.
    pub(crate) acknowledged: Vec<Irn>,
    /// How the ERP receives notifications. Loaded only if a command of the batch reads it.
    pub(crate) integration: Option<Integration>,
    /// The replays that were open when the batch started. Loaded only if a command of the batch reads them.
    pub(crate) replays: Vec<Replay>,
    /// The outage events that this taxpayer received before this batch.
    pub(crate) sent_outages: Vec<OutageEvent>,
    pub(crate) ids: ReservedIds,
    /// For each command that sets unique values: a fault for each value that another taxpayer already has.
    pub(crate) conflicts: Vec<(CommandId, Faults)>,
    /// The sender of the command that is executed now.
    pub(crate) acting: Acting,
    pub(crate) writes: WriteSet,
}

/// The data of an event about an invoice.
#[derive(Serialize)]
struct InvoiceEvent<'a> {
    irn: &'a str,
    invoice: InvoiceObject<'a>,
    status: WorkflowStatus,
    #[serde(flatten)]
    extra: Value,
}

/// Ids that were reserved before the transaction began, for the rows that the batch may add.
#[derive(Debug, Default)]
pub(crate) struct ReservedIds {
    pub(crate) invoices: std::ops::Range<i64>,
    pub(crate) customers: std::ops::Range<i64>,
    pub(crate) items: std::ops::Range<i64>,
    pub(crate) contact: i64,
    pub(crate) webhook: i64,
}

impl UnitOfWork {
    pub(crate) fn taxpayer(&self) -> Result<&Taxpayer, Refusal> {
        self.cached.taxpayer.as_ref().ok_or(Refusal::TaxpayerNotFound)
    }

    pub(crate) fn invoice(&self, invoice_ref: &InvoiceRef) -> Result<&Invoice, Refusal> {
        let found = match invoice_ref.kind {
            UniqueNoType::PortalId => {
                invoice_ref.text.parse().ok().and_then(|id| self.invoices.with_id(InvoiceId(id)))
            }
            UniqueNoType::Irn => {
                Irn::parse(&invoice_ref.text).ok().and_then(|irn| self.invoice_with_irn(&irn))
            }
            UniqueNoType::ExternalInvoiceNo | UniqueNoType::InternalInvoiceNo => {
                self.invoices.with_number(&invoice_ref.text)
            }
        };
        found.ok_or(Refusal::InvoiceNotFound)
    }

    pub(crate) fn invoice_with_irn(&self, irn: &Irn) -> Option<&Invoice> {
        self.invoices.with_irn(irn)
    }

    /// Finds the stored customer by the number in `details`, or else by the tax number.
    pub(crate) fn customer(&self, details: &CustomerDetails) -> Option<&Customer> {
        self.customers.matching(details)
    }

    pub(crate) fn run(&self, operation: Operation, irn: &Irn) -> Option<&Run> {
        let key = irn.key();
        self.runs.iter().find(|run| run.operation == operation && run.irn.key() == key)
    }

    pub(crate) fn supplier_invoice(&self, irn: &Irn) -> Option<&SupplierInvoice> {
        let key = irn.key();
        self.supplier_invoices.iter().find(|invoice| invoice.irn.key() == key)
    }

    pub(crate) fn next_invoice_id(&mut self) -> InvoiceId {
        InvoiceId(self.ids.invoices.next().unwrap_or_default())
    }

    pub(crate) fn next_customer_id(&mut self) -> CustomerId {
        CustomerId(self.ids.customers.next().unwrap_or_default())
    }

    pub(crate) fn next_item_id(&mut self) -> ItemId {
        ItemId(self.ids.items.next().unwrap_or_default())
    }

    /// Returns a fault for each unique value of the command that another taxpayer already has.
    pub(crate) fn conflicts(&self, command: CommandId) -> Faults {
        let found = self.conflicts.iter().find(|(id, _)| *id == command);
        found.map(|(_, faults)| faults.clone()).unwrap_or_default()
    }

    pub(crate) fn put_invoice(&mut self, invoice: Invoice) {
        self.writes.invoices.insert(invoice.id);
        self.invoices.put(invoice);
    }

    pub(crate) fn put_customer(&mut self, customer: Customer) {
        self.writes.customers.insert(customer.id);
        self.customers.put(customer);
    }

    pub(crate) fn put_item(&mut self, item: Item) {
        self.writes.items.insert(item.id);
        self.items.put(item);
    }

    pub(crate) fn put_run(&mut self, run: Run) {
        self.writes.runs.insert(run.id);
        put(&mut self.runs, run, |one, other| one.id == other.id);
    }

    pub(crate) fn put_supplier_invoice(&mut self, invoice: SupplierInvoice) {
        put(&mut self.supplier_invoices, invoice, |one, other| one.irn.key() == other.irn.key());
    }

    pub(crate) fn put_replay(&mut self, replay: Replay) {
        self.writes.replays.push(replay.clone());
        self.replays.push(replay);
    }

    pub(crate) fn put_integration(&mut self, integration: Integration) {
        self.writes.integration = true;
        self.integration = Some(integration);
    }

    pub(crate) fn put_taxpayer(&mut self, taxpayer: Taxpayer) {
        self.writes.taxpayer = true;
        self.cached.taxpayer = Some(taxpayer);
    }

    /// Appends an event to the log. Adds a delivery if the endpoint is active and has enabled this kind of event.
    /// Returns the sequence number of the event.
    pub(crate) fn emit(
        &mut self,
        cause: CommandId,
        kind: EventKind,
        irn: Option<&Irn>,
        data: &impl Serialize,
    ) -> i64 {
        // Texts, numbers and maps with text keys always serialise.
        let data = serde_json::to_string(data).unwrap_or_default();
        let actor = Some(NamedActor::from(&self.acting));
        let occurrence = NewEvent { kind, irn: irn.map(ToString::to_string), data, actor };
        let seal = EventStamp { id: clock::new_id(), taxpayer_id: self.id, command_id: cause, now: self.now };
        let event = self.cached.head.append(occurrence, seal);
        if self.cached.endpoint.as_ref().is_some_and(|endpoint| endpoint.wants(kind)) {
            let delivery = Delivery::due(clock::new_id(), &event, self.now);
            self.writes.deliveries.push((delivery, kind));
        }
        let sequence = event.sequence;
        self.writes.events.push(event);
        sequence
    }

    /// Emits an event about an invoice. The fields of `extra` are added to the event's data. Returns the sequence
    /// number of the event.
    pub(crate) fn emit_about(
        &mut self,
        cause: CommandId,
        kind: EventKind,
        invoice: &Invoice,
        extra: Value,
    ) -> i64 {
        let about = InvoiceEvent {
            irn: invoice.irn.as_str(),
            invoice: InvoiceObject::from(invoice),
            status: invoice.status,
            extra,
        };
        self.emit(cause, kind, Some(&invoice.irn), &about)
    }
}

fn put<T>(rows: &mut Vec<T>, row: T, is_same: impl Fn(&T, &T) -> bool) {
    match rows.iter_mut().find(|stored| is_same(stored, &row)) {
        Some(stored) => *stored = row,
        None => rows.push(row),
    }
}
