//! Everything a batch reads before it decides: reserved ids, the cached state, then the rows that its commands name, one
//! query a table.

use jiff::Timestamp;

use crate::actors::supervision::Task;
use crate::actors::taxpayer::command::{CommandEnvelope, TaxpayerCommand};
use crate::actors::taxpayer::unit_of_work::{ReservedIds, UnitOfWork};
use crate::actors::taxpayer::write_set::WriteSet;
use crate::domain::events::delivery::Endpoint;
use crate::domain::events::event::{EventKind, LogHead};
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::revision::RevisedLine;
use crate::domain::invoice::{Invoice, Line};
use crate::domain::kernel::codes::SettableStatus;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{CommandId, TaxpayerId};
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::party::{CustomerDetails, Taxpayer};
use crate::domain::payment::PaymentUpdate;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::store::accounts::taxpayers;
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::db::ids::IdKind;
use crate::store::events;
use crate::store::invoices;
use crate::store::invoices::InvoiceNames;
use crate::store::invoices::customers;
use crate::store::invoices::items;
use crate::store::invoices::items::ItemNames;
use crate::store::operations::outages;
use crate::store::operations::outages::OutageEvent;
use crate::store::operations::supplier_invoices;
use crate::store::runs;
use crate::store::webhooks::replays;
use crate::store::webhooks::{self, integrations};

/// What the actor keeps of its taxpayer between batches. It is current as long as the lane's version shows that no other
/// process has written; otherwise it is loaded again.
#[derive(Debug, Clone)]
pub(crate) struct CachedState {
    /// The lane's version when this was current.
    pub(crate) version: i64,
    /// None until the taxpayer is onboarded.
    pub(crate) taxpayer: Option<Taxpayer>,
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) head: LogHead,
}

impl CachedState {
    pub(crate) async fn load(tx: &Transaction, id: TaxpayerId, version: i64) -> Result<Self, StoreError> {
        Ok(Self {
            version,
            taxpayer: taxpayers::with_id(tx, id).await?,
            endpoint: webhooks::owned_by(tx, id).await?,
            head: events::head(tx, id).await?,
        })
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
        let lines = tasks.iter().map(|task| line_count(task)).sum();
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

/// The number of lines of a command. Each line may need a new item id.
fn line_count(command: &TaxpayerCommand) -> usize {
    let revised = match command {
        TaxpayerCommand::Revise { revision, .. } => revision.lines.len(),
        _ => 0,
    };
    command.drafts().map(|draft| draft.lines.len()).sum::<usize>() + revised
}

/// The names of the rows that the commands of a batch read.
#[derive(Default)]
struct ReadSet {
    invoices: InvoiceNames,
    customer_numbers: Vec<String>,
    tins: Vec<String>,
    items: ItemNames,
    run_irn_keys: Vec<String>,
    supplier_irn_keys: Vec<String>,
    /// IRNs whose receipt may be recorded.
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
            TaxpayerCommand::RecordStep(outcome) => self.add_irn(&outcome.run.irn),
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
            TaxpayerCommand::RecheckRun(recheck) => self.add_irn(&recheck.irn),
            TaxpayerCommand::SetIntegration(_) | TaxpayerCommand::StoreRefreshToken(_) => {
                self.integration = true;
            }
            TaxpayerCommand::Replay(_)
            | TaxpayerCommand::CancelReplay { .. }
            | TaxpayerCommand::EnableEndpoint { replay: Some(_) } => self.replays = true,
            _ => {}
        }
    }

    /// A number that no invoice can have is ignored here; the decision then refuses it as not found.
    fn add_invoice(&mut self, invoice_ref: &InvoiceRef) {
        let _ = self.invoices.add(invoice_ref.kind, &invoice_ref.text);
    }

