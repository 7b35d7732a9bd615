//! Writes everything that a transaction changes, with one statement per table for all taxpayers where that is possible.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use database::{StoreError, Transaction};
use secrecy::ExposeSecret;
use timing::clock;
use webhook_client::SigningSecret;

use crate::actors::dispatch::ReservedSlot;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::write_set::FirstContact;
use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::caller::KeyKind;
use crate::domain::access::session::ContactRole;
use crate::domain::kernel::ids::EndpointKey;
use crate::domain::party::settings::Change;
use crate::domain::pipeline::{Run, Step, run_lane};
use crate::store::Store;
use crate::store::accounts::contact_row;
use crate::store::accounts::keys;
use crate::store::accounts::logos;
use crate::store::accounts::taxpayers;
use crate::store::events;
use crate::store::idempotency;
use crate::store::invoices;
use crate::store::invoices::batches;
use crate::store::invoices::corrections;
use crate::store::invoices::customers;
use crate::store::invoices::import_pieces;
use crate::store::invoices::import_profiles;
use crate::store::invoices::imports;
use crate::store::invoices::items;
use crate::store::invoices::payments;
use crate::store::invoices::ubl_parts;
use crate::store::lanes::claim;
use crate::store::lanes::leases;
use crate::store::lanes::{self, LaneKind, LaneName, Lease, QueuedLane, Wake};
use crate::store::operations::audit;
use crate::store::operations::notices;
use crate::store::operations::outages;
use crate::store::operations::supplier_invoices;
use crate::store::runs;
use crate::store::runs::step_log;
use crate::store::webhooks;
use crate::store::webhooks::deliveries;
use crate::store::webhooks::integrations;
use crate::store::webhooks::replays;
use crate::store::webhooks::secrets::{self, SecretRotation};

/// How long a replaced signing secret still signs notifications together with the new secret.
const SECRET_OVERLAP: Duration = Duration::from_hours(24);

/// The way in which the worker of a webhook endpoint was woken.
#[derive(Debug)]
pub(crate) enum WakeResult {
    /// The lane was free; this process holds its lease once the transaction commits.
    Taken(Lease),
    /// A worker holds the lane and is notified.
    Held,
    /// The lane is due; a dispatcher will claim it.
    Due,
}

fn queued_lane(run: &Run) -> QueuedLane {
    QueuedLane {
        key: run_lane(run.taxpayer_id, run.id),
        taxpayer_id: run.taxpayer_id.0,
        deadline: run.deadline_at.as_microsecond(),
        next_step: run.next_step().map(Step::as_str),
    }
}

