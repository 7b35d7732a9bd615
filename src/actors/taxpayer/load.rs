//! What a batch needs before it can decide: ids taken beforehand, then everything its commands name, in a
//! few set-based queries.

use jiff::Timestamp;

use crate::actors::supervision::Task;
use crate::actors::taxpayer::books::Books;
use crate::actors::taxpayer::command::{Command, PaymentUpdate, Which};
use crate::actors::taxpayer::desk::{Desk, FreshIds};
use crate::domain::fault::Faults;
use crate::domain::ids::{CommandId, TaxpayerId};
use crate::domain::irn::Irn;
use crate::store::database::{Store, Transaction};
use crate::store::failure::StoreError;
use crate::store::ids::IdKind;
use crate::store::invoices::Names;
use crate::store::{customers, invoices, replays, runs, taxpayers};

/// Takes the ids that the commands may use.
pub(crate) async fn fresh_ids(store: &Store, tasks: &[Task<Command>]) -> Result<FreshIds, StoreError> {
    let count = |wanted: fn(&Command) -> bool| tasks.iter().filter(|task| wanted(task)).count();
    let mut ids = FreshIds::default();
    let creates = count(|command| matches!(command, Command::Create(_)));
    if creates > 0 {
        ids.invoices = store.ids().take(IdKind::Invoice, creates).await?;
        ids.customers = store.ids().take(IdKind::Customer, creates).await?;
    }
    if count(|command| matches!(command, Command::Onboard(_))) > 0 {
        ids.contact = store.ids().next(IdKind::Contact).await?;
    }
    if count(|command| matches!(command, Command::SetWebhook { .. })) > 0 {
        ids.webhook = store.ids().next(IdKind::Webhook).await?;
    }
    Ok(ids)
}

/// What the commands name.
#[derive(Default)]
struct Wanted {
    invoices: Names,
    customer_numbers: Vec<String>,
    tins: Vec<String>,
    run_irn_keys: Vec<String>,
    replays: bool,
}

impl Wanted {
    fn add(&mut self, command: &Command, books: &Books) {
        match command {
            Command::Create(draft) => {
                self.invoices.numbers.push(draft.invoice_no.clone());
                let service_id = books.taxpayer.as_ref().map(|taxpayer| taxpayer.service_id.as_str());
                let built = || Irn::of_invoice(&draft.invoice_no, service_id?, draft.invoice_date).ok();
                self.invoices.irn_keys.extend(draft.irn.clone().or_else(built).map(|irn| irn.key()));
                self.customer_numbers.push(draft.customer.no.clone());
                self.tins.extend(draft.customer.tin.clone());
            }
            Command::SetStatus { which, .. } | Command::Pay(PaymentUpdate { which, .. }) => {
                self.add_which(which);
            }
            Command::OpenRun(request) => self.add_irn(&request.irn),
            Command::RecordStep(outcome) => self.add_irn(&outcome.run.irn),
            Command::RecordReceipt { irn } => self.add_irn(irn),
            Command::MoveRun(order) => self.add_irn(&order.irn),
            Command::Replay(_) | Command::EnableEndpoint { replay: Some(_) } => self.replays = true,
            _ => {}
        }
    }

    /// A name that no invoice can have finds nothing, which the decision then says.
    fn add_which(&mut self, which: &Which) {
        let _ = self.invoices.add(which.kind, &which.text);
    }

    fn add_irn(&mut self, irn: &Irn) {
        self.invoices.irn_keys.push(irn.key());
        self.run_irn_keys.push(irn.key());
    }
}

/// Lays out the desk for a batch.
pub(crate) async fn desk(
    tx: &Transaction,
    id: TaxpayerId,
    books: Books,
    (tasks, ids): (&[Task<Command>], FreshIds),
    now: Timestamp,
) -> Result<Desk, StoreError> {
    let mut wanted = Wanted::default();
    for task in tasks {
        wanted.add(task, &books);
    }
    let taken = taken(tx, id, &books, (tasks, now)).await?;
    Ok(Desk {
        id,
        now,
        invoices: invoices::owned_by_with_names(tx, id, wanted.invoices).await?,
        customers: customers::owned_by_with_numbers(tx, id, wanted.customer_numbers, wanted.tins).await?,
        runs: runs::owned_by_with_irn_keys(tx, id, wanted.run_irn_keys).await?,
        replays: if wanted.replays { replays::open_owned_by(tx, id).await? } else { Vec::new() },
        ids,
        taken,
        books,
        changes: super::changes::Changes::default(),
    })
}

/// What other taxpayers have already of what these commands want to be unique.
async fn taken(
    tx: &Transaction,
    id: TaxpayerId,
    books: &Books,
    (tasks, now): (&[Task<Command>], Timestamp),
) -> Result<Vec<(CommandId, Faults)>, StoreError> {
    let mut taken = Vec::new();
    for task in tasks {
        let faults = match (&**task, &books.taxpayer) {
            (Command::Onboard(onboarding), _) => {
                let login = Some(onboarding.contact.email.as_str());
                taxpayers::taken(tx, &onboarding.taxpayer(id, now), login).await?
            }
            (Command::ChangeProfile(change), Some(taxpayer)) if change.email.is_some() => {
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
