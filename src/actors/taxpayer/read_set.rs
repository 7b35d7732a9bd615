//! The rows that the commands of a transaction ask for before they are decided, and loading them, with one statement per
//! table for all taxpayers.

use database::{StoreError, Transaction};
use jiff::Timestamp;
use timing::CommandId;

use crate::actors::taxpayer::cached_state::CachedState;
use crate::actors::taxpayer::deps::TaxpayerDeps;
use crate::actors::taxpayer::indexes::ByOwner;
use crate::actors::taxpayer::row_ids::ReservedIds;
use crate::actors::taxpayer::unique_values::{UniqueValues, find_conflicts};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::write_set::WriteSet;
use crate::domain::correction::record::Correction;
use crate::domain::events::event::EventKind;
use crate::domain::events::replay::Replay;
use crate::domain::import::record::Import;
use crate::domain::integration::Integration;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::item::Item;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::codes::PaymentStatus;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::kernel::tracked::Tracked;
use crate::domain::party::{Customer, CustomerDetails, Taxpayer};
use crate::domain::pipeline::Run;
use crate::domain::supplier_invoice::SupplierInvoice;
use crate::store::Store;
use crate::store::events;
use crate::store::invoices::customers_and_items::{self, CustomerNames, ItemNames};
use crate::store::invoices::{self, InvoiceNames, corrections, imports, payments};
use crate::store::operations::outages::{self, OutageEvent};
use crate::store::operations::supplier_invoices;
use crate::store::runs;
use crate::store::webhooks::{integrations, replays};

/// The identifiers of the rows that a taxpayer's commands read.
#[derive(Default)]
pub struct ReadSet {
    invoices: InvoiceNames,
    customers: CustomerNames,
    items: ItemNames,
    run_irn_keys: Vec<String>,
    supplier_irn_keys: Vec<String>,
    /// IRNs of invoices whose receipt a command may record.
    receipts: Vec<String>,
    ledgers: Ledgers,
    replays: bool,
    integration: bool,
    outages: Vec<OutageEvent>,
    /// Invoices whose corrections are read.
    corrected: Vec<InvoiceId>,
    /// References to invoices; the invoices that have one of them are read.
    corrected_references: Vec<String>,
    /// Numbers of files of invoices, whose imports are read.
    imports: Vec<String>,
    unique_values: Vec<UniqueValues>,
    with_invoices: WithInvoices,
}

/// The rows that are read with all invoices in a set.
#[derive(Default)]
struct WithInvoices {
    runs: bool,
    credit_notes: bool,
}

/// The invoices of whose ledgers the last entry with their payment status is read.
#[derive(Default)]
struct Ledgers {
    irn_keys: Vec<String>,
    /// The loaded invoices with these IRNs.
    invoices: Vec<(InvoiceId, PaymentStatus)>,
}

/// The data that a command can use when it asks for its rows.
pub struct ReadContext<'a> {
    pub(crate) taxpayer_id: TaxpayerId,
    pub(crate) command: CommandId,
    pub(crate) cached: &'a CachedState,
}

impl ReadSet {
    /// Adds the invoice with this reference. Ignores a number that no invoice can have: the command then finds no
    /// invoice and is refused.
    pub(crate) fn add_invoice(&mut self, invoice_ref: &InvoiceRef) {
        let _ = self.invoices.add(invoice_ref.kind, &invoice_ref.text);
    }

    pub(crate) fn add_invoice_no(&mut self, invoice_no: &str) {
        self.invoices.numbers.push(invoice_no.to_owned());
    }

    /// Adds the invoice with this IRN.
    pub(crate) fn add_irn(&mut self, irn: &Irn) {
        self.invoices.irn_keys.push(irn.key());
    }

    /// Adds the invoice with this IRN and its runs.
    pub(crate) fn add_runs(&mut self, irn: &Irn) {
        self.add_irn(irn);
        self.run_irn_keys.push(irn.key());
    }

    /// Adds the runs of all invoices that are read.
    pub(crate) fn add_invoice_runs(&mut self) {
        self.with_invoices.runs = true;
    }

    /// Adds the signed credit notes of all invoices that are read.
    pub(crate) fn add_credit_notes(&mut self) {
        self.with_invoices.credit_notes = true;
    }

    /// Adds the invoice with this IRN, its runs, and whether an event says that its receipt was confirmed.
    pub(crate) fn add_receipt(&mut self, irn: &Irn) {
        self.add_runs(irn);
        self.receipts.push(irn.to_string());
    }

    /// Adds the last ledger entry that has the payment status of the invoice with this IRN.
    pub(crate) fn add_last_posting(&mut self, irn: &Irn) {
        self.ledgers.irn_keys.push(irn.key());
    }

