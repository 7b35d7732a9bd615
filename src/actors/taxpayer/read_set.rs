//! Everything that a transaction reads before its commands are decided: the cached states and the rows that the
//! commands name.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::actors::supervision::Task;
use crate::actors::taxpayer::actor::TaxpayerDeps;
use crate::actors::taxpayer::command::{CommandEnvelope, TaxpayerCommand};
use crate::actors::taxpayer::indexes::ByOwner;
use crate::actors::taxpayer::unit_of_work::{ReservedIds, UnitOfWork};
use crate::actors::taxpayer::write_set::WriteSet;
use crate::domain::events::delivery::Endpoint;
use crate::domain::events::event::{EventKind, LogHead};
use crate::domain::events::replay::Replay;
use crate::domain::integration::Integration;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::item::Item;
use crate::domain::invoice::revision::RevisedLine;
use crate::domain::invoice::{Invoice, Line};
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::codes::SettableStatus;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{CommandId, TaxpayerId};
use crate::domain::party::{Customer, CustomerDetails, Taxpayer};
use crate::domain::payment::PaymentUpdate;
use crate::domain::pipeline::Run;
use crate::domain::supplier_invoice::SupplierInvoice;
use crate::store::accounts::taxpayers;
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::db::ids::IdKind;
use crate::store::events;
use crate::store::invoices;
use crate::store::invoices::InvoiceNames;
use crate::store::invoices::customers::{self, CustomerNames};
use crate::store::invoices::items::{self, ItemNames};
use crate::store::operations::outages;
use crate::store::operations::outages::OutageEvent;
use crate::store::operations::supplier_invoices;
use crate::store::runs;
use crate::store::webhooks::replays;
use crate::store::webhooks::{self, integrations};

/// The part of a taxpayer's data that its actor keeps between batches. It is loaded again if the version of the
/// taxpayer's lane shows that another process has written since.
#[derive(Debug, Clone)]
pub(crate) struct CachedState {
    /// The version of the lane for which this state is current.
    pub(crate) version: i64,
    /// `None` until the taxpayer is onboarded.
    pub(crate) taxpayer: Option<Taxpayer>,
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) head: LogHead,
}

impl CachedState {
    /// Loads the states of taxpayers whose lanes are locked. Each id comes with the version of its lane.
    pub(crate) async fn load(
        tx: &Transaction,
        versions: &[(TaxpayerId, i64)],
    ) -> Result<HashMap<TaxpayerId, Self>, StoreError> {
        if versions.is_empty() {
            return Ok(HashMap::new());
        }
        let ids: Vec<_> = versions.iter().map(|(id, _)| *id).collect();
        let mut taxpayers = taxpayers::with_ids(tx, &ids).await?;
        let mut endpoints = webhooks::with_owners(tx, &ids).await?;
        let mut heads = events::heads(tx, &ids).await?;
        let state = |(id, version): &(TaxpayerId, i64)| {
            let state = Self {
                version: *version,
                taxpayer: taxpayers.remove(id),
                endpoint: endpoints.remove(id),
                head: heads.remove(id).unwrap_or_default(),
            };
            (*id, state)
        };
        Ok(versions.iter().map(state).collect())
    }

    /// Returns the state with the lane's version before it was locked, which a rollback restores.
    pub(crate) fn before_lock(self) -> Self {
        Self { version: self.version - 1, ..self }
    }
}

