//! The sums of a period's invoices by currency, kind of document and status, the VAT of its sales, and the series of the
//! invoice numbers. Invoices are added one by one, so that the memory needed does not grow with their number.

use std::collections::BTreeMap;

use crate::domain::invoice::Invoice;
use crate::domain::invoice::breakdown::{Breakdown, TaxSubtotal};
use crate::domain::invoice::number_series::NumberSeries;
use crate::domain::invoice::totals::TotalTooLarge;
use crate::domain::invoice::vat_return::{BySignature, CurrencyVat, Sale};
use crate::domain::kernel::codes::{AuthorityStatus, DocumentKind, WorkflowStatus};
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

#[derive(Debug, Default)]
pub struct PeriodSummary {
    pub sums: BTreeMap<SumKey, AmountSums>,
    /// The same sums, split by the status of the invoices at the authority.
    pub by_authority_status: BTreeMap<(SumKey, AuthorityStatus), AmountSums>,
    /// The sums of the sales by currency: invoices less credit notes.
    pub sales: BTreeMap<String, BySignature<AmountSums>>,
    /// The VAT of the sales by currency.
    pub vat: BTreeMap<String, CurrencyVat>,
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
    /// The sum of the amounts before tax.
    pub net: Amount,
    /// The sum of all taxes.
    pub tax: Amount,
    /// The sum of the amounts with tax.
    pub gross: Amount,
}

impl PeriodSummary {
    /// Adds an invoice. Fails if one of its amounts or a sum is too large; the forms prevent such an invoice.
    pub fn add(&mut self, invoice: &Invoice, catalog: &Catalog) -> Result<(), TotalTooLarge> {
        let amounts = Breakdown::from_invoice(invoice, catalog)?;
        let key = SumKey {
            currency: invoice.currency.clone(),
            kind: invoice.kind(),
            status: invoice.status,
        };
        let sum = AmountSums::from_document(&amounts).ok_or(TotalTooLarge)?;
        if let Some(sale) = Sale::from_invoice(invoice) {
            self.add_sale(sale, invoice, &amounts.taxes, sum)?;
        }
        let authority_key = (key.clone(), invoice.authority.status);
        add_sum(&mut self.by_authority_status, authority_key, sum)?;
        add_sum(&mut self.sums, key, sum)?;
        self.numbers.add(&invoice.invoice_no);
        Ok(())
    }

    fn add_sale(
        &mut self,
        sale: Sale,
        invoice: &Invoice,
        taxes: &[TaxSubtotal],
        sum: AmountSums,
    ) -> Result<(), TotalTooLarge> {
        let sales = self.sales.entry(invoice.currency.clone()).or_default();
        let total = sales.part_mut(sale);
        *total = total.after_sale(sale, sum).ok_or(TotalTooLarge)?;
        let vat = self.vat.entry(invoice.currency.clone()).or_default();
        if sale.is_signed && invoice.payment.signed_payable.is_some() {
            vat.signed_otherwise += 1;
        }
        vat.add(sale, taxes)
    }
}

fn add_sum<K: Ord>(
    sums: &mut BTreeMap<K, AmountSums>,
    key: K,
    added: AmountSums,
) -> Result<(), TotalTooLarge> {
    let sum = sums.entry(key).or_default();
    *sum = sum.merge(added).ok_or(TotalTooLarge)?;
    Ok(())
}

impl AmountSums {
    /// Returns the sum of both; `None` if an amount would be too large.
    pub fn merge(self, other: Self) -> Option<Self> {
        Some(Self {
            count: self.count + other.count,
            net: self.net.plus(other.net)?,
            tax: self.tax.plus(other.tax)?,
            gross: self.gross.plus(other.gross)?,
        })
    }

    /// Returns the sums of one document; `None` if its tax is too large.
    fn from_document(amounts: &Breakdown) -> Option<Self> {
        Some(Self {
            count: 1,
            net: amounts.totals.tax_exclusive_amount,
            tax: amounts.tax()?,
            gross: amounts.totals.tax_inclusive_amount,
        })
    }

    /// Returns the sums with those of a sale. A credit note reduces the amounts, but counts as a document.
    fn after_sale(self, sale: Sale, sum: Self) -> Option<Self> {
        Some(Self {
            count: self.count + sum.count,
            net: sale.add_to(self.net, sum.net)?,
            tax: sale.add_to(self.tax, sum.tax)?,
            gross: sale.add_to(self.gross, sum.gross)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;
    use crate::domain::reference::catalog::ReferenceList;

    #[test]
    fn a_period_comes_to_its_invoices_less_its_credit_notes() {
        let mut catalog = Catalog::default();
        let categories = json!([{ "code": "STANDARD_VAT", "percent": 7.5 }]);
        catalog.load(ReferenceList::TaxCategories, &categories);
        let mut summary = PeriodSummary::default();
        // The currency, the type and the status of the document, and whether it is signed.
        for (currency, code, status, is_signed) in [
            ("NGN", "381", WorkflowStatus::Approved, false),
            ("NGN", "381", WorkflowStatus::Paid, true),
            ("NGN", "381", WorkflowStatus::Cancelled, true),
            ("NGN", "381", WorkflowStatus::Draft, false),
            ("NGN", "381", WorkflowStatus::Cancelled, false),
            ("NGN", "380", WorkflowStatus::Submitted, true),
            ("USD", "380", WorkflowStatus::Approved, false),
            ("NGN", "385", WorkflowStatus::Approved, false),
            ("EUR", "390", WorkflowStatus::Approved, false),
        ] {
            let mut draft = draft(vec![Line::sample()]);
            code.clone_into(&mut draft.invoice_type);
            currency.clone_into(&mut draft.currency);
            let mut invoice = signed(draft);
            invoice.status = status;
            invoice.authority.signed = is_signed;
            if status == WorkflowStatus::Paid {
                invoice.payment = invoice.payment.after_signature(Amount::ONE_HUNDRED);
            }
            summary.add(&invoice, &catalog).unwrap();
        }
        let documents: u64 = summary.sums.values().map(|sum| sum.count).sum();
        assert_eq!(documents, 9);
        let otherwise = summary.vat.values().map(|vat| vat.signed_otherwise);
        assert_eq!(otherwise.collect::<Vec<_>>(), [1, 0]);
        let sales = summary.sales.iter().map(|(currency, sales)| {
            let BySignature { signed, unsigned } = sales;
            let vat = &summary.vat[currency].total;
            assert_eq!(
                (signed.tax, unsigned.tax),
                (vat.signed.tax, vat.unsigned.tax)
            );
            format!(
                "{currency} {} {} {} {}, unsigned {} {}",
                signed.count, signed.net, signed.tax, signed.gross, unsigned.count, unsigned.tax
            )
        });
        assert_eq!(
            sales.collect::<Vec<_>>(),
            [
                "NGN 3 100.00 7.50 107.50, unsigned 1 7.50",
                "USD 0 0 0 0, unsigned 1 -7.50",
            ]
        );
    }
}
