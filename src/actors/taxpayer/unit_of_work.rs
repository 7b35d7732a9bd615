//! The unit of work of one batch: the rows that its commands read, and all changes so far. A command makes all checks
//! before its first change, so a refused command changes nothing.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use timing::trace::TraceContext;
use timing::{CommandId, clock};

use crate::actors::taxpayer::cached_state::CachedState;
use crate::actors::taxpayer::indexes::{CustomerIndex, InvoiceIndex};
use crate::actors::taxpayer::loaded_ledger::LoadedLedger;
use crate::actors::taxpayer::row_ids::ReservedIds;
use crate::actors::taxpayer::write_set::WriteSet;
use crate::domain::correction::record::Correction;
use crate::domain::events::delivery::Delivery;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::event::{EventKind, EventStamp, LogHead, NewEvent};
use crate::domain::events::replay::Replay;
use crate::domain::import::profile::ImportProfile;
use crate::domain::import::record::Import;
use crate::domain::integration::Integration;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::item::{Item, Items};
use crate::domain::kernel::audit::{ActorWithName, NamedActor};
use crate::domain::kernel::codes::{UniqueNoType, WorkflowStatus};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{CustomerId, EndpointKey, InvoiceId, ItemId, RunId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::kernel::tracked::Tracked;
use crate::domain::notice::{Notice, NoticeKind, NoticeScope};
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::party::{Customer, CustomerDetails, Taxpayer};
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::pipeline::{Operation, Run};
use crate::domain::reference::catalog::Catalog;
use crate::domain::supplier_invoice::SupplierInvoice;
use crate::store::ids::IdKind;
use crate::store::invoices::corrections::StoredCorrection;
use crate::store::invoices::payments;
use crate::store::operations::outages::OutageEvent;

pub struct UnitOfWork {
    pub(crate) id: TaxpayerId,
    pub(crate) now: Timestamp,
    pub(crate) deadlines: DeadlinePolicy,
    pub(crate) verification: VerificationPolicy,
    pub(crate) catalog: Arc<Catalog>,
    /// The command that is executed now.
    pub(crate) cause: CommandId,
    /// The sender of the command that is executed now.
    pub(crate) acting: ActorWithName,
    /// The person or program on whose behalf the sender acts, if it is not the sender itself.
    pub(crate) on_behalf: Option<NamedActor>,
    /// The version of the taxpayer's lane.
    pub(crate) version: i64,
    /// `None` until the taxpayer is onboarded.
    pub(crate) taxpayer: Tracked<Option<Taxpayer>>,
    /// The default endpoint, if there is one, and those that were added.
    pub(crate) endpoints: Vec<Tracked<Endpoint>>,
    pub(crate) head: LogHead,
    pub(crate) invoices: InvoiceIndex,
    pub(crate) customers: CustomerIndex,
    pub(crate) items: Items,
    pub(crate) runs: Vec<Tracked<Run>>,
    /// The runs that an operator had paused when the batch started. Loaded only if a command asks for them.
    pub(crate) runs_paused_by_operator: HashSet<RunId>,
    pub(crate) supplier_invoices: Vec<SupplierInvoice>,
    /// The IRNs, among those that the batch needs, whose receipt is already in the event log.
    pub(crate) acknowledged: Vec<Irn>,
    /// The entries of the payment ledger that the batch needs.
    pub(crate) ledger: LoadedLedger,
    /// The settings for sending notifications to the ERP. Loaded only if a command of the batch reads them.
    pub(crate) integration: Tracked<Option<Integration>>,
    /// The import profile when the batch started. Loaded only if a command of the batch reads it.
    pub(crate) import_profile: ImportProfile,
    /// The number of valid keys when the batch started. Counted only if a command of the batch asks for it.
    pub(crate) valid_keys: usize,
    /// The replays that were open when the batch started. Loaded only if a command of the batch reads them.
    pub(crate) replays: Vec<Replay>,
    /// The corrections of the invoices that a command of the batch corrects, the newest first.
    pub(crate) corrections: Vec<Correction>,
    /// For each invoice to be corrected, by id: the invoices that refer to it. No entry if they are too many or too
    /// large.
    pub(crate) correcting: HashMap<InvoiceId, Vec<Invoice>>,
    /// The outage events, among those that the batch asks for, that this taxpayer has already received.
    pub(crate) sent_outages: Vec<OutageEvent>,
    /// The imports, among those that the batch asks for, that are stored.
    pub(crate) imports: Vec<Import>,
    pub(crate) ids: ReservedIds,
    /// For each command that sets unique values: a fault for each value that another taxpayer already has.
    pub(crate) conflicts: Vec<(CommandId, Faults)>,
    pub(crate) writes: Tracked<WriteSet>,
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

impl UnitOfWork {
    pub(crate) fn taxpayer(&self) -> Result<&Taxpayer, Refusal> {
        self.taxpayer.as_ref().ok_or(Refusal::TaxpayerNotFound)
    }

    /// Returns the state that the actor keeps after the transaction.
    pub(crate) fn into_cached(self) -> CachedState {
        let endpoints = self.endpoints.into_iter().map(Tracked::into_inner);
        CachedState {
            version: self.version,
            taxpayer: self.taxpayer.into_inner(),
            endpoints: endpoints.collect(),
            head: self.head,
        }
    }

    /// Returns true if there is anything to write.
    pub(crate) fn has_changes(&self) -> bool {
        let are_rows_changed = self.invoices.changed_invoices().next().is_some()
            || self.customers.changed_customers().next().is_some()
            || self.items.changed_items().next().is_some()
            || self.changed_runs().next().is_some();
        let is_account_changed =
            self.taxpayer.is_changed() || self.endpoints.iter().any(Tracked::is_changed);
        are_rows_changed
            || is_account_changed
            || self.integration.is_changed()
            || self.writes.is_changed()
    }

    /// Returns the endpoints whose workers may have new work, in the order in which their lanes are locked. A changed
    /// endpoint may have been enabled again, with deliveries waiting.
    pub(crate) fn endpoints_to_wake(&self) -> BTreeSet<EndpointKey> {
        let writes = &self.writes;
        let replays = writes.replays.iter().chain(&writes.cancelled_replays);
        let deliveries = writes.deliveries.iter();
        self.changed_endpoints()
            .map(|endpoint| endpoint.key)
            .chain(replays.map(|replay| replay.endpoint))
            .chain(deliveries.map(|(delivery, _)| delivery.endpoint))
            .collect()
    }

    pub(crate) fn changed_endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter().filter_map(Tracked::changed_value)
    }

    pub(crate) fn endpoint(&self, key: EndpointKey) -> Option<&Endpoint> {
        let mut endpoints = self.endpoints.iter().map(|endpoint| &**endpoint);
        endpoints.find(|endpoint| endpoint.key == key)
    }

    pub(crate) fn put_endpoint(&mut self, endpoint: Endpoint) {
        let key = endpoint.key;
        match self.endpoints.iter_mut().find(|stored| stored.key == key) {
            Some(stored) => **stored = endpoint,
            None => self.endpoints.push(Tracked::new(endpoint)),
        }
    }

    /// Removes an endpoint with everything that this batch would have sent to it.
    pub(crate) fn remove_endpoint(&mut self, key: EndpointKey) {
        self.endpoints.retain(|endpoint| endpoint.key != key);
        self.replays.retain(|replay| replay.endpoint != key);
        let writes = &mut *self.writes;
        writes
            .deliveries
            .retain(|(delivery, _)| delivery.endpoint != key);
        writes.replays.retain(|replay| replay.endpoint != key);
        writes
            .cancelled_replays
            .retain(|replay| replay.endpoint != key);
        writes.secrets.retain(|(endpoint, _)| *endpoint != key);
        writes.removed_endpoints.push(key);
    }

    pub(crate) fn changed_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter_map(Tracked::changed_value)
    }

    /// Returns the runs whose lanes become due.
    pub(crate) fn due_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs
            .iter()
            .map(|run| &**run)
            .filter(|run| self.writes.due_runs.contains(&run.id))
    }

    pub(crate) fn invoice(&self, invoice_ref: &InvoiceRef) -> Result<&Invoice, Refusal> {
        let found = match invoice_ref.kind {
            UniqueNoType::PortalId => invoice_ref
                .text
                .parse()
                .ok()
                .and_then(|id| self.invoices.find_by_id(InvoiceId(id))),
            UniqueNoType::Irn => Irn::parse(&invoice_ref.text)
                .ok()
                .and_then(|irn| self.find_invoice_by_irn(&irn)),
            UniqueNoType::ExternalInvoiceNo | UniqueNoType::InternalInvoiceNo => {
                self.invoices.find_by_number(&invoice_ref.text)
            }
        };
        found.ok_or(Refusal::InvoiceNotFound)
    }

    pub(crate) fn find_invoice_by_irn(&self, irn: &Irn) -> Option<&Invoice> {
        self.invoices.find_by_irn(irn)
    }

    /// Returns the last ledger entry that has the payment status of the invoice.
    pub(crate) fn last_posting(&self, invoice: &Invoice) -> Option<&payments::Model> {
        self.ledger.last_posting(&self.writes.postings, invoice)
    }

    /// Finds the stored customer by the number in `details`, or else by the tax number.
    pub(crate) fn customer(&self, details: &CustomerDetails) -> Option<&Customer> {
        self.customers.find_match(details)
    }

    pub(crate) fn run(&self, operation: Operation, irn: &Irn) -> Option<&Run> {
        let key = irn.key();
        self.runs
            .iter()
            .find(|run| run.operation() == operation && run.irn.key() == key)
            .map(|run| &**run)
    }

    pub(crate) fn find_run_by_id(&self, id: RunId) -> Result<&Run, Refusal> {
        self.runs
            .iter()
            .find(|run| run.id == id)
            .map(|run| &**run)
            .ok_or(Refusal::RunNotFound)
    }

    pub(crate) fn supplier_invoice(&self, irn: &Irn) -> Option<&SupplierInvoice> {
        let key = irn.key();
        self.supplier_invoices
            .iter()
            .find(|invoice| invoice.irn.key() == key)
    }

    pub(crate) fn next_invoice_id(&mut self) -> InvoiceId {
        InvoiceId(self.ids.next(IdKind::Invoice))
    }

    pub(crate) fn next_customer_id(&mut self) -> CustomerId {
        CustomerId(self.ids.next(IdKind::Customer))
    }

    pub(crate) fn next_item_id(&mut self) -> ItemId {
        ItemId(self.ids.next(IdKind::Item))
    }

    /// Returns a fault for each unique value of the command executed now that another taxpayer already has.
    pub(crate) fn unique_value_faults(&self) -> Faults {
        let found = self.conflicts.iter().find(|(id, _)| *id == self.cause);
        found.map(|(_, faults)| faults.clone()).unwrap_or_default()
    }

    pub(crate) fn put_invoice(&mut self, invoice: Invoice) {
        self.invoices.put(invoice);
    }

    pub(crate) fn put_customer(&mut self, customer: Customer) {
        self.customers.put(customer);
    }

    pub(crate) fn put_item(&mut self, item: Item) {
        self.items.put(item);
    }

    pub(crate) fn put_run(&mut self, run: Run) {
        match self.runs.iter_mut().find(|stored| stored.id == run.id) {
            Some(stored) => **stored = run,
            None => self.runs.push(Tracked::new(run)),
        }
    }

    pub(crate) fn put_supplier_invoice(&mut self, invoice: SupplierInvoice) {
        let key = invoice.irn.key();
        match self
            .supplier_invoices
            .iter_mut()
            .find(|stored| stored.irn.key() == key)
        {
            Some(stored) => *stored = invoice,
            None => self.supplier_invoices.push(invoice),
        }
    }

    pub(crate) fn put_replay(&mut self, replay: Replay) {
        self.writes.replays.push(replay.clone());
        self.replays.push(replay);
    }

    /// Adds a new correction.
    pub(crate) fn start_correction(&mut self, stored: StoredCorrection) {
        self.corrections.insert(0, stored.correction.clone());
        self.writes.new_corrections.push(stored);
    }

    /// Puts the new state of a correction in place of its earlier state.
    pub(crate) fn put_correction(&mut self, correction: Correction) {
        let mut known = self.corrections.iter_mut();
        let known = known.find(|known| known.correction_no == correction.correction_no);
        if let Some(known) = known {
            known.clone_from(&correction);
        }
        self.writes.corrections.push(correction);
    }

    /// Adds a notice that is mailed to the taxpayer's people.
    pub(crate) fn add_notice(&mut self, kind: NoticeKind, about: &str, detail: &str) {
        let notice = Notice::new(NoticeScope::Taxpayer(self.id), kind, self.now);
        self.writes.notices.push(notice.with_subject(about, detail));
    }

    /// Returns the actor that events and runs name: the actor on whose behalf the sender of the command acts or, if
    /// there is none, the sender.
    pub(crate) fn named_actor(&self) -> NamedActor {
        let on_behalf = self.on_behalf.clone();
        on_behalf.unwrap_or_else(|| NamedActor::from(&self.acting))
    }

    /// Does a part of a command on behalf of an actor; if there is none, as the sender of the command.
    pub(crate) fn act_on_behalf(
        &mut self,
        actor: Option<&NamedActor>,
        part: impl FnOnce(&mut Self),
    ) {
        self.on_behalf = actor.cloned();
        part(self);
        self.on_behalf = None;
    }

    /// Appends an event to the log. Adds a delivery to each endpoint that is active and has enabled this kind of event.
    /// Returns the sequence number of the event.
    pub(crate) fn emit(
        &mut self,
        kind: EventKind,
        irn: Option<&Irn>,
        data: &impl Serialize,
    ) -> i64 {
        // Serialising does not fail: the data of events are plain values and maps with text keys.
        let data = serde_json::to_string(data).unwrap_or_default();
        let actor = Some(self.named_actor());
        let occurrence = NewEvent {
            kind,
            irn: irn.map(ToString::to_string),
            data,
            actor,
        };
        let seal = EventStamp {
            id: clock::new_id(),
            taxpayer_id: self.id,
            command_id: self.cause,
            trace: TraceContext::current(),
            now: self.now,
        };
        let event = self.head.append(occurrence, seal);
        for endpoint in self
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.must_receive(kind))
        {
            let delivery = Delivery::for_event(clock::new_id(), endpoint.key, &event, self.now);
            self.writes.deliveries.push((delivery, kind));
        }
        let sequence = event.sequence;
        self.writes.events.push(event);
        sequence
    }

    /// Emits an event about an invoice. The fields of `extra` are added to the event's data. Returns the sequence
    /// number of the event.
    pub(crate) fn emit_about(&mut self, kind: EventKind, invoice: &Invoice, extra: Value) -> i64 {
        let about = InvoiceEvent {
            irn: invoice.irn.as_str(),
            invoice: InvoiceObject::from(invoice),
            status: invoice.status,
            extra,
        };
        self.emit(kind, Some(&invoice.irn), &about)
    }
}