/// Reserves the ids that the commands may use.
pub(crate) async fn reserve_ids(
    store: &Store,
    tasks: &[Task<CommandEnvelope>],
) -> Result<ReservedIds, StoreError> {
    let count = |wanted: fn(&TaxpayerCommand) -> bool| tasks.iter().filter(|task| wanted(task)).count();
    let mut ids = ReservedIds::default();
    let creates: usize = tasks.iter().map(|task| task.drafts().count()).sum();
    let revisions = count(|command| matches!(command, TaxpayerCommand::Revise { .. }));
    if creates > 0 {
        ids.invoices = store.ids().take(IdKind::Invoice, creates).await?;
    }
    if creates + revisions > 0 {
        ids.customers = store.ids().take(IdKind::Customer, creates + revisions).await?;
        let lines = tasks.iter().map(|task| task.line_count()).sum();
        ids.items = store.ids().take(IdKind::Item, lines).await?;
    }
    if count(|command| matches!(command, TaxpayerCommand::Onboard(_))) > 0 {
        ids.contact = store.ids().next(IdKind::Contact).await?;
    }
    if count(|command| matches!(command, TaxpayerCommand::SetWebhook(_))) > 0 {
        ids.webhook = store.ids().next(IdKind::Webhook).await?;
    }
    Ok(ids)
}

/// The identifiers of the rows that a taxpayer's commands read.
#[derive(Default)]
struct ReadSet {
    invoices: InvoiceNames,
    customers: CustomerNames,
    items: ItemNames,
    run_irn_keys: Vec<String>,
    supplier_irn_keys: Vec<String>,
    /// IRNs of invoices whose receipt a command may record.
    receipts: Vec<String>,
    replays: bool,
    integration: bool,
    outages: Vec<OutageEvent>,
}

impl ReadSet {
    fn add(&mut self, command: &TaxpayerCommand, cached: &CachedState) {
        for draft in command.drafts() {
            self.invoices.numbers.push(draft.invoice_no.clone());
            let service_id = cached.taxpayer.as_ref().map(|taxpayer| taxpayer.service_id.as_str());
            let built = || Irn::of_invoice(&draft.invoice_no, service_id?, draft.invoice_date).ok();
            self.invoices.irn_keys.extend(draft.irn.clone().or_else(built).map(|irn| irn.key()));
            self.add_customer(&draft.customer);
            draft.lines.iter().for_each(|line| self.add_item(line));
        }
        match command {
            TaxpayerCommand::Revise { invoice, revision } => {
                self.add_invoice(invoice);
                let original = revision.original.as_deref().and_then(|text| Irn::parse(text).ok());
                self.invoices.irn_keys.extend(original.map(|irn| irn.key()));
                self.add_customer(&revision.customer);
                revision.lines.iter().for_each(|line| self.add_revised_item(line));
            }
            TaxpayerCommand::SetStatus { invoice, .. }
            | TaxpayerCommand::Pay(PaymentUpdate { invoice, .. }) => {
                self.add_invoice(invoice);
            }
            TaxpayerCommand::OpenRun(request) => self.add_irn(&request.irn),
            TaxpayerCommand::RecordSteps(progress) => self.add_irn(&progress.irn),
            TaxpayerCommand::RecordReceipt { irn } | TaxpayerCommand::RecordTransit { irn, .. } => {
                self.add_irn(irn);
                self.receipts.push(irn.to_string());
            }
            TaxpayerCommand::ReceiveSupplierInvoice(document) => {
                self.supplier_irn_keys.push(document.irn.key());
            }
            TaxpayerCommand::AcknowledgeSupplierInvoice { irn } => self.supplier_irn_keys.push(irn.key()),
            TaxpayerCommand::NotifyOutage(notice) => {
                self.outages.push(OutageEvent { outage: notice.outage, edge: notice.edge });
            }
            TaxpayerCommand::ApplyOperatorAction(request) => self.add_irn(&request.irn),
            TaxpayerCommand::RecheckRun(recheck) | TaxpayerCommand::LiftRun(recheck) => {
                self.add_irn(&recheck.irn);
            }
            TaxpayerCommand::SetIntegration(_) | TaxpayerCommand::StoreRefreshToken(_) => {
                self.integration = true;
            }
            TaxpayerCommand::Replay(_)
            | TaxpayerCommand::CancelReplay { .. }
            | TaxpayerCommand::EnableEndpoint { replay: Some(_) } => self.replays = true,
            _ => {}
        }
    }

    /// A number that no invoice can have is ignored: the command then finds no invoice and is refused.
    fn add_invoice(&mut self, invoice_ref: &InvoiceRef) {
        let _ = self.invoices.add(invoice_ref.kind, &invoice_ref.text);
    }