/// Writes the changes of all units of work. Takes the lease of up to `slots.len()` endpoint lanes that no process
/// holds, one for each reserved worker slot. Returns how the workers of the endpoints with new work were woken.
pub(crate) async fn write_all(
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
        idempotency::keep(store, tx, &used, now).await?;
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
    customers::save(tx, &customers.collect::<Vec<_>>(), now).await?;
    let items = units.iter().flat_map(|unit| {
        let changed = unit.items.changed_items();
        changed.map(|item| (unit.id, item))
    });
    items::save(tx, &items.collect::<Vec<_>>(), now).await?;
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
        for (invoice, parts) in &unit.writes.ubl_parts {
            ubl_parts::add(tx, unit.id, *invoice, parts).await?;
        }
        for piece in &unit.writes.imported_pieces {
            import_pieces::finish(tx, unit.id, piece).await?;
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
    step_log::log(tx, &attempts).await?;
    let released: Vec<_> = units
        .iter()
        .flat_map(|unit| &unit.writes.released)
        .cloned()
        .collect();
    leases::release(tx, &released).await?;
    let due = units.iter().flat_map(UnitOfWork::due_runs).map(queued_lane);
    lanes::enqueue(tx, LaneKind::Run, &due.collect::<Vec<_>>()).await
}

async fn write_events(
    tx: &Transaction,
    units: &[UnitOfWork],
    slots: &[ReservedSlot<'_>],
) -> Result<Vec<(EndpointKey, WakeResult)>, StoreError> {
    let events: Vec<_> = units.iter().flat_map(|unit| &unit.writes.events).collect();
    events::append(tx, &events).await?;
    for unit in units {
        outages::record_notified(tx, unit.id, &unit.writes.sent_outages).await?;
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
    let woken: Vec<_> = units.iter().flat_map(UnitOfWork::woken_endpoints).collect();
    let mut keys: Vec<_> = woken.iter().map(EndpointKey::to_string).collect();
    let mut taken = HashMap::new();
    if let Some(slot) = slots.first() {
        let first = &keys[..keys.len().min(slots.len())];
        let leases =
            claim::claim_idle(tx, LaneKind::Endpoint, first, slot.owner(), slot.lease()).await?;
        let by_key = leases.into_iter().map(|lease| (lease.key.clone(), lease));
        taken.extend(by_key);
    }
    keys.retain(|key| !taken.contains_key(key));
    let held = lanes::wake(tx, LaneKind::Endpoint, &keys, Wake::NotParked).await?;
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
    pub(crate) fn written_lanes(&self) -> impl Iterator<Item = LaneName> {
        let runs = self.writes.due_runs.iter();
        let runs = runs.map(|run| LaneName {
            kind: LaneKind::Run,
            key: run_lane(self.id, *run),
        });
        let mut endpoints = self.woken_endpoints();
        endpoints.extend(self.rewritten_endpoints());
        runs.chain(endpoints.into_iter().map(|endpoint| LaneName {
            kind: LaneKind::Endpoint,
            key: endpoint.to_string(),
        }))
    }

    /// Returns the endpoints whose own rows are written.
    fn rewritten_endpoints(&self) -> BTreeSet<EndpointKey> {
        let secrets = self.writes.secrets.iter();
        self.changed_endpoints()
            .map(|endpoint| endpoint.key)
            .chain(secrets.map(|(endpoint, _)| *endpoint))
            .chain(self.writes.removed_endpoints.iter().copied())
            .collect()
    }

    async fn write_account(&self, store: &Store, tx: &Transaction) -> Result<(), StoreError> {
        let writes = &self.writes;
        if let Some(Some(taxpayer)) = self.taxpayer.changed_value() {
            match &writes.first_contact {
                Some(contact) => {
                    taxpayers::add(tx, taxpayer, self.to_contact_row(contact)).await?;
                    lanes::wake(
                        tx,
                        LaneKind::Verification,
                        &[self.id.to_string()],
                        Wake::All,
                    )
                    .await?;
                }
                None => taxpayers::save(tx, taxpayer).await?,
            }
        }
        match &writes.logo {
            Change::Keep => {}
            Change::Unset => logos::remove(tx, self.id).await?,
            Change::Set(logo) => logos::put(tx, self.id, logo).await?,
        }
        self.write_endpoints(store, tx).await?;
        if let Some(profile) = &writes.import_profile {
            import_profiles::save(tx, self.id, profile, self.now).await?;
        }
        if let Some(Some(integration)) = self.integration.changed_value() {
            integrations::save(store, tx, self.id, integration).await?;
        }
        let owner = KeyOwner {
            kind: KeyKind::Taxpayer,
            id: self.id.0,
        };
        for key in &writes.keys {
            keys::rotate(tx, owner, key, self.now).await?;
        }
        for id in &writes.revoked_keys {
            keys::revoke_one(tx, owner, id).await?;
        }
        Ok(())
    }

    async fn write_endpoints(&self, store: &Store, tx: &Transaction) -> Result<(), StoreError> {
        let writes = &self.writes;
        // Locks the lanes before the endpoints' own rows. The endpoints' workers lock in the same order, so the two cannot
        // deadlock.
        let lanes = self.rewritten_endpoints();
        let lanes: Vec<_> = lanes.iter().map(EndpointKey::to_string).collect();
        lanes::wake(tx, LaneKind::Endpoint, &lanes, Wake::All).await?;
        for endpoint in self.changed_endpoints() {
            // Only a new endpoint gets this secret. A stored endpoint keeps its own.
            let mut given = writes.first_secrets.iter();
            let secret = match given.find(|(key, _)| *key == endpoint.key) {
                Some((_, secret)) => secret.text(),
                None => SigningSecret::generate(&mut clock::system_rng()).text(),
            };
            webhooks::save(store, tx, endpoint, secret.expose_secret()).await?;
        }
        for (endpoint, secret) in &writes.secrets {
            let text = secret.text();
            let rotation = SecretRotation {
                secret: text.expose_secret(),
                public_key: secret.public_key(),
                now: self.now,
                overlap_until: self
                    .now
                    .saturating_add(SECRET_OVERLAP)
                    .unwrap_or(jiff::Timestamp::MAX),
            };
            secrets::rotate_secret(store, tx, *endpoint, rotation).await?;
        }
        webhooks::remove(tx, &writes.removed_endpoints).await
    }

    fn to_contact_row(&self, FirstContact { id, person }: &FirstContact) -> contact_row::Model {
        contact_row::Model {
            taxpayer_id: self.id.0,
            id: *id,
            first_name: person.first_name.clone(),
            last_name: person.last_name.clone(),
            email: person.email.clone(),
            email_key: person.email.trim().to_lowercase(),
            phone: person.phone.clone(),
            password_hash: person.password_hash.clone(),
            role: ContactRole::Owner.to_string(),
            created_at: self.now.as_microsecond(),
            updated_at: self.now.as_microsecond(),
            disabled_at: None,
        }
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
