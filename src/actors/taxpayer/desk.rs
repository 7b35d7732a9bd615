//! The desk of one batch: what its commands need from the database, and what they have changed so far. A
//! decision looks things up here and puts them back only when nothing can refuse it any more, so a refusal
//! leaves no trace. Nothing here reads or writes the database.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::actors::taxpayer::books::Books;
use crate::actors::taxpayer::changes::Changes;
use crate::actors::taxpayer::command::Which;
use crate::actors::taxpayer::shelf::{Customers, Invoices};
use crate::domain::events::delivery::Delivery;
use crate::domain::events::event::{EventKind, EventStamp, NewEvent};
use crate::domain::events::replay::Replay;
use crate::domain::integration::Integration;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::item::{Item, Items};
use crate::domain::kernel::clock;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{CommandId, CustomerId, InvoiceId, ItemId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::party::{Customer, CustomerDetails, Taxpayer};
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::pipeline::{Operation, Run};
use crate::domain::supplier_invoice::SupplierInvoice;
use crate::store::operations::outages::OutageEvent;

/// What a batch works on.
pub(crate) struct Desk {
    pub(crate) id: TaxpayerId,
    pub(crate) now: Timestamp,
    pub(crate) deadlines: DeadlinePolicy,
    pub(crate) verification: VerificationPolicy,
    pub(crate) books: Books,
    pub(crate) invoices: Invoices,
    pub(crate) customers: Customers,
    pub(crate) items: Items,
    pub(crate) runs: Vec<Run>,
    pub(crate) supplier_invoices: Vec<SupplierInvoice>,
    /// The IRNs whose receipt the log tells of already.
    pub(crate) acknowledged: Vec<Irn>,
    /// How the ERP takes notifications, for the commands that ask for it.
    pub(crate) integration: Option<Integration>,
    /// The replays that are under way.
    pub(crate) replays: Vec<Replay>,
    /// The news of outages that was told before.
    pub(crate) told_outages: Vec<OutageEvent>,
    /// Ids that were taken for this batch.
    pub(crate) ids: FreshIds,
    /// What other taxpayers have already, for the commands that ask for it.
    pub(crate) taken: Vec<(CommandId, Faults)>,
    pub(crate) changes: Changes,
}

/// Ids taken before the transaction began.
#[derive(Debug, Default)]
pub(crate) struct FreshIds {
    pub(crate) invoices: std::ops::Range<i64>,
    pub(crate) customers: std::ops::Range<i64>,
    pub(crate) items: std::ops::Range<i64>,
    pub(crate) contact: i64,
    pub(crate) webhook: i64,
}

impl Desk {
    pub(crate) fn taxpayer(&self) -> Result<&Taxpayer, Refusal> {
        self.books.taxpayer.as_ref().ok_or(Refusal::TaxpayerNotFound)
    }

    pub(crate) fn invoice(&self, which: &Which) -> Result<&Invoice, Refusal> {
        let found = match which.kind {
            UniqueNoType::PortalId => {
                which.text.parse().ok().and_then(|id| self.invoices.with_id(InvoiceId(id)))
            }
            UniqueNoType::Irn => Irn::parse(&which.text).ok().and_then(|irn| self.invoice_with_irn(&irn)),
            UniqueNoType::ExternalInvoiceNo | UniqueNoType::InternalInvoiceNo => {
                self.invoices.with_number(&which.text)
            }
        };
        found.ok_or(Refusal::InvoiceNotFound)
    }

    pub(crate) fn invoice_with_irn(&self, irn: &Irn) -> Option<&Invoice> {
        self.invoices.with_irn(irn)
    }

    /// The stored customer that a customer block means: by number, then by tax number.
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

    pub(crate) fn taken(&self, command: CommandId) -> Faults {
        let found = self.taken.iter().find(|(id, _)| *id == command);
        found.map(|(_, faults)| faults.clone()).unwrap_or_default()
    }

    pub(crate) fn put_invoice(&mut self, invoice: Invoice) {
        self.changes.invoices.insert(invoice.id);
        self.invoices.put(invoice);
    }

    pub(crate) fn put_customer(&mut self, customer: Customer) {
        self.changes.customers.insert(customer.id);
        self.customers.put(customer);
    }

    pub(crate) fn put_item(&mut self, item: Item) {
        self.changes.items.insert(item.id);
        self.items.put(item);
    }

    pub(crate) fn put_run(&mut self, run: Run) {
        self.changes.runs.insert(run.id);
        put(&mut self.runs, run, |one, other| one.id == other.id);
    }

    pub(crate) fn put_supplier_invoice(&mut self, invoice: SupplierInvoice) {
        put(&mut self.supplier_invoices, invoice, |one, other| one.irn.key() == other.irn.key());
    }

    pub(crate) fn put_replay(&mut self, replay: Replay) {
        self.changes.replays.push(replay.clone());
        self.replays.push(replay);
    }

    pub(crate) fn put_integration(&mut self, integration: Integration) {
        self.changes.integration = true;
        self.integration = Some(integration);
    }

    pub(crate) fn put_taxpayer(&mut self, taxpayer: Taxpayer) {
        self.changes.taxpayer = true;
        self.books.taxpayer = Some(taxpayer);
    }

    /// Appends an event to the log, and to what the webhook is due; returns its number.
    pub(crate) fn emit(&mut self, cause: CommandId, kind: EventKind, irn: Option<&Irn>, data: Value) -> i64 {
        let occurrence = NewEvent { kind, irn: irn.map(ToString::to_string), data };
        let seal = EventStamp { id: clock::new_id(), taxpayer_id: self.id, command_id: cause, now: self.now };
        let event = self.books.head.append(occurrence, seal);
        if self.books.endpoint.as_ref().is_some_and(|endpoint| endpoint.wants(kind)) {
            let delivery = Delivery::due(clock::new_id(), &event, self.now);
            self.changes.deliveries.push((delivery, kind));
        }
        let sequence = event.sequence;
        self.changes.events.push(event);
        sequence
    }

    /// Emits an event about an invoice whose status was `before`.
    pub(crate) fn emit_about(
        &mut self,
        cause: CommandId,
        kind: EventKind,
        invoice: &Invoice,
        extra: Value,
    ) -> i64 {
        let mut data = json!({
            "irn": invoice.irn.as_str(),
            "invoice": InvoiceObject::from(invoice),
            "status": invoice.status,
        });
        if let (Some(data), Value::Object(extra)) = (data.as_object_mut(), extra) {
            data.extend(extra);
        }
        self.emit(cause, kind, Some(&invoice.irn), data)
    }
}

fn put<T>(shelf: &mut Vec<T>, thing: T, same: impl Fn(&T, &T) -> bool) {
    match shelf.iter_mut().find(|held| same(held, &thing)) {
        Some(held) => *held = thing,
        None => shelf.push(thing),
    }
}
