//! What a batch writes, in one transaction and in set-based statements: a row a change, an insert a table.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::actors::dispatch::Place;
use crate::actors::taxpayer::command::NewContact;
use crate::actors::taxpayer::desk::Desk;
use crate::domain::access::api_key::{KeyOwner, NewKey};
use crate::domain::access::caller::KeyKind;
use crate::domain::events::delivery::Delivery;
use crate::domain::events::event::{Event, EventKind};
use crate::domain::events::replay::Replay;
use crate::domain::invoice::batch::Batch;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::audit::AuditEntry;
use crate::domain::kernel::ids::{CustomerId, InvoiceId, ItemId, RunId, TaxpayerId};
use crate::domain::pipeline::{Run, StepResult};
use crate::domain::supplier_invoice::SupplierInvoice;
use crate::store::accounts::contact_row;
use crate::store::accounts::keys;
use crate::store::accounts::taxpayers;
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::events;
use crate::store::idempotency::{self, KeyEntry};
use crate::store::invoices;
use crate::store::invoices::batches;
use crate::store::invoices::customers;
use crate::store::invoices::items;
use crate::store::invoices::payment_row;
use crate::store::lanes::fair_queue::{self, QueuedLane};
use crate::store::lanes::{self, LaneKind, Lease};
use crate::store::operations::audit;
use crate::store::operations::outages;
use crate::store::operations::outages::OutageEvent;
use crate::store::operations::supplier_invoices;
use crate::store::runs;
use crate::store::webhooks;
use crate::store::webhooks::deliveries;
use crate::store::webhooks::integrations;
use crate::store::webhooks::replays;
use crate::webhook::Secret;

/// How long a replaced signing secret signs along.
const SECRET_OVERLAP: Duration = Duration::from_hours(24);

/// What has changed on the desk.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) invoices: BTreeSet<InvoiceId>,
    pub(crate) customers: BTreeSet<CustomerId>,
    pub(crate) items: BTreeSet<ItemId>,
    pub(crate) runs: BTreeSet<RunId>,
    pub(crate) batches: Vec<Batch>,
    pub(crate) taxpayer: bool,
    pub(crate) new_contact: Option<NewContact>,
    /// The endpoint is to be written; the secret is for one that is new.
    pub(crate) endpoint: Option<SecretString>,
    pub(crate) integration: bool,
    pub(crate) events: Vec<Event>,
    pub(crate) deliveries: Vec<(Delivery, EventKind)>,
    pub(crate) postings: Vec<payment_row::Model>,
    pub(crate) ended_steps: Vec<EndedStep>,
    /// New in the inbox, with their documents.
    pub(crate) received: Vec<(SupplierInvoice, Value)>,
    pub(crate) acknowledged: Vec<(Irn, Timestamp)>,
    pub(crate) replays: Vec<Replay>,
    pub(crate) cancelled_replays: Vec<uuid::Uuid>,
    pub(crate) audit: Vec<AuditEntry>,
    /// Outage notifications, and the events that carried them.
    pub(crate) told_outages: Vec<(OutageEvent, i64)>,
    /// Each once, however many commands of a batch want it: PostgreSQL takes a key once in a statement.
    pub(crate) due_runs: BTreeSet<RunId>,
    pub(crate) released: Vec<Released>,
    /// API keys that replace each other.
    pub(crate) keys: Vec<NewKey>,
    /// Signing secrets that replace each other.
    pub(crate) secrets: Vec<Secret>,
    /// Keys of the commands that were carried out, also of those that changed nothing.
    pub(crate) kept: Vec<KeyEntry>,
}

/// A call of a run whose outcome is known.
#[derive(Debug)]
pub(crate) struct EndedStep {
    pub(crate) attempt_id: uuid::Uuid,
    pub(crate) verdict: StepResult,
    pub(crate) duration_ms: i64,
}

/// A run's lane that is given back.
#[derive(Debug)]
pub(crate) struct Released {
    pub(crate) lease: Lease,
    /// None where it is not due again by itself.
    pub(crate) delay: Option<Duration>,
    pub(crate) gate: Option<&'static str>,
    /// Whether it is taken up apart from the others.
    pub(crate) goes_alone: bool,
}