    fn add_customer(&mut self, customer: &CustomerDetails) {
        self.customer_numbers.push(customer.no.clone());
        self.tins.extend(customer.tin.clone());
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

    /// An update and a cancellation also read the runs of their invoice, which they may name by another number than the IRN.
    fn add_runs(&mut self, named: Vec<String>, stored: &[Invoice]) {
        self.run_irn_keys.extend(named);
        self.run_irn_keys.extend(stored.iter().map(|invoice| invoice.irn.key()));
    }

    fn add_irn(&mut self, irn: &Irn) {
        self.invoices.irn_keys.push(irn.key());
        self.run_irn_keys.push(irn.key());
    }
}

/// What is known of a batch before its rows are read.
pub(crate) struct BatchStart {
    pub(crate) id: TaxpayerId,
    pub(crate) now: Timestamp,
    pub(crate) deadlines: DeadlinePolicy,
    pub(crate) verification: VerificationPolicy,
    pub(crate) cached: CachedState,
    pub(crate) ids: ReservedIds,
}

/// Reads the rows that the commands name and returns the unit of work.
pub(crate) async fn load(
    store: &Store,
    tx: &Transaction,
    tasks: &[Task<CommandEnvelope>],
    start: BatchStart,
) -> Result<UnitOfWork, StoreError> {
    let BatchStart { id, now, deadlines, verification, cached, ids } = start;
    let mut wanted = ReadSet::default();
    for task in tasks {
        wanted.add(task, &cached);
    }
    let conflicts = conflicts(tx, &cached, tasks, id, now).await?;
    let names = std::mem::take(&mut wanted.invoices);
    let irn_keys = names.irn_keys.clone();
    let invoices = invoices::owned_by_with_names(tx, id, names).await?;
    if tasks.iter().any(|task| may_end_runs(task)) {
        wanted.add_runs(irn_keys, &invoices);
    }
    if !wanted.receipts.is_empty() {
        wanted.receipts.extend(invoices.iter().map(|invoice| invoice.irn.to_string()));
    }
    Ok(UnitOfWork {
        id,
        now,
        deadlines,
        verification,
        invoices: invoices.into_iter().collect(),
        items: items::owned_by_with_names(tx, id, wanted.items).await?,
        customers: customers::owned_by_with_numbers(tx, id, wanted.customer_numbers, wanted.tins)
            .await?
            .into_iter()
            .collect(),
        runs: runs::owned_by_with_irn_keys(tx, id, wanted.run_irn_keys).await?,
        supplier_invoices: supplier_invoices::owned_by_with_irn_keys(tx, id, wanted.supplier_irn_keys)
            .await?,
        acknowledged: events::irns_with(tx, id, EventKind::InvoiceAcknowledged, wanted.receipts).await?,
        integration: if wanted.integration { integrations::owned_by(store, tx, id).await? } else { None },
        replays: if wanted.replays { replays::open_owned_by(tx, id).await? } else { Vec::new() },
        sent_outages: outages::received_by(tx, id, &wanted.outages).await?,
        ids,
        conflicts,
        cached,
        writes: WriteSet::default(),
    })
}

fn may_end_runs(command: &TaxpayerCommand) -> bool {
    matches!(
        command,
        TaxpayerCommand::Revise { .. } | TaxpayerCommand::SetStatus { status: SettableStatus::Cancelled, .. }
    )
}

/// Finds the unique values of these commands that other taxpayers have already.
async fn conflicts(
    tx: &Transaction,
    cached: &CachedState,
    tasks: &[Task<CommandEnvelope>],
    id: TaxpayerId,
    now: Timestamp,
) -> Result<Vec<(CommandId, Faults)>, StoreError> {
    let mut conflicts = Vec::new();
    for task in tasks {
        let faults = match (&***task, &cached.taxpayer) {
            (TaxpayerCommand::Onboard(onboarding), _) => {
                let login = Some(onboarding.contact.email.as_str());
                taxpayers::taken(tx, &onboarding.taxpayer(id, now), login).await?
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
