//! The sums of a month's invoices by currency, kind of document and status, and the series of their numbers. Invoices
//! are added one by one, so that the memory needed does not grow with their number.

use std::collections::BTreeMap;

use crate::domain::invoice::Invoice;
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::number_series::NumberSeries;
use crate::domain::invoice::totals::TotalTooLarge;
use crate::domain::kernel::codes::{AuthorityStatus, DocumentKind, WorkflowStatus};
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

#[derive(Debug, Default)]
pub struct MonthSummary {
    pub sums: BTreeMap<SumKey, AmountSums>,
    /// The same sums, split by the status of the invoices at the authority.
    pub by_authority_status: BTreeMap<(SumKey, AuthorityStatus), AmountSums>,
    /// The parts of `sums` that the authority has signed although they are drafts or cancelled here. They are
    /// nevertheless in force.
    pub signed_inactive: BTreeMap<SumKey, AmountSums>,
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
pub struct AmountSums {
    pub count: u64,
    /// The amounts before tax. `tax` is the sum of the taxes, `gross` that of the amounts with tax.
    pub net: Amount,
    pub tax: Amount,
    pub gross: Amount,
}

impl SumKey {
    /// False for drafts and cancelled documents. The month's totals leave them out, unless the authority has signed
    /// them.
    pub fn is_active(&self) -> bool {
        !matches!(
            self.status,
            WorkflowStatus::Draft | WorkflowStatus::Cancelled
        )
    }
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
        if invoice.authority.signed && !key.is_active() {
            add_amounts(&mut self.signed_inactive, key.clone(), &amounts)?;
        }
        let with_authority = (key.clone(), invoice.authority.status);
        add_amounts(&mut self.by_authority_status, with_authority, &amounts)?;
        add_amounts(&mut self.sums, key, &amounts)?;
        self.numbers.add(&invoice.invoice_no);
        Ok(())
    }
}

fn add_amounts<K: Ord>(
    sums: &mut BTreeMap<K, AmountSums>,
    key: K,
    amounts: &Breakdown,
) -> Result<(), TotalTooLarge> {
    let sum = sums.entry(key).or_default();
    *sum = sum.plus(amounts).ok_or(TotalTooLarge)?;
    Ok(())
}

impl AmountSums {
    /// Returns both sums together; `None` if an amount would be too large.
    pub fn merge(self, other: Self) -> Option<Self> {
        Some(Self {
            count: self.count + other.count,
            net: self.net.plus(other.net)?,
            tax: self.tax.plus(other.tax)?,
            gross: self.gross.plus(other.gross)?,
        })
    }

    fn plus(self, amounts: &Breakdown) -> Option<Self> {
        Some(Self {
            count: self.count + 1,
            net: self.net.plus(amounts.totals.tax_exclusive_amount)?,
            tax: self.tax.plus(amounts.tax()?)?,
            gross: self.gross.plus(amounts.totals.tax_inclusive_amount)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;
    use crate::domain::invoice::month_report::totals_by_currency;
    use crate::domain::reference::catalog::ReferenceList;

    #[test]
    fn what_the_authority_signed_counts_whatever_became_of_it_here() {
        let mut catalog = Catalog::default();
        let categories = json!([{ "code": "STANDARD_VAT", "percent": 7.5 }]);
        catalog.load(ReferenceList::TaxCategories, &categories);
        // The type and the status of the document, whether it is signed, and the VAT of the month.
        let cases = [
            ("381", WorkflowStatus::Approved, false, Some("7.50")),
            ("381", WorkflowStatus::Submitted, true, Some("7.50")),
            ("381", WorkflowStatus::Draft, false, None),
            ("381", WorkflowStatus::Cancelled, false, None),
            ("381", WorkflowStatus::Cancelled, true, Some("7.50")),
            ("381", WorkflowStatus::Draft, true, Some("7.50")),
            ("380", WorkflowStatus::Cancelled, true, Some("-7.50")),
            ("385", WorkflowStatus::Cancelled, true, None),
        ];
        for (code, status, is_signed, expected) in cases {
            let mut draft = draft(vec![Line::sample()]);
            code.clone_into(&mut draft.invoice_type);
            let mut invoice = signed(draft);
            invoice.status = status;
            invoice.authority.signed = is_signed;
            let mut summary = MonthSummary::default();
            summary.add(&invoice, &catalog).unwrap();
            let found = totals_by_currency(&summary).unwrap().remove("NGN");
            let found = found.map(|sum| (sum.count, sum.tax));
            let expected = expected.map(|tax| (1, Amount::parse(tax).unwrap()));
            assert_eq!(found, expected, "{code} {status} {is_signed}");
        }
    }
}
