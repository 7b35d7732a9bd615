//! What a batch needs before it can decide: ids taken beforehand, then everything its commands name, in a
//! few set-based queries.

use jiff::Timestamp;

use crate::actors::supervision::Task;
use crate::actors::taxpayer::books::Books;
use crate::actors::taxpayer::command::{Command, Order, PaymentUpdate, Which};
use crate::actors::taxpayer::desk::{Desk, FreshIds};
use crate::domain::events::event::EventKind;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::revision::RevisedLine;
use crate::domain::invoice::{Invoice, Line};
use crate::domain::kernel::codes::SettableStatus;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{CommandId, TaxpayerId};
use crate::domain::party::CustomerDetails;
use crate::domain::party::verification::VerificationPolicy;
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
use crate::store::webhooks::integrations;
use crate::store::webhooks::replays;

/// Takes the ids that the commands may use.
pub(crate) async fn fresh_ids(store: &Store, tasks: &[Task<Order>]) -> Result<FreshIds, StoreError> {
    let count = |wanted: fn(&Command) -> bool| tasks.iter().filter(|task| wanted(task)).count();
    let mut ids = FreshIds::default();
    let creates: usize = tasks.iter().map(|task| task.drafts().count()).sum();
    let revisions = count(|command| matches!(command, Command::Revise { .. }));
    if creates > 0 {
        ids.invoices = store.ids().take(IdKind::Invoice, creates).await?;
    }
    if creates + revisions > 0 {
        ids.customers = store.ids().take(IdKind::Customer, creates + revisions).await?;
        let lines = tasks.iter().map(|task| line_count(task)).sum();
        ids.items = store.ids().take(IdKind::Item, lines).await?;
    }
    if count(|command| matches!(command, Command::Onboard(_))) > 0 {
        ids.contact = store.ids().next(IdKind::Contact).await?;
    }
    if count(|command| matches!(command, Command::SetWebhook(_))) > 0 {
        ids.webhook = store.ids().next(IdKind::Webhook).await?;
    }
    Ok(ids)
}

/// The lines of a command, each of which may bring a new item.
fn line_count(command: &Command) -> usize {
    let revised = match command {
        Command::Revise { revision, .. } => revision.lines.len(),
        _ => 0,
    };
    command.drafts().map(|draft| draft.lines.len()).sum::<usize>() + revised
}

/// What the commands name.
#[derive(Default)]
struct Wanted {
    invoices: InvoiceNames,
    customer_numbers: Vec<String>,
    tins: Vec<String>,
    items: ItemNames,
    run_irn_keys: Vec<String>,
    supplier_irn_keys: Vec<String>,
    /// IRNs whose receipt may be told of.
    receipts: Vec<String>,
    replays: bool,
    integration: bool,
    outages: Vec<OutageEvent>,
}

impl Wanted {
    fn add(&mut self, command: &Command, books: &Books) {
        for draft in command.drafts() {
            self.invoices.numbers.push(draft.invoice_no.clone());
            let service_id = books.taxpayer.as_ref().map(|taxpayer| taxpayer.service_id.as_str());
            let built = || Irn::of_invoice(&draft.invoice_no, service_id?, draft.invoice_date).ok();
            self.invoices.irn_keys.extend(draft.irn.clone().or_else(built).map(|irn| irn.key()));
            self.add_customer(&draft.customer);
            draft.lines.iter().for_each(|line| self.add_item(line));
        }
        match command {
            Command::Revise { which, revision } => {
                self.add_which(which);
                let original = revision.original.as_deref().and_then(|text| Irn::parse(text).ok());
                self.invoices.irn_keys.extend(original.map(|irn| irn.key()));
                self.add_customer(&revision.customer);
                revision.lines.iter().for_each(|line| self.add_revised_item(line));
            }
            Command::SetStatus { which, .. } | Command::Pay(PaymentUpdate { which, .. }) => {
                self.add_which(which);
            }
            Command::OpenRun(request) => self.add_irn(&request.irn),
            Command::RecordStep(outcome) => self.add_irn(&outcome.run.irn),
            Command::RecordReceipt { irn } | Command::RecordTransit { irn, .. } => {
                self.add_irn(irn);
                self.receipts.push(irn.to_string());
            }
            Command::ReceiveSupplierInvoice(sent) => self.supplier_irn_keys.push(sent.irn.key()),
            Command::AcknowledgeSupplierInvoice { irn } => self.supplier_irn_keys.push(irn.key()),
            Command::TellOutage(notice) => self.outages.push((notice.outage, notice.edge)),
            Command::MoveRun(order) => self.add_irn(&order.irn),
            Command::Reconsider(order) => self.add_irn(&order.irn),
            Command::SetIntegration(_) | Command::KeepRefreshToken(_) => self.integration = true,
            Command::Replay(_)
            | Command::CancelReplay { .. }
            | Command::EnableEndpoint { replay: Some(_) } => self.replays = true,
            _ => {}
        }
    }

