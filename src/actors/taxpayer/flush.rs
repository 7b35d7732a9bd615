//! The end of a transaction: writes everything that it changes, commits, and wakes the workers that have new work and
//! the callers that wait for a change. A table is written with one statement for all taxpayers where that is possible.

use std::collections::HashMap;

use database::{StoreError, Transaction};
use timing::trace::Span;

use crate::actors::dispatch::ReservedSlot;
use crate::actors::taxpayer::cached_state::CachedState;
use crate::actors::taxpayer::commit_lookup::resolve_commit;
use crate::actors::taxpayer::deps::TaxpayerDeps;
use crate::actors::taxpayer::direct_runs::{self, LeasedRun};
use crate::actors::taxpayer::member::{TransactionMember, traces};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::kernel::ids::EndpointKey;
use crate::domain::pipeline::{Run, Step, run_lane_key};
use crate::store::Store;
use crate::store::events;
use crate::store::idempotency;
use crate::store::invoices;
use crate::store::invoices::batches;
use crate::store::invoices::corrections;
use crate::store::invoices::customers_and_items;
use crate::store::invoices::import_pieces;
use crate::store::invoices::imports;
use crate::store::invoices::payments;
use crate::store::invoices::ubl_parts;
use crate::store::lanes::claim;
use crate::store::lanes::leases;
use crate::store::lanes::{self, LaneKind, LaneName, LanesToWake, Lease, QueuedLane};
use crate::store::operations::audit;
use crate::store::operations::notices;
use crate::store::operations::outages;
use crate::store::operations::supplier_invoices;
use crate::store::runs;
use crate::store::runs::step_log;
use crate::store::webhooks::deliveries;
use crate::store::webhooks::replays;

/// The result of making an endpoint's lane due: how the endpoint's worker learns of its new work.
#[derive(Debug)]
enum WakeResult {
    /// The lane was free; this process holds its lease once the transaction commits.
    Taken(Lease),
    /// A worker holds the lane and is notified.
    Held,
    /// The lane is due; a dispatcher will claim it.
    Due,
}