/// Who comes to know that an endpoint has something to do.
#[derive(Debug)]
pub(crate) enum Woken {
    /// We do: its lane is ours with the commit.
    Taken(Lease),
    /// Whoever serves it.
    Held,
    /// Whoever finds its lane due.
    Due,
}

/// The key of a run's lane: whose it is and which.
pub(crate) fn run_lane(taxpayer: TaxpayerId, run: RunId) -> String {
    format!("{taxpayer}/{run}")
}

fn waiting(run: &Run) -> QueuedLane {
    QueuedLane {
        key: run_lane(run.taxpayer_id, run.id),
        taxpayer_id: run.taxpayer_id.0,
        deadline: run.deadline_at.as_microsecond(),
        step: run.gate(),
    }
}

impl Changes {
    /// Whether the endpoint has something to do: also what waited for one that was disabled.
    pub(crate) fn wakes_endpoint(&self) -> bool {
        let replays = self.replays.len() + self.cancelled_replays.len();
        !self.deliveries.is_empty() || self.endpoint.is_some() || replays > 0
    }

    /// Whether there is anything to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.invoices.is_empty()
            && self.customers.is_empty()
            && self.items.is_empty()
            && self.runs.is_empty()
            && self.batches.is_empty()
            && !self.taxpayer
            && self.endpoint.is_none()
            && !self.integration
            && self.events.is_empty()
            && self.replays.is_empty()
            && self.cancelled_replays.is_empty()
            && self.audit.is_empty()
            && self.ended_steps.is_empty()
            && self.received.is_empty()
            && self.acknowledged.is_empty()
            && self.secrets.is_empty()
            && self.keys.is_empty()
            && self.kept.is_empty()
    }
}

impl Desk {
    /// Writes everything that has changed; who comes to know of what the endpoint has to do, if anything. Where there
    /// is a place at work for the endpoint and nobody holds it, its lane is taken over with it.
    pub(crate) async fn write(
        &self,
        (store, tx): (&Store, &Transaction),
        place: Option<&Place<'_>>,
    ) -> Result<Option<Woken>, StoreError> {
        self.write_account(store, tx).await?;
        self.write_invoices(tx).await?;
        self.write_runs(tx).await?;
        self.write_inbox(tx).await?;
        let woken = self.write_events(tx, place).await?;
        idempotency::keep(store, tx, &self.changes.kept, self.now).await?;
        Ok(woken)
    }

    async fn write_account(&self, store: &Store, tx: &Transaction) -> Result<(), StoreError> {
        let changes = &self.changes;
        if let (true, Some(taxpayer)) = (changes.taxpayer, &self.books.taxpayer) {
            match &changes.new_contact {
                Some(person) => {
                    taxpayers::add(tx, taxpayer, self.contact(person)).await?;
                    lanes::make_due(tx, LaneKind::Verification, &[self.id.to_string()]).await?;
                }
                None => taxpayers::save(tx, taxpayer).await?,
            }
        }
        if changes.endpoint.is_some() || !changes.secrets.is_empty() {
            // The lane before the endpoint itself: who serves it locks them in this order.
            lanes::make_due(tx, LaneKind::Endpoint, &[self.id.to_string()]).await?;
        }
        if let (Some(secret), Some(endpoint)) = (&changes.endpoint, &self.books.endpoint) {
            webhooks::save(store, tx, endpoint, secret.expose_secret()).await?;
        }
        if let (true, Some(integration)) = (changes.integration, &self.integration) {
            integrations::save(store, tx, self.id, integration).await?;
        }
        for secret in &changes.secrets {
            let until = self.now.saturating_add(SECRET_OVERLAP).unwrap_or(jiff::Timestamp::MAX);
            let (text, public_key) = (secret.text(), secret.public_key());
            let new = (text.expose_secret(), public_key);
            webhooks::rotate_secret(store, tx, self.id, new, (self.now, until)).await?;
        }
        for key in &changes.keys {
            keys::rotate(tx, KeyOwner { kind: KeyKind::Taxpayer, id: self.id.0 }, key, self.now).await?;
        }
        Ok(())
    }

