//! Loads the rows that the commands of a transaction ask for, with one statement per table for all taxpayers. Rows that
//! only few commands need are read for each taxpayer.

use std::collections::HashSet;

use database::{StoreError, Transaction};
use jiff::Timestamp;
use timing::CommandId;

use crate::actors::taxpayer::cached_state::CachedState;
use crate::actors::taxpayer::deps::TaxpayerDeps;
use crate::actors::taxpayer::indexes::{InvoiceIndex, RowsByTaxpayer};
use crate::actors::taxpayer::loaded_ledger::LoadedLedger;
use crate::actors::taxpayer::read_set::ReadSet;
use crate::actors::taxpayer::row_ids::ReservedIds;
use crate::actors::taxpayer::unique_values::find_conflicts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::write_set::WriteSet;
use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::caller::KeyKind;
use crate::domain::correction::record::Correction;
use crate::domain::events::event::EventKind;
use crate::domain::events::replay::Replay;
use crate::domain::import::profile::ImportProfile;
use crate::domain::import::record::Import;
use crate::domain::integration::Integration;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::item::Item;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{InvoiceId, RunId, TaxpayerId};
use crate::domain::kernel::tracked::Tracked;
use crate::domain::party::Customer;
use crate::domain::pipeline::{Run, RunState};
use crate::domain::supplier_invoice::SupplierInvoice;
use crate::store::accounts::keys;
use crate::store::invoices::credit_notes::CREDIT_NOTES_BYTES_MAX;
use crate::store::invoices::customers_and_items;
use crate::store::invoices::{
    self, correcting_documents, corrections, credit_notes, import_profiles, imports,
};
use crate::store::operations::audit;
use crate::store::operations::outages::{self, OutageEvent};
use crate::store::operations::supplier_invoices;
use crate::store::webhooks::{integrations, replays};
use crate::store::{Store, events, runs};

/// One taxpayer's part of a transaction before its rows are loaded: the rows that its commands ask for, its cached
/// state and the reserved ids.
pub(super) struct UnloadedMember {
    pub(super) id: TaxpayerId,
    pub(super) wanted: ReadSet,
    pub(super) cached: CachedState,
    pub(super) ids: ReservedIds,
}

/// Reads the rows that the commands of these taxpayers ask for. Returns one unit of work per taxpayer, in the order of
/// `starts`.
pub(super) async fn load(
    deps: &TaxpayerDeps,
    tx: &Transaction,
    now: Timestamp,
    mut starts: Vec<UnloadedMember>,
) -> Result<Vec<UnitOfWork>, StoreError> {
    let mut rows = CommonRows::load(tx, &mut starts).await?;
    let mut units = Vec::with_capacity(starts.len());
    for start in starts {
        let id = start.id;
        let runs = rows.runs.take(id);
        let runs_paused_by_operator =
            find_runs_paused_by_operator(tx, &start.wanted, &runs).await?;
        let rare = RareRows::load(start.wanted, &deps.store, tx, id, now).await?;
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
            on_behalf: None,
            version,
            taxpayer: Tracked::from_stored(taxpayer),
            endpoints: endpoints.into_iter().map(Tracked::from_stored).collect(),
            head,
            invoices: InvoiceIndex::new(rows.invoices.take(id), rows.without_notes.take(id)),
            items: rows.items.take(id).into_iter().collect(),
            customers: rows.customers.take(id).into_iter().collect(),
            runs: runs.into_iter().map(Tracked::from_stored).collect(),
            runs_paused_by_operator,
            supplier_invoices: rare.supplier_invoices,
            acknowledged: rare.acknowledged,
            ledger: rare.ledger,
            integration: Tracked::from_stored(rare.integration),
            import_profile: rare.import_profile,
            valid_keys: rare.valid_keys,
            replays: rare.replays,
            corrections: rare.corrections,
            correcting: rows.correcting.take(id).into_iter().collect(),
            sent_outages: rare.sent_outages,
            imports: rare.imports,
            conflicts: rare.conflicts,
            ids: start.ids,
            writes: Tracked::from_stored(WriteSet::default()),
        });
    }
    Ok(units)
}

/// Rows that many commands need. They are read for all taxpayers together.
struct CommonRows {
    invoices: RowsByTaxpayer<Invoice>,
    /// The invoices whose signed credit notes are too many or too large to be read.
    without_notes: RowsByTaxpayer<InvoiceId>,
    /// The id of each invoice to be corrected, with the invoices that refer to it. An entry is missing if these are too
    /// many or too large.
    correcting: RowsByTaxpayer<(InvoiceId, Vec<Invoice>)>,
    items: RowsByTaxpayer<Item>,
    customers: RowsByTaxpayer<Customer>,
    runs: RowsByTaxpayer<Run>,
}