    fn add_customer(&mut self, customer: &CustomerDetails) {
        self.customers.numbers.insert(customer.no.clone());
        self.customers.tins.extend(customer.tin.clone());
    }

    fn add_item(&mut self, line: &Line) {
        match &line.item_no {
            Some(no) => self.items.numbers.insert(no.clone()),
            None => self.items.names.insert(line.item_name.clone()),
        };
    }

    fn add_revised_item(&mut self, line: &RevisedLine) {
        match (line.item_id, &line.item_no, &line.item_name) {
            (Some(id), _, _) => drop(self.items.ids.insert(id)),
            (None, Some(no), _) => drop(self.items.numbers.insert(no.clone())),
            (None, None, Some(name)) => drop(self.items.names.insert(name.clone())),
            (None, None, None) => {}
        }
    }

    fn add_irn(&mut self, irn: &Irn) {
        self.invoices.irn_keys.push(irn.key());
        self.run_irn_keys.push(irn.key());
    }
}

/// One taxpayer's commands with the cached state and the ids that were reserved for them.
pub(crate) struct BatchStart<'a> {
    pub(crate) id: TaxpayerId,
    pub(crate) tasks: &'a [Task<CommandEnvelope>],
    pub(crate) cached: CachedState,
    pub(crate) ids: ReservedIds,
}

/// Reads the rows that the commands of these taxpayers name. Returns one unit of work per taxpayer, in the order of
/// `starts`.
pub(crate) async fn load(
    deps: &TaxpayerDeps,
    tx: &Transaction,
    now: Timestamp,
    starts: Vec<BatchStart<'_>>,
) -> Result<Vec<UnitOfWork>, StoreError> {
    let mut read_sets: Vec<_> = starts.iter().map(ReadSet::of).collect();
    let names = read_sets.iter_mut().zip(&starts);
    let names = names.map(|(wanted, start)| (start.id, std::mem::take(&mut wanted.invoices)));
    let mut invoices: ByOwner<Invoice> = ByOwner::default();
    for invoice in invoices::with_names(tx, names.collect::<Vec<_>>()).await? {
        invoices.put(invoice.taxpayer_id, invoice);
    }
    for (wanted, start) in read_sets.iter_mut().zip(&starts) {
        wanted.add_stored(start.tasks, invoices.of_owner(start.id));
    }
    let names = |wanted: &mut ReadSet| std::mem::take(&mut wanted.items);
    let items = items::with_names(tx, each(&mut read_sets, &starts, names)).await?;
    let mut items: ByOwner<Item> = items.into_iter().collect();
    let names = |wanted: &mut ReadSet| std::mem::take(&mut wanted.customers);
    let customers = customers::with_names(tx, each(&mut read_sets, &starts, names)).await?;
    let mut customers: ByOwner<Customer> = customers.into_iter().collect();
    let names = |wanted: &mut ReadSet| std::mem::take(&mut wanted.run_irn_keys);
    let runs = runs::with_irn_keys(tx, each(&mut read_sets, &starts, names)).await?;
    let mut runs: ByOwner<Run> = runs.into_iter().map(|run| (run.taxpayer_id, run)).collect();

    let mut units = Vec::with_capacity(starts.len());
    for (wanted, start) in read_sets.into_iter().zip(starts) {
        let id = start.id;
        let rare = wanted.load_rare(&deps.store, tx, &start, now).await?;
        units.push(UnitOfWork {
            id,
            now,
            deadlines: deps.deadlines,
            verification: deps.verification,
            invoices: invoices.take(id).into_iter().collect(),
            items: items.take(id).into_iter().collect(),
            customers: customers.take(id).into_iter().collect(),
            runs: runs.take(id),
            supplier_invoices: rare.supplier_invoices,
            acknowledged: rare.acknowledged,
            integration: rare.integration,
            replays: rare.replays,
            sent_outages: rare.sent_outages,
            conflicts: rare.conflicts,
            ids: start.ids,
            acting: Actor::Service.into(),
            cached: start.cached,
            writes: WriteSet::default(),
        });
    }
    Ok(units)
}

