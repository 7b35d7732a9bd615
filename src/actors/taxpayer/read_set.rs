//! The rows that the commands of a transaction ask for before they are decided. `load` reads them.

use timing::CommandId;

use crate::actors::taxpayer::cached_state::CachedState;
use crate::actors::taxpayer::unique_values::UniqueValues;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::PaymentStatus;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::party::{CustomerDetails, Taxpayer};
use crate::store::invoices::InvoiceIdentifiers;
use crate::store::invoices::customers_and_items::{CustomerIdentifiers, ItemIdentifiers};
use crate::store::operations::outages::OutageEvent;

/// The identifiers of the rows that a taxpayer's commands read.
#[derive(Default)]
pub struct ReadSet {
    invoices: InvoiceIdentifiers,
    pub(super) customers: CustomerIdentifiers,
    pub(super) items: ItemIdentifiers,
    pub(super) run_irn_keys: Vec<String>,
    /// True if the ids of those runs that an operator has paused are read, too.
    pub(super) runs_paused_by_operator: bool,
    pub(super) supplier_irn_keys: Vec<String>,
    /// IRNs of invoices whose receipt a command may record.
    pub(super) receipts: Vec<String>,
    pub(super) ledgers: WantedLedgerEntries,
    pub(super) replays: bool,
    pub(super) valid_keys: bool,
    pub(super) settings: WantedSettings,
    pub(super) outages: Vec<OutageEvent>,
    /// Invoices whose corrections are read.
    pub(super) corrected: Vec<InvoiceId>,
    /// References to invoices that are corrected. The invoices that contain one of these references are read.
    pub(super) corrected_references: Vec<(InvoiceId, Vec<String>)>,
    /// Import numbers of files. The imports with these numbers are read.
    pub(super) imports: Vec<String>,
    pub(super) unique_values: Vec<UniqueValues>,
    pub(super) with_invoices: RowsWithInvoices,
}

/// Flags for rows that are read in addition, for each invoice of the set.
#[derive(Default)]
pub(super) struct RowsWithInvoices {
    runs: bool,
    pub(super) credit_notes: bool,
}

/// The settings of the taxpayer that are read.
#[derive(Default)]
pub(super) struct WantedSettings {
    pub(super) integration: bool,
    pub(super) import_profile: bool,
}

/// The invoices for which the last ledger entry with their current payment status is read, and those for which the
/// entries are read that set off credit notes.
#[derive(Default)]
pub(super) struct WantedLedgerEntries {
    irn_keys: Vec<String>,
    /// The loaded invoices with these IRNs, each with its current payment status.
    pub(super) invoices: Vec<(InvoiceId, PaymentStatus)>,
    pub(super) set_off: Vec<InvoiceId>,
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

    pub(crate) fn add_invoice_id(&mut self, id: InvoiceId) {
        self.invoices.ids.push(id.0);
    }

    pub(crate) fn add_invoice_no(&mut self, invoice_no: &str) {
        self.invoices.numbers.push(invoice_no.to_owned());
    }

    /// Adds the invoice with this IRN.
    pub(crate) fn add_irn(&mut self, irn: &Irn) {
        self.invoices.irn_keys.push(irn.key());
    }

    /// Adds the invoice with this IRN, and the invoice's runs.
    pub(crate) fn add_invoice_with_runs(&mut self, irn: &Irn) {
        self.add_irn(irn);
        self.run_irn_keys.push(irn.key());
    }

    /// Asks which of the runs an operator has paused.
    pub(crate) fn add_runs_paused_by_operator(&mut self) {
        self.runs_paused_by_operator = true;
    }

    /// Adds the rows that `check_preconditions` needs for a run that is to continue. They include the signed credit
    /// notes, because the run may relay a payment in full, and credit notes lower the amount to pay.
    pub(crate) fn add_stopped_run(&mut self, irn: &Irn) {
        self.add_invoice_with_runs(irn);
        self.add_credit_notes();
    }

    /// Adds the runs of all invoices that are read.
    pub(crate) fn add_invoice_runs(&mut self) {
        self.with_invoices.runs = true;
    }

    /// Adds the signed credit notes of all invoices that are read.
    pub(crate) fn add_credit_notes(&mut self) {
        self.with_invoices.credit_notes = true;
    }

    /// Adds the invoice with this IRN and its runs. Also asks whether an event says that its receipt was confirmed.
    pub(crate) fn add_invoice_with_receipt(&mut self, irn: &Irn) {
        self.add_invoice_with_runs(irn);
        self.receipts.push(irn.to_string());
    }

    /// Adds the last ledger entry that has the payment status of the invoice with this IRN.
    pub(crate) fn add_last_posting(&mut self, irn: &Irn) {
        self.ledgers.irn_keys.push(irn.key());
    }

    /// Adds the ledger entries of this invoice that set off credit notes.
    pub(crate) fn add_set_offs(&mut self, invoice: InvoiceId) {
        self.ledgers.set_off.push(invoice);
    }

    pub(crate) fn add_customer(&mut self, customer: &CustomerDetails) {
        let names = &mut self.customers;
        names.numbers.insert(customer.no.clone());
        names.tins.extend(customer.tin.clone());
    }

    pub(crate) fn items_mut(&mut self) -> &mut ItemIdentifiers {
        &mut self.items
    }

    pub(crate) fn add_supplier_invoice(&mut self, irn: &Irn) {
        self.supplier_irn_keys.push(irn.key());
    }

    pub(crate) fn add_replays(&mut self) {
        self.replays = true;
    }

    pub(crate) fn add_integration(&mut self) {
        self.settings.integration = true;
    }

    pub(crate) fn add_import_profile(&mut self) {
        self.settings.import_profile = true;
    }

    /// Asks how many valid keys the taxpayer has.
    pub(crate) fn add_valid_key_count(&mut self) {
        self.valid_keys = true;
    }

    /// Asks whether the taxpayer has received this event.
    pub(crate) fn add_outage_event(&mut self, event: OutageEvent) {
        self.outages.push(event);
    }

    /// Adds the invoice, its corrections, and the invoices that contain one of these references to it, with their runs.
    pub(crate) fn add_correction(&mut self, id: InvoiceId, references: Vec<String>) {
        self.invoices.ids.push(id.0);
        self.corrected.push(id);
        self.corrected_references.push((id, references));
    }

    /// Asks whether the file with this number was imported.
    pub(crate) fn add_import(&mut self, import_no: &str) {
        self.imports.push(import_no.to_owned());
    }

    /// Asks which unique values of `taxpayer` another taxpayer already has. `login` is the email with which its
    /// first contact person signs in.
    pub(crate) fn add_uniqueness_check(
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

    /// Takes the identifiers of the invoices out of the set. If the runs of all invoices are wanted, the IRNs among
    /// these identifiers are first added to the IRNs whose runs are read.
    pub(super) fn take_invoices(&mut self) -> InvoiceIdentifiers {
        if self.with_invoices.runs {
            let keys = self.invoices.irn_keys.iter().cloned();
            self.run_irn_keys.extend(keys);
        }
        std::mem::take(&mut self.invoices)
    }

    /// Adds the IRNs of the loaded invoices to those whose runs and receipts are read. A command may name its invoice
    /// by number, but runs and receipts are found by IRN.
    pub(super) fn add_loaded_invoices(&mut self, invoices: &[Invoice]) {
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
