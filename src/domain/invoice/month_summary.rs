//! The sums of a month's invoices by currency, kind of document and status, and the series of their numbers. Invoices
//! are added one by one, so that the memory needed does not grow with their number.

use std::collections::BTreeMap;

use crate::domain::invoice::Invoice;
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::number_series::NumberSeries;
use crate::domain::invoice::totals::TotalTooLarge;
use crate::domain::kernel::codes::{DocumentKind, WorkflowStatus};
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

#[derive(Debug, Default)]
pub struct MonthSummary {
    pub sums: BTreeMap<SumKey, Sum>,
    pub numbers: NumberSeries,
}

/// The properties that all invoices of one sum share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SumKey {
    pub currency: String,
    pub kind: DocumentKind,
    pub status: WorkflowStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum {
    pub count: u64,
    /// The amounts before tax. `tax` is the sum of the taxes, `gross` that of the amounts with tax.
    pub net: Amount,
    pub tax: Amount,
    pub gross: Amount,
}

impl MonthSummary {
    /// Adds an invoice. Fails if one of its amounts or a sum is too large; the forms prevent such an invoice.
    pub fn add(&mut self, invoice: &Invoice, catalog: &Catalog) -> Result<(), TotalTooLarge> {
        let amounts = Breakdown::from_invoice(invoice, catalog)?;
        let key = SumKey {
            currency: invoice.currency.clone(),
            kind: invoice.kind(),
            status: invoice.status,
        };
        let sum = self.sums.entry(key).or_default();
        *sum = sum.plus(&amounts).ok_or(TotalTooLarge)?;
        self.numbers.add(&invoice.invoice_no);
        Ok(())
    }
}

impl Sum {
    fn plus(self, amounts: &Breakdown) -> Option<Self> {
        Some(Self {
            count: self.count + 1,
            net: self.net.plus(amounts.totals.tax_exclusive_amount)?,
            tax: self.tax.plus(amounts.tax()?)?,
            gross: self.gross.plus(amounts.totals.tax_inclusive_amount)?,
        })
    }
}