    pub(crate) fn add_customer(&mut self, customer: &CustomerDetails) {
        let names = &mut self.customers;
        names.numbers.insert(customer.no.clone());
        names.tins.extend(customer.tin.clone());
    }

    pub(crate) fn items(&mut self) -> &mut ItemNames {
        &mut self.items
    }

    pub(crate) fn add_supplier_invoice(&mut self, irn: &Irn) {
        self.supplier_irn_keys.push(irn.key());
    }

    pub(crate) fn add_replays(&mut self) {
        self.replays = true;
    }

    pub(crate) fn add_integration(&mut self) {
        self.integration = true;
    }

    /// Asks whether the taxpayer has received this event.
    pub(crate) fn add_outage(&mut self, event: OutageEvent) {
        self.outages.push(event);
    }

    /// Adds the invoice, its corrections, and the invoices that refer to it in one of these ways, with their runs.
    pub(crate) fn add_correction(&mut self, id: InvoiceId, references: Vec<String>) {
        self.invoices.ids.push(id.0);
        self.corrected.push(id);
        self.corrected_references.extend(references);
    }

    /// Asks whether the file with this number was imported.
    pub(crate) fn add_import(&mut self, import_no: &str) {
        self.imports.push(import_no.to_owned());
    }

    /// Asks whether another taxpayer already has a unique value of `taxpayer`, or the login of its first contact.
    pub(crate) fn add_unique_values(
        &mut self,
        command: CommandId,
        taxpayer: Taxpayer,
        login: Option<&str>,
    ) {
        let login = login.map(str::to_owned);
        self.unique_values.push(UniqueValues {
            command,
            taxpayer,
            login,
        });
    }

    /// Takes the names of the invoices out of the set. If the runs of all invoices are wanted, the IRNs among these
    /// names are first added to the runs.
    fn take_invoices(&mut self) -> InvoiceNames {
        if self.with_invoices.runs {
            let keys = self.invoices.irn_keys.iter().cloned();
            self.run_irn_keys.extend(keys);
        }
        std::mem::take(&mut self.invoices)
    }

    /// Adds the IRNs of the loaded invoices. A command may name its invoice by number, but runs and receipts are found
    /// by IRN.
    fn add_loaded(&mut self, invoices: &[Invoice]) {
        if self.with_invoices.runs {
            let keys = invoices.iter().map(|invoice| invoice.irn.key());
            self.run_irn_keys.extend(keys);
        }
        if !self.receipts.is_empty() {
            let irns = invoices.iter().map(|invoice| invoice.irn.to_string());
            self.receipts.extend(irns);
        }
        let keys = &self.ledgers.irn_keys;
        let read = invoices
            .iter()
            .filter(|invoice| keys.contains(&invoice.irn.key()));
        self.ledgers.invoices = read
            .map(|invoice| (invoice.id, invoice.payment.status))
            .collect();
    }
}

/// The start of one taxpayer's commands: the rows that they ask for, the cached state and the reserved ids.
pub(super) struct BatchStart {
    pub(super) id: TaxpayerId,
    pub(super) wanted: ReadSet,
    pub(super) cached: CachedState,
    pub(super) ids: ReservedIds,
}

/// Reads the rows that the commands of these taxpayers name. Returns one unit of work per taxpayer, in the order of
/// `starts`.
pub(super) async fn load(
    deps: &TaxpayerDeps,
    tx: &Transaction,
    now: Timestamp,
    mut starts: Vec<BatchStart>,
) -> Result<Vec<UnitOfWork>, StoreError> {
    let names = take_from_each(&mut starts, ReadSet::take_invoices);
    let mut invoices: ByOwner<Invoice> = ByOwner::default();
    for invoice in invoices::with_names(tx, names).await? {
        invoices.put(invoice.taxpayer_id, invoice);
    }
    for BatchStart { id, wanted, .. } in &mut starts {
        if wanted.with_invoices.credit_notes {
            add_credit_notes(tx, *id, &mut invoices).await?;
        }
        wanted.add_loaded(invoices.owned_by(*id));
    }
    let mut correcting = load_correcting(tx, &mut starts).await?;
    let names = take_from_each(&mut starts, |wanted| std::mem::take(&mut wanted.items));
    let mut items: ByOwner<Item> = customers_and_items::find_items(tx, names)
        .await?
        .into_iter()
        .collect();
    let names = take_from_each(&mut starts, |wanted| std::mem::take(&mut wanted.customers));
    let mut customers: ByOwner<Customer> = customers_and_items::find_customers(tx, names)
        .await?
        .into_iter()
        .collect();
    let names = take_from_each(&mut starts, |wanted| {
        std::mem::take(&mut wanted.run_irn_keys)
    });
    let runs = runs::with_irn_keys(tx, names).await?;
    let mut runs: ByOwner<Run> = runs.into_iter().map(|run| (run.taxpayer_id, run)).collect();

    let mut units = Vec::with_capacity(starts.len());
    for start in starts {
        let id = start.id;
        let rare = RareRows::load(start.wanted, &deps.store, tx, id).await?;
        let CachedState {
            version,
            taxpayer,
            endpoints,
            head,
        } = start.cached;
        units.push(UnitOfWork {
            id,
            now,
            deadlines: deps.deadlines,
            verification: deps.verification,
            catalog: deps.catalog.get(),
            cause: CommandId::nil(),
            acting: Actor::Service.into(),
            version,
            taxpayer: Tracked::from_stored(taxpayer),
            endpoints: endpoints.into_iter().map(Tracked::from_stored).collect(),
            head,
            invoices: invoices.take(id).into_iter().collect(),
            items: items.take(id).into_iter().collect(),
            customers: customers.take(id).into_iter().collect(),
            runs: runs
                .take(id)
                .into_iter()
                .map(Tracked::from_stored)
                .collect(),
            supplier_invoices: rare.supplier_invoices,
            acknowledged: rare.acknowledged,
            last_postings: rare.last_postings,
            integration: Tracked::from_stored(rare.integration),
            replays: rare.replays,
            corrections: rare.corrections,
            correcting: correcting.take(id),
            sent_outages: rare.sent_outages,
            imports: rare.imports,
            conflicts: rare.conflicts,
            ids: start.ids,
            writes: Tracked::from_stored(WriteSet::default()),
        });
    }
    Ok(units)
}