/// Writes all changes and commits, or rolls back if there are none. Returns the cached state of each member after the
/// transaction.
pub(super) async fn write_and_commit(
    deps: &TaxpayerDeps,
    tx: Transaction,
    members: &[TransactionMember<'_>],
    units: Vec<UnitOfWork>,
) -> Result<Vec<CachedState>, StoreError> {
    if !units.iter().any(UnitOfWork::has_changes) {
        tx.rollback().await?;
        // The rollback also restored the lanes' versions, so the cached states get the previous versions.
        return Ok(units
            .into_iter()
            .map(|unit| unit.into_cached().with_version_before_lock())
            .collect());
    }
    let commands = members.iter().flat_map(|member| traces(member.tasks));
    let spans = Span::begin_in_each(commands, "commit");
    let wanted = units
        .iter()
        .map(|unit| unit.endpoints_to_wake().len())
        .sum();
    let slots: Vec<_> = std::iter::from_fn(|| deps.notifiers.direct.reserve_slot())
        .take(wanted)
        .collect();
    let wakes = write_all(&deps.store, &tx, &units, &slots).await?;
    let started = direct_runs::lease_due_runs(&deps.notifiers.direct_runs, &tx, &units).await?;
    for member in members {
        member.batch.start_commit();
    }
    if let Err(error) = tx.commit().await {
        resolve_commit(deps, members, &units, error).await?;
    }
    drop(spans);
    notify_after_commit(deps, &units, wakes, slots);
    let due = units
        .iter()
        .map(|unit| unit.writes.due_runs.len())
        .sum::<usize>();
    if due > started.len() {
        direct_runs::announce_blocked_runs(&deps.notifiers.direct_runs, &units);
        deps.notifiers.runs.notify_one();
    }
    started.into_iter().for_each(LeasedRun::hand_over);
    Ok(units.into_iter().map(UnitOfWork::into_cached).collect())
}

fn notify_after_commit(
    deps: &TaxpayerDeps,
    units: &[UnitOfWork],
    wakes: Vec<(EndpointKey, WakeResult)>,
    slots: Vec<ReservedSlot<'_>>,
) {
    let notifiers = &deps.notifiers;
    let mut slots = slots.into_iter();
    for (endpoint, wake) in wakes {
        match wake {
            WakeResult::Taken(lease) => {
                if let Some(slot) = slots.next() {
                    slot.hand_over(lease, None);
                }
            }
            WakeResult::Held => notifiers.endpoint_work.notify(endpoint),
            WakeResult::Due => notifiers.endpoints.notify_one(),
        }
    }
    for unit in units {
        // Callers are notified only of runs that they need not wait for any longer, and of due runs, whose documents
        // may have been replaced.
        let due_runs = &unit.writes.due_runs;
        for run in unit
            .changed_runs()
            .filter(|run| run.may_respond_to_caller() || due_runs.contains(&run.id))
        {
            notifiers.run_changes.publish(run);
        }
    }
}

/// Writes the changes of all units of work. Takes the lease of up to `slots.len()` endpoint lanes that no process
/// holds, one for each reserved worker slot. Returns how the workers of the endpoints with new work were woken.
async fn write_all(
    store: &Store,
    tx: &Transaction,
    units: &[UnitOfWork],
    slots: &[ReservedSlot<'_>],
) -> Result<Vec<(EndpointKey, WakeResult)>, StoreError> {
    for unit in units {
        unit.write_account(store, tx).await?;
    }
    write_invoices(tx, units).await?;
    write_runs(tx, units).await?;
    for unit in units {
        unit.write_inbox(tx).await?;
    }
    let wakes = write_events(tx, units, slots).await?;
    if let Some(now) = units.first().map(|unit| unit.now) {
        let used: Vec<_> = units
            .iter()
            .flat_map(|unit| &unit.writes.used_keys)
            .collect();
        idempotency::store_keys(store, tx, &used, now).await?;
    }
    Ok(wakes)
}

async fn write_invoices(tx: &Transaction, units: &[UnitOfWork]) -> Result<(), StoreError> {
    let Some(now) = units.first().map(|unit| unit.now) else {
        return Ok(());
    };
    let customers = units.iter().flat_map(|unit| {
        unit.customers
            .changed_customers()
            .map(|customer| (unit.id, customer))
    });
    customers_and_items::save_customers(tx, &customers.collect::<Vec<_>>(), now).await?;
    let items = units.iter().flat_map(|unit| {
        let changed = unit.items.changed_items();
        changed.map(|item| (unit.id, item))
    });
    customers_and_items::save_items(tx, &items.collect::<Vec<_>>(), now).await?;
    let invoices = units
        .iter()
        .flat_map(|unit| unit.invoices.changed_invoices());
    invoices::save(tx, &invoices.collect::<Vec<_>>()).await?;
    for batch in units.iter().flat_map(|unit| &unit.writes.batches) {
        batches::add(tx, batch).await?;
    }
    for unit in units {
        for import in &unit.writes.imports {
            imports::add(tx, unit.id, import, now).await?;
        }
        for invoice in &unit.writes.outdated_ubl_parts {
            ubl_parts::remove(tx, unit.id, *invoice).await?;
        }
        for (invoice, parts) in &unit.writes.ubl_parts {
            ubl_parts::add(tx, unit.id, *invoice, parts).await?;
        }
        for piece in &unit.writes.imported_pieces {
            import_pieces::finish_piece(tx, unit.id, piece).await?;
        }
        for import in &unit.writes.cancelled_imports {
            import_pieces::store_cancelled(tx, unit.id, import).await?;
        }
        for correction in &unit.writes.new_corrections {
            corrections::start(tx, unit.id, correction).await?;
        }
        for correction in &unit.writes.corrections {
            corrections::save(tx, unit.id, correction).await?;
        }
    }
    let postings: Vec<_> = units
        .iter()
        .flat_map(|unit| &unit.writes.postings)
        .collect();
    payments::append(tx, &postings).await
}

async fn write_runs(tx: &Transaction, units: &[UnitOfWork]) -> Result<(), StoreError> {
    let changed: Vec<_> = units.iter().flat_map(UnitOfWork::changed_runs).collect();
    runs::save(tx, &changed).await?;
    let attempts: Vec<_> = units
        .iter()
        .flat_map(|unit| &unit.writes.step_attempts)
        .collect();
    step_log::log_attempts(tx, &attempts).await?;
    let released: Vec<_> = units
        .iter()
        .flat_map(|unit| &unit.writes.released)
        .cloned()
        .collect();
    leases::release(tx, &released).await?;
    let due = units.iter().flat_map(UnitOfWork::due_runs).map(queued_lane);
    lanes::enqueue(tx, LaneKind::Run, &due.collect::<Vec<_>>()).await
}

fn queued_lane(run: &Run) -> QueuedLane {
    QueuedLane {
        key: run_lane_key(run.taxpayer_id, run.id),
        taxpayer_id: run.taxpayer_id.0,
        deadline: run.deadline_at.as_microsecond(),
        next_step: run.next_step().map(Step::as_str),
    }
}

async fn write_events(
    tx: &Transaction,
    units: &[UnitOfWork],
    slots: &[ReservedSlot<'_>],
) -> Result<Vec<(EndpointKey, WakeResult)>, StoreError> {
    let events: Vec<_> = units.iter().flat_map(|unit| &unit.writes.events).collect();
    events::append(tx, &events).await?;
    for unit in units {
        outages::record_notified_events(tx, unit.id, &unit.writes.sent_outages).await?;
    }
    // Wakes the endpoints first, because this locks their lanes, and deliveries are added only under that lock.
    let wakes = wake_endpoints(tx, units, slots).await?;
    if let Some(now) = units.first().map(|unit| unit.now) {
        let deliveries: Vec<_> = units
            .iter()
            .flat_map(|unit| &unit.writes.deliveries)
            .collect();
        deliveries::add(tx, &deliveries, now).await?;
    }
    for unit in units {
        replays::save(tx, &unit.writes.replays).await?;
        replays::cancel(tx, &unit.writes.cancelled_replays, unit.now).await?;
        audit::append(tx, &unit.writes.audit).await?;
        notices::add(tx, &unit.writes.notices).await?;
    }
    Ok(wakes)
}

async fn wake_endpoints(
    tx: &Transaction,
    units: &[UnitOfWork],
    slots: &[ReservedSlot<'_>],
) -> Result<Vec<(EndpointKey, WakeResult)>, StoreError> {
    let woken: Vec<_> = units
        .iter()
        .flat_map(UnitOfWork::endpoints_to_wake)
        .collect();
    let mut keys: Vec<_> = woken.iter().map(EndpointKey::to_string).collect();
    let mut taken = HashMap::new();
    if let Some(slot) = slots.first() {
        let first = &keys[..keys.len().min(slots.len())];
        let leases = claim::claim_idle(
            tx,
            LaneKind::Endpoint,
            first,
            slot.owner(),
            slot.lease_duration(),
        )
        .await?;
        let by_key = leases.into_iter().map(|lease| (lease.key.clone(), lease));
        taken.extend(by_key);
    }
    keys.retain(|key| !taken.contains_key(key));
    let held = lanes::wake(tx, LaneKind::Endpoint, &keys, LanesToWake::NotParked).await?;
    let wakes = woken.into_iter().map(|endpoint| {
        let key = endpoint.to_string();
        let wake = match taken.remove(&key) {
            Some(lease) => WakeResult::Taken(lease),
            None if held.contains(&key) => WakeResult::Held,
            None => WakeResult::Due,
        };
        (endpoint, wake)
    });
    Ok(wakes.collect())
}

impl UnitOfWork {
    /// Returns the lanes of runs and endpoints that must be locked to write the changes. They may not exist yet.
    pub(crate) fn lanes_to_write(&self) -> impl Iterator<Item = LaneName> {
        let runs = self.writes.due_runs.iter();
        let runs = runs.map(|run| LaneName {
            kind: LaneKind::Run,
            key: run_lane_key(self.id, *run),
        });
        let mut endpoints = self.endpoints_to_wake();
        endpoints.extend(self.endpoints_to_write());
        runs.chain(endpoints.into_iter().map(|endpoint| LaneName {
            kind: LaneKind::Endpoint,
            key: endpoint.to_string(),
        }))
    }

    async fn write_inbox(&self, tx: &Transaction) -> Result<(), StoreError> {
        for (invoice, document) in &self.writes.received {
            supplier_invoices::add(tx, invoice, document).await?;
        }
        for (irn, at) in &self.writes.acknowledged {
            supplier_invoices::acknowledge(tx, self.id, irn, *at).await?;
        }
        Ok(())
    }
}