/// Takes a part out of every read set. Returns each part with the id of its taxpayer.
fn each<T>(
    read_sets: &mut [ReadSet],
    starts: &[BatchStart<'_>],
    part: impl Fn(&mut ReadSet) -> T,
) -> Vec<(TaxpayerId, T)> {
    read_sets.iter_mut().zip(starts).map(|(wanted, start)| (start.id, part(wanted))).collect()
}

/// Rows that only few commands need. They are read with separate queries for each taxpayer.
struct RareRows {
    supplier_invoices: Vec<SupplierInvoice>,
    acknowledged: Vec<Irn>,
    integration: Option<Integration>,
    replays: Vec<Replay>,
    sent_outages: Vec<OutageEvent>,
    conflicts: Vec<(CommandId, Faults)>,
}

impl ReadSet {
    fn of(start: &BatchStart<'_>) -> Self {
        let mut wanted = Self::default();
        for task in start.tasks {
            wanted.add(task, &start.cached);
        }
        if start.tasks.iter().any(|task| may_end_runs(task)) {
            wanted.run_irn_keys.extend(wanted.invoices.irn_keys.iter().cloned());
        }
        wanted
    }

    /// Adds the IRNs of the loaded invoices. A command may name its invoice by number, but runs and receipts are found
    /// by IRN.
    fn add_stored(&mut self, tasks: &[Task<CommandEnvelope>], invoices: &[Invoice]) {
        if tasks.iter().any(|task| may_end_runs(task)) {
            self.run_irn_keys.extend(invoices.iter().map(|invoice| invoice.irn.key()));
        }
        if !self.receipts.is_empty() {
            self.receipts.extend(invoices.iter().map(|invoice| invoice.irn.to_string()));
        }
    }

    async fn load_rare(
        self,
        store: &Store,
        tx: &Transaction,
        start: &BatchStart<'_>,
        now: Timestamp,
    ) -> Result<RareRows, StoreError> {
        let id = start.id;
        let supplier_invoices =
            supplier_invoices::owned_by_with_irn_keys(tx, id, self.supplier_irn_keys).await?;
        Ok(RareRows {
            supplier_invoices,
            acknowledged: events::irns_with(tx, id, EventKind::InvoiceAcknowledged, self.receipts).await?,
            integration: if self.integration { integrations::owned_by(store, tx, id).await? } else { None },
            replays: if self.replays { replays::open_owned_by(tx, id).await? } else { Vec::new() },
            sent_outages: outages::received_by(tx, id, &self.outages).await?,
            conflicts: conflicts(tx, start, now).await?,
        })
    }
}

fn may_end_runs(command: &TaxpayerCommand) -> bool {
    matches!(
        command,
        TaxpayerCommand::Revise { .. } | TaxpayerCommand::SetStatus { status: SettableStatus::Cancelled, .. }
    )
}

/// Returns a fault for each unique value in these commands that another taxpayer already has.
async fn conflicts(
    tx: &Transaction,
    start: &BatchStart<'_>,
    now: Timestamp,
) -> Result<Vec<(CommandId, Faults)>, StoreError> {
    let mut conflicts = Vec::new();
    for task in start.tasks {
        let faults = match (&***task, &start.cached.taxpayer) {
            (TaxpayerCommand::Onboard(onboarding), _) => {
                let login = Some(onboarding.contact.email.as_str());
                taxpayers::taken(tx, &onboarding.taxpayer(start.id, now), login).await?
            }
            (TaxpayerCommand::ChangeProfile(change, _), Some(taxpayer)) if change.email.is_some() => {
                let mut changed = taxpayer.clone();
                change.as_ref().clone().apply(&mut changed);
                taxpayers::taken(tx, &changed, None).await?
            }
            _ => continue,
        };
        conflicts.push((task.id, faults));
    }
    Ok(conflicts)
}