/// Adds the signed credit notes of a taxpayer's invoices to them.
async fn add_credit_notes(
    tx: &Transaction,
    id: TaxpayerId,
    invoices: &mut ByOwner<Invoice>,
) -> Result<(), StoreError> {
    let credited = invoices.owned_by(id).iter();
    let references: Vec<_> = credited.flat_map(Invoice::own_references).collect();
    for note in invoices::signed_credit_notes(tx, id, &references).await? {
        let mut known = invoices.owned_by(id).iter();
        if !known.any(|known| known.id == note.id) {
            invoices.put(id, note);
        }
    }
    Ok(())
}

/// Loads the invoices that refer to a corrected one, and asks for their runs.
async fn load_correcting(
    tx: &Transaction,
    starts: &mut [BatchStart],
) -> Result<ByOwner<Invoice>, StoreError> {
    let mut correcting: ByOwner<Invoice> = ByOwner::default();
    for BatchStart { id, wanted, .. } in starts {
        let references = &wanted.corrected_references;
        for invoice in invoices::owned_by_correcting(tx, *id, references).await? {
            wanted.run_irn_keys.push(invoice.irn.key());
            correcting.put(*id, invoice);
        }
    }
    Ok(correcting)
}

/// Takes a part out of every read set. Returns each part with the id of its taxpayer.
fn take_from_each<T>(
    starts: &mut [BatchStart],
    part: impl Fn(&mut ReadSet) -> T,
) -> Vec<(TaxpayerId, T)> {
    starts
        .iter_mut()
        .map(|start| (start.id, part(&mut start.wanted)))
        .collect()
}

/// Rows that only few commands need. They are read with separate queries for each taxpayer.
struct RareRows {
    supplier_invoices: Vec<SupplierInvoice>,
    acknowledged: Vec<Irn>,
    last_postings: Vec<payments::Model>,
    integration: Option<Integration>,
    replays: Vec<Replay>,
    corrections: Vec<Correction>,
    sent_outages: Vec<OutageEvent>,
    imports: Vec<Import>,
    conflicts: Vec<(CommandId, Faults)>,
}

impl RareRows {
    async fn load(
        wanted: ReadSet,
        store: &Store,
        tx: &Transaction,
        id: TaxpayerId,
    ) -> Result<Self, StoreError> {
        let kind = EventKind::InvoiceAcknowledged;
        Ok(Self {
            supplier_invoices: supplier_invoices::owned_by_with_irn_keys(
                tx,
                id,
                wanted.supplier_irn_keys,
            )
            .await?,
            acknowledged: events::irns_with_event(tx, id, kind, wanted.receipts).await?,
            last_postings: payments::last_with_status(tx, id, &wanted.ledgers.invoices).await?,
            integration: if wanted.integration {
                integrations::owned_by(store, tx, id).await?
            } else {
                None
            },
            replays: if wanted.replays {
                replays::open_owned_by(tx, id).await?
            } else {
                Vec::new()
            },
            corrections: corrections::owned_by_with_invoices(tx, id, &wanted.corrected).await?,
            sent_outages: outages::received_by(tx, id, &wanted.outages).await?,
            imports: imports::owned_by_with_numbers(tx, id, &wanted.imports).await?,
            conflicts: find_conflicts(tx, wanted.unique_values).await?,
        })
    }
}