impl CommonRows {
    async fn load(tx: &Transaction, starts: &mut [UnloadedMember]) -> Result<Self, StoreError> {
        let names = take_from_each_read_set(starts, ReadSet::take_invoices);
        let mut invoices: RowsByTaxpayer<Invoice> = RowsByTaxpayer::default();
        for invoice in invoices::find_by_identifiers(tx, names).await? {
            invoices.put(invoice.taxpayer_id, invoice);
        }
        let mut without_notes = RowsByTaxpayer::default();
        let mut room = CREDIT_NOTES_BYTES_MAX;
        for UnloadedMember { id, wanted, .. } in starts.iter_mut() {
            if wanted.with_invoices.credit_notes {
                for invoice in add_credit_notes(tx, *id, &mut invoices, &mut room).await? {
                    without_notes.put(*id, invoice);
                }
            }
            wanted.add_loaded_invoices(invoices.owned_by(*id));
        }
        let correcting = load_correcting_invoices(tx, starts).await?;
        let names = take_from_each_read_set(starts, |wanted| std::mem::take(&mut wanted.items));
        let items: RowsByTaxpayer<Item> = customers_and_items::find_items(tx, names)
            .await?
            .into_iter()
            .collect();
        let names = take_from_each_read_set(starts, |wanted| std::mem::take(&mut wanted.customers));
        let customers: RowsByTaxpayer<Customer> = customers_and_items::find_customers(tx, names)
            .await?
            .into_iter()
            .collect();
        let names =
            take_from_each_read_set(starts, |wanted| std::mem::take(&mut wanted.run_irn_keys));
        let runs = runs::find_by_irn_keys(tx, names).await?;
        let runs = runs.into_iter().map(|run| (run.taxpayer_id, run));
        Ok(Self {
            invoices,
            without_notes,
            correcting,
            items,
            customers,
            runs: runs.collect(),
        })
    }
}

/// Adds to the loaded invoices of a taxpayer the signed credit notes that refer to them. Returns the invoices whose
/// credit notes are too many or too large to be read. `room` is the number of bytes that the transaction may still
/// read.
async fn add_credit_notes(
    tx: &Transaction,
    id: TaxpayerId,
    invoices: &mut RowsByTaxpayer<Invoice>,
    room: &mut usize,
) -> Result<Vec<InvoiceId>, StoreError> {
    let found = credit_notes::find_signed(tx, id, invoices.owned_by(id), room).await?;
    let known = invoices.owned_by(id).iter();
    let known: HashSet<_> = known.map(|known| known.id).collect();
    for note in found.read {
        if !known.contains(&note.id) {
            invoices.put(id, note);
        }
    }
    Ok(found.unread)
}

/// Loads, for each invoice to be corrected, the invoices that refer to it, and adds their runs to the read sets. If
/// those that refer to an invoice are too many or too large, loads none of them.
async fn load_correcting_invoices(
    tx: &Transaction,
    starts: &mut [UnloadedMember],
) -> Result<RowsByTaxpayer<(InvoiceId, Vec<Invoice>)>, StoreError> {
    let mut correcting = RowsByTaxpayer::default();
    for UnloadedMember { id, wanted, .. } in starts {
        for (original, references) in &wanted.corrected_references {
            let found =
                correcting_documents::load_correcting_documents(tx, *id, references).await?;
            if let Some(found) = found {
                let keys = found.iter().map(|invoice| invoice.irn.key());
                wanted.run_irn_keys.extend(keys);
                correcting.put(*id, (*original, found));
            }
        }
    }
    Ok(correcting)
}

/// Returns those of the loaded runs that an operator has paused; none if no command asks for them.
async fn find_runs_paused_by_operator(
    tx: &Transaction,
    wanted: &ReadSet,
    runs: &[Run],
) -> Result<HashSet<RunId>, StoreError> {
    let paused = runs.iter().filter(|run| run.state() == RunState::Paused);
    let ids: Vec<_> = paused
        .filter(|_| wanted.runs_paused_by_operator)
        .map(|run| run.id)
        .collect();
    audit::find_runs_paused_by_operator(tx, &ids).await
}

/// Takes out of each member's read set the part that `part` selects. Returns each part with the id of its taxpayer.
fn take_from_each_read_set<T>(
    starts: &mut [UnloadedMember],
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
    ledger: LoadedLedger,
    integration: Option<Integration>,
    import_profile: ImportProfile,
    valid_keys: usize,
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
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let kind = EventKind::InvoiceAcknowledged;
        Ok(Self {
            supplier_invoices: supplier_invoices::find_owned_by_irn_keys(
                tx,
                id,
                wanted.supplier_irn_keys,
            )
            .await?,
            acknowledged: events::find_irns_with_event(tx, id, kind, wanted.receipts).await?,
            ledger: LoadedLedger::load(tx, id, &wanted.ledgers).await?,
            integration: if wanted.settings.integration {
                integrations::owned_by(store, tx, id).await?
            } else {
                None
            },
            import_profile: if wanted.settings.import_profile {
                import_profiles::owned_by(tx, id).await?
            } else {
                ImportProfile::default()
            },
            valid_keys: if wanted.valid_keys {
                let owner = KeyOwner {
                    kind: KeyKind::Taxpayer,
                    id: id.0,
                };
                keys::count_valid(tx, owner, now).await?
            } else {
                0
            },
            replays: if wanted.replays {
                replays::running_owned_by(tx, id).await?
            } else {
                Vec::new()
            },
            corrections: corrections::find_owned_by_invoices(tx, id, &wanted.corrected).await?,
            sent_outages: outages::find_notified_events(tx, id, &wanted.outages).await?,
            imports: imports::find_owned_by_numbers(tx, id, &wanted.imports).await?,
            conflicts: find_conflicts(tx, wanted.unique_values).await?,
        })
    }
}
