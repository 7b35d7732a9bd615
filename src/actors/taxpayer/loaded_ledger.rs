//! The entries of the payment ledger that the commands of a batch need.

use database::{StoreError, Transaction};

use crate::actors::taxpayer::read_set::WantedLedgerEntries;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::domain::payment::LedgerEntry;
use crate::store::invoices::payments::{self, Model};

/// The entries that were stored when the batch started. `added` are those that the batch has added since.
#[derive(Debug, Default)]
pub(crate) struct LoadedLedger {
    /// The last entries with the payment status of their invoices.
    last: Vec<Model>,
    /// The entries that set off credit notes, each with its invoice.
    set_offs: Vec<(InvoiceId, LedgerEntry)>,
}

impl LoadedLedger {
    pub(super) async fn load(
        tx: &Transaction,
        taxpayer: TaxpayerId,
        wanted: &WantedLedgerEntries,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            last: payments::find_last_with_status(tx, taxpayer, &wanted.invoices).await?,
            set_offs: payments::find_set_offs(tx, taxpayer, &wanted.set_off).await?,
        })
    }

    /// Returns the last entry that has the payment status of the invoice.
    pub(crate) fn last_posting<'a>(
        &'a self,
        added: &'a [Model],
        invoice: &Invoice,
    ) -> Option<&'a Model> {
        let status = invoice.payment.status.to_string();
        let mut newest_first = added.iter().rev().chain(&self.last);
        newest_first.find(|entry| entry.invoice_id == invoice.id.0 && entry.status == status)
    }

    /// Returns the amount of an invoice that was set off against credit notes, or the used amount of a credit note.
    pub(crate) fn set_off_amount(&self, added: &[Model], invoice: InvoiceId) -> Amount {
        let added = added.iter().filter(|entry| entry.invoice_id == invoice.0);
        // Cannot fail: this batch has made the entry from a posting.
        let added = added.filter_map(|entry| LedgerEntry::try_from(entry.clone()).ok());
        let stored = self.set_offs.iter().filter(|(id, _)| *id == invoice);
        let amounts = stored
            .map(|(_, entry)| entry.set_off_amount())
            .chain(added.map(|entry| entry.set_off_amount()));
        Amount::sum(amounts).unwrap_or_default()
    }
}