    /// A name that no invoice can have finds nothing, which the decision then says.
    fn add_which(&mut self, which: &Which) {
        let _ = self.invoices.add(which.kind, &which.text);
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

    /// An update and a cancellation are also about the runs of their invoice, which they may name without its IRN.
    fn add_runs_of(&mut self, created: Vec<String>, stored: &[Invoice]) {
        self.run_irn_keys.extend(created);
        self.run_irn_keys.extend(stored.iter().map(|invoice| invoice.irn.key()));
    }

    fn add_irn(&mut self, irn: &Irn) {
        self.invoices.irn_keys.push(irn.key());
        self.run_irn_keys.push(irn.key());
    }
}

/// Lays out the desk for a batch.
pub(crate) async fn desk(
    (store, tx): (&Store, &Transaction),
    id: TaxpayerId,
    books: Books,
    (tasks, ids): (&[Task<Order>], FreshIds),
    (now, deadlines, verification): (Timestamp, DeadlinePolicy, VerificationPolicy),
) -> Result<Desk, StoreError> {
    let mut wanted = Wanted::default();
    for task in tasks {
        wanted.add(task, &books);
    }
    let taken = taken(tx, id, &books, (tasks, now)).await?;
    let names = std::mem::take(&mut wanted.invoices);
    let irn_keys = names.irn_keys.clone();
    let invoices = invoices::owned_by_with_names(tx, id, names).await?;
    if tasks.iter().any(|task| may_end_runs(task)) {
        wanted.add_runs_of(irn_keys, &invoices);
    }
    if !wanted.receipts.is_empty() {
        wanted.receipts.extend(invoices.iter().map(|invoice| invoice.irn.to_string()));
    }
    Ok(Desk {
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
        acknowledged: events::irns_told_of(tx, id, EventKind::InvoiceAcknowledged, wanted.receipts).await?,
        integration: if wanted.integration { integrations::owned_by(store, tx, id).await? } else { None },
        replays: if wanted.replays { replays::open_owned_by(tx, id).await? } else { Vec::new() },
        told_outages: outages::told_to(tx, id, &wanted.outages).await?,
        ids,
        taken,
        books,
        changes: super::changes::Changes::default(),
    })
}

fn may_end_runs(command: &Command) -> bool {
    matches!(command, Command::Revise { .. } | Command::SetStatus { status: SettableStatus::Cancelled, .. })
}

/// What other taxpayers have already of what these commands want to be unique.
async fn taken(
    tx: &Transaction,
    id: TaxpayerId,
    books: &Books,
    (tasks, now): (&[Task<Order>], Timestamp),
) -> Result<Vec<(CommandId, Faults)>, StoreError> {
    let mut taken = Vec::new();
    for task in tasks {
        let faults = match (&***task, &books.taxpayer) {
            (Command::Onboard(onboarding), _) => {
                let login = Some(onboarding.contact.email.as_str());
                taxpayers::taken(tx, &onboarding.taxpayer(id, now), login).await?
            }
            (Command::ChangeProfile(change, _), Some(taxpayer)) if change.email.is_some() => {
                let mut changed = taxpayer.clone();
                change.as_ref().clone().apply(&mut changed);
                taxpayers::taken(tx, &changed, None).await?
            }
            _ => continue,
        };
        taken.push((task.id.into(), faults));
    }
    Ok(taken)
}