    fn contact(&self, person: &NewContact) -> contact_row::Model {
        contact_row::Model {
            taxpayer_id: self.id.0,
            id: self.ids.contact,
            first_name: person.first_name.clone(),
            last_name: person.last_name.clone(),
            email: person.email.clone(),
            email_key: person.email.trim().to_lowercase(),
            phone: person.phone.clone(),
            password_hash: person.password_hash.clone(),
            must_change_password: person.must_change_password,
            created_at: self.now.as_microsecond(),
            updated_at: self.now.as_microsecond(),
        }
    }

    async fn write_invoices(&self, tx: &Transaction) -> Result<(), StoreError> {
        let changed = |id: &InvoiceId| self.changes.invoices.contains(id);
        let dirty: Vec<_> =
            self.customers.iter().filter(|one| self.changes.customers.contains(&one.id)).collect();
        customers::save(tx, self.id, &dirty, self.now).await?;
        let dirty: Vec<_> = self.changes.items.iter().filter_map(|id| self.items.get(*id)).collect();
        items::save(tx, self.id, &dirty, self.now).await?;
        let dirty: Vec<_> = self.invoices.iter().filter(|invoice| changed(&invoice.id)).collect();
        invoices::save(tx, &dirty).await?;
        for batch in &self.changes.batches {
            batches::add(tx, batch).await?;
        }
        invoices::post(tx, &self.changes.postings).await
    }

    async fn write_runs(&self, tx: &Transaction) -> Result<(), StoreError> {
        let changes = &self.changes;
        let dirty: Vec<_> = self.runs.iter().filter(|run| changes.runs.contains(&run.id)).collect();
        runs::save(tx, &dirty).await?;
        for step in &changes.ended_steps {
            runs::end_step(tx, self.id, step.attempt_id, &step.verdict, step.duration_ms).await?;
        }
        for released in &changes.released {
            let Released { lease, delay, gate, .. } = released;
            if released.goes_alone {
                lanes::release_isolated(tx, lease, *delay, *gate).await?;
            } else {
                lanes::release_at(tx, lease, *delay, *gate).await?;
            }
        }
        let due: Vec<_> =
            self.runs.iter().filter(|run| changes.due_runs.contains(&run.id)).map(waiting).collect();
        fair_queue::enqueue(tx, LaneKind::Run, &due).await
    }

    async fn write_inbox(&self, tx: &Transaction) -> Result<(), StoreError> {
        for (invoice, document) in &self.changes.received {
            supplier_invoices::add(tx, invoice, document).await?;
        }
        for (irn, at) in &self.changes.acknowledged {
            supplier_invoices::acknowledge(tx, self.id, irn, *at).await?;
        }
        Ok(())
    }

    async fn write_events(
        &self,
        tx: &Transaction,
        place: Option<&Place<'_>>,
    ) -> Result<Option<Woken>, StoreError> {
        let changes = &self.changes;
        events::append(tx, &changes.events).await?;
        outages::record_told(tx, self.id, &changes.told_outages).await?;
        // Before its deliveries: who adds any holds the lane.
        let wakes = changes.wakes_endpoint();
        let woken = if wakes { Some(self.wake_endpoint(tx, place).await?) } else { None };
        deliveries::add(tx, &changes.deliveries, self.now).await?;
        replays::save(tx, &changes.replays).await?;
        replays::cancel(tx, self.id, (&changes.cancelled_replays, self.now)).await?;
        audit::append(tx, &changes.audit).await?;
        Ok(woken)
    }

    async fn wake_endpoint(&self, tx: &Transaction, place: Option<&Place<'_>>) -> Result<Woken, StoreError> {
        let key = self.id.to_string();
        if let Some(place) = place
            && let Some(lease) = lanes::claim_if_idle(tx, LaneKind::Endpoint, &key, place.taker()).await?
        {
            return Ok(Woken::Taken(lease));
        }
        let is_held = lanes::wake(tx, LaneKind::Endpoint, &key).await?;
        Ok(if is_held { Woken::Held } else { Woken::Due })
    }
}
