//! Loads the rows that the commands of a transaction ask for, with one statement per table for all taxpayers.

use database::{StoreError, Transaction};
use jiff::Timestamp;
use supervision::Task;
use timing::CommandId;

use crate::actors::taxpayer::cached_state::CachedState;
use crate::actors::taxpayer::deps::TaxpayerDeps;
use crate::actors::taxpayer::handle::CommandEnvelope;
use crate::actors::taxpayer::indexes::ByOwner;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet, UniqueValues};
use crate::actors::taxpayer::row_ids::{ReservedIds, WantedIdCounts};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::write_set::WriteSet;
use crate::domain::correction::record::Correction;
use crate::domain::events::event::EventKind;
use crate::domain::events::replay::Replay;
use crate::domain::integration::Integration;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::item::Item;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::tracked::Tracked;
use crate::domain::party::Customer;
use crate::domain::pipeline::Run;
use crate::domain::supplier_invoice::SupplierInvoice;
use crate::store::Store;
use crate::store::accounts::taxpayers;
use crate::store::events;
use crate::store::invoices;
use crate::store::invoices::{corrections, customers, items};
use crate::store::operations::outages::{self, OutageEvent};
use crate::store::operations::supplier_invoices;
use crate::store::runs;
use crate::store::webhooks::{integrations, replays};

/// Reserves the ids that the commands may use.
pub(super) async fn reserve_ids(
    store: &Store,
    tasks: &[Task<CommandEnvelope>],
) -> Result<ReservedIds, StoreError> {
    let mut wanted = WantedIdCounts::default();
    for task in tasks {
        task.command.command.add_wanted_id_counts(&mut wanted);
    }
    wanted.reserve(store).await
}

/// One taxpayer's commands with the cached state and the ids that were reserved for them.
pub(super) struct BatchStart<'a> {
    pub(super) id: TaxpayerId,
    pub(super) tasks: &'a [Task<CommandEnvelope>],
    pub(super) cached: CachedState,
    pub(super) ids: ReservedIds,
}

impl BatchStart<'_> {
    fn read_set(&self) -> ReadSet {
        let mut wanted = ReadSet::default();
        for task in self.tasks {
            let context = ReadContext {
                taxpayer_id: self.id,
                command: task.id,
                cached: &self.cached,
            };
            task.command.command.add_reads(&mut wanted, &context);
        }
        wanted
    }
}

/// Reads the rows that the commands of these taxpayers name. Returns one unit of work per taxpayer, in the order of
/// `starts`.
pub(super) async fn load(
    deps: &TaxpayerDeps,
    tx: &Transaction,
    now: Timestamp,
    starts: Vec<BatchStart<'_>>,
) -> Result<Vec<UnitOfWork>, StoreError> {
    let mut read_sets: Vec<_> = starts.iter().map(BatchStart::read_set).collect();
    let names = take_from_each(&mut read_sets, &starts, ReadSet::take_invoices);
    let mut invoices: ByOwner<Invoice> = ByOwner::default();
    for invoice in invoices::with_names(tx, names).await? {
        invoices.put(invoice.taxpayer_id, invoice);
    }
    for (wanted, start) in read_sets.iter_mut().zip(&starts) {
        wanted.add_loaded(invoices.owned_by(start.id));
    }
    let names = take_from_each(&mut read_sets, &starts, |wanted| {
        std::mem::take(&mut wanted.items)
    });
    let mut items: ByOwner<Item> = items::with_names(tx, names).await?.into_iter().collect();
    let names = take_from_each(&mut read_sets, &starts, |wanted| {
        std::mem::take(&mut wanted.customers)
    });
    let mut customers: ByOwner<Customer> = customers::with_names(tx, names)
        .await?
        .into_iter()
        .collect();
    let names = take_from_each(&mut read_sets, &starts, |wanted| {
        std::mem::take(&mut wanted.run_irn_keys)
    });
    let runs = runs::with_irn_keys(tx, names).await?;
    let mut runs: ByOwner<Run> = runs.into_iter().map(|run| (run.taxpayer_id, run)).collect();

    let mut units = Vec::with_capacity(starts.len());
    for (wanted, start) in read_sets.into_iter().zip(starts) {
        let id = start.id;
        let rare = RareRows::load(wanted, &deps.store, tx, id).await?;
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
            integration: Tracked::from_stored(rare.integration),
            replays: rare.replays,
            corrections: rare.corrections,
            correcting: rare.correcting,
            sent_outages: rare.sent_outages,
            conflicts: rare.conflicts,
            ids: start.ids,
            writes: Tracked::from_stored(WriteSet::default()),
        });
    }
    Ok(units)
}

/// Takes a part out of every read set. Returns each part with the id of its taxpayer.
fn take_from_each<T>(
    read_sets: &mut [ReadSet],
    starts: &[BatchStart<'_>],
    part: impl Fn(&mut ReadSet) -> T,
) -> Vec<(TaxpayerId, T)> {
    read_sets
        .iter_mut()
        .zip(starts)
        .map(|(wanted, start)| (start.id, part(wanted)))
        .collect()
}

/// Rows that only few commands need. They are read with separate queries for each taxpayer.
struct RareRows {
    supplier_invoices: Vec<SupplierInvoice>,
    acknowledged: Vec<Irn>,
    integration: Option<Integration>,
    replays: Vec<Replay>,
    corrections: Vec<Correction>,
    correcting: Vec<Invoice>,
    sent_outages: Vec<OutageEvent>,
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
            correcting: invoices::owned_by_correcting(tx, id, &wanted.corrected_references).await?,
            sent_outages: outages::received_by(tx, id, &wanted.outages).await?,
            conflicts: find_conflicts(tx, wanted.unique_values).await?,
        })
    }
}

/// Returns a fault for each unique value of these commands that another taxpayer already has.
async fn find_conflicts(
    tx: &Transaction,
    unique_values: Vec<UniqueValues>,
) -> Result<Vec<(CommandId, Faults)>, StoreError> {
    let mut conflicts = Vec::with_capacity(unique_values.len());
    for UniqueValues {
        command,
        taxpayer,
        login,
    } in unique_values
    {
        conflicts.push((
            command,
            taxpayers::find_taken_values(tx, &taxpayer, login.as_deref()).await?,
        ));
    }
    Ok(conflicts)
}
