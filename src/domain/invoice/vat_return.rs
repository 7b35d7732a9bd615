//! The VAT of a period's sales, as a VAT return asks for it: the net amount and the VAT of each tax category and rate.
//! The documents that the authority has signed are to be declared; those that it has yet to sign are summed up apart.

use std::collections::BTreeMap;

use crate::domain::invoice::Invoice;
use crate::domain::invoice::breakdown::TaxSubtotal;
use crate::domain::invoice::totals::TotalTooLarge;
use crate::domain::kernel::codes::{AuthorityStatus, WorkflowStatus};
use crate::domain::money::Amount;

/// The maximum number of rates of a currency that are kept apart. Callers may state any percent, and the memory needed
/// must not grow with the number of invoices.
const RATES_MAX: usize = 500;

/// A document that counts among the sales of its period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sale {
    pub is_signed: bool,
    pub is_credit_note: bool,
}

impl Sale {
    /// Returns `None` for a document that is no sale of the taxpayer, and for one that is not in force: a draft that is
    /// not on its way to the authority, or a document that was cancelled or that the authority rejected. A document that
    /// the authority has signed is in force, whatever became of it here.
    pub fn from_invoice(invoice: &Invoice) -> Option<Self> {
        let kind = invoice.kind();
        let is_signed = invoice.authority.signed;
        let is_active = match invoice.status {
            WorkflowStatus::Cancelled => false,
            WorkflowStatus::Draft => matches!(
                invoice.authority.status,
                AuthorityStatus::Queued | AuthorityStatus::Validated
            ),
            _ => invoice.authority.status != AuthorityStatus::Rejected,
        };
        let counts = kind.is_sale() && (is_signed || is_active);
        counts.then_some(Self {
            is_signed,
            is_credit_note: kind.is_credit_note(),
        })
    }

    /// Adds an amount of this document to a total. A credit note reduces the total. Returns `None` if it is too large.
    pub fn add_to(self, total: Amount, amount: Amount) -> Option<Amount> {
        if self.is_credit_note {
            total.minus(amount)
        } else {
            total.plus(amount)
        }
    }
}

/// One figure of the signed documents, and the same of those that are not signed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BySignature<T> {
    pub signed: T,
    pub unsigned: T,
}

impl<T> BySignature<T> {
    pub fn part_mut(&mut self, sale: Sale) -> &mut T {
        if sale.is_signed {
            &mut self.signed
        } else {
            &mut self.unsigned
        }
    }
}

/// The amount on which a tax was computed, and the tax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaxedSum {
    pub net: Amount,
    pub tax: Amount,
}

impl TaxedSum {
    fn after(self, sale: Sale, part: &TaxSubtotal) -> Option<Self> {
        Some(Self {
            net: sale.add_to(self.net, part.base)?,
            tax: sale.add_to(self.tax, part.tax)?,
        })
    }

    /// Gives both amounts at least this number of digits after the decimal point. No value changes.
    #[must_use]
    pub fn with_digits(self, digits: u32) -> Self {
        Self {
            net: self.net.with_digits(digits),
            tax: self.tax.with_digits(digits),
        }
    }
}

/// A tax category with its percent, as the documents state them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    /// `None` for the rates beyond the first `RATES_MAX`, which have one sum.
    pub category: Option<String>,
    pub percent: Option<Amount>,
}

impl Rate {
    const FURTHER: Self = Self {
        category: None,
        percent: None,
    };

    pub fn category_text(&self) -> &str {
        self.category.as_deref().unwrap_or("further rates")
    }
}

/// The VAT of the sales in one currency.
#[derive(Debug, Default)]
pub struct CurrencyVat {
    pub total: BySignature<TaxedSum>,
    pub rates: BTreeMap<Rate, BySignature<TaxedSum>>,
    /// The number of documents that were signed over another payable than is stored. Their stored amounts count.
    pub signed_otherwise: u64,
}

impl CurrencyVat {
    /// Adds the taxes of a sale. Fails if a sum is too large.
    pub fn add(&mut self, sale: Sale, taxes: &[TaxSubtotal]) -> Result<(), TotalTooLarge> {
        for part in taxes {
            let rate = self.rate_to_add_to(part);
            let by_rate = self.rates.entry(rate).or_default();
            for sum in [by_rate.part_mut(sale), self.total.part_mut(sale)] {
                *sum = sum.after(sale, part).ok_or(TotalTooLarge)?;
            }
        }
        Ok(())
    }

    fn rate_to_add_to(&self, part: &TaxSubtotal) -> Rate {
        let rate = Rate {
            category: Some(part.category.clone()),
            percent: part.percent,
        };
        let is_kept = self.rates.len() < RATES_MAX || self.rates.contains_key(&rate);
        if is_kept { rate } else { Rate::FURTHER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;

    #[test]
    fn only_sales_in_force_count_and_only_signed_ones_are_to_be_declared() {
        use AuthorityStatus::{Failed, Pending, Queued, Rejected, Reported, Validated};
        use WorkflowStatus::{Approved, Cancelled, Draft, Paid, Submitted};
        // The type, the status here, the status at the authority, and whether the document is signed and counts.
        for (code, status, authority, is_signed, counts) in [
            ("381", Approved, Pending, false, true),
            ("381", Paid, Pending, false, true),
            ("381", Approved, Failed, false, true),
            ("381", Approved, Rejected, false, false),
            ("381", Draft, Rejected, false, false),
            ("381", Draft, Pending, false, false),
            ("381", Draft, Queued, false, true),
            ("381", Draft, Validated, false, true),
            ("381", Draft, Failed, false, false),
            ("381", Approved, Queued, false, true),
            ("381", Cancelled, Queued, false, false),
            ("380", Draft, Queued, false, true),
            ("385", Draft, Queued, false, false),
            ("381", Cancelled, Pending, false, false),
            ("381", Submitted, Reported, true, true),
            ("381", Cancelled, Pending, true, true),
            ("381", Draft, Pending, true, true),
            ("380", Approved, Pending, false, true),
            ("380", Cancelled, Pending, true, true),
            ("385", Submitted, Reported, true, false),
            ("393", Submitted, Reported, true, false),
            ("390", Approved, Pending, false, false),
        ] {
            let mut draft = draft(vec![Line::sample()]);
            code.clone_into(&mut draft.invoice_type);
            let mut invoice = signed(draft);
            invoice.status = status;
            invoice.authority.status = authority;
            invoice.authority.signed = is_signed;
            let expected = counts.then_some(Sale {
                is_signed,
                is_credit_note: code == "380",
            });
            let found = Sale::from_invoice(&invoice);
            assert_eq!(found, expected, "{code} {status} {authority} {is_signed}");
        }
    }

    fn part(category: &str, percent: &str, base: &str, tax: &str) -> TaxSubtotal {
        TaxSubtotal {
            category: category.to_owned(),
            percent: Some(Amount::parse(percent).unwrap()),
            base: Amount::parse(base).unwrap(),
            tax: Amount::parse(tax).unwrap(),
        }
    }

    fn text(name: &str, sums: &BySignature<TaxedSum>) -> String {
        let BySignature { signed, unsigned } = sums;
        format!(
            "{name}: {} {}, unsigned {} {}",
            signed.net, signed.tax, unsigned.net, unsigned.tax
        )
    }

    #[test]
    fn each_rate_has_its_own_sums_and_credit_notes_reduce_them() {
        let mut vat = CurrencyVat::default();
        for (is_signed, is_credit_note, taxes) in [
            (
                true,
                false,
                vec![
                    part("STANDARD_VAT", "7.5", "100.00", "7.50"),
                    part("EXEMPT", "0", "40.00", "0.00"),
                ],
            ),
            (
                true,
                false,
                vec![part("STANDARD_VAT", "5", "10.00", "0.50")],
            ),
            (
                false,
                false,
                vec![part("STANDARD_VAT", "7.50", "2.00", "0.15")],
            ),
            (
                true,
                true,
                vec![part("STANDARD_VAT", "7.5", "30.00", "2.25")],
            ),
            (false, true, vec![part("EXEMPT", "0", "5.00", "0.00")]),
        ] {
            let sale = Sale {
                is_signed,
                is_credit_note,
            };
            vat.add(sale, &taxes).unwrap();
        }
        let rates = vat.rates.iter().map(|(rate, sums)| {
            let percent = rate.percent.unwrap();
            text(&format!("{} {percent}", rate.category_text()), sums)
        });
        assert_eq!(
            rates.collect::<Vec<_>>(),
            [
                "EXEMPT 0: 40.00 0.00, unsigned -5.00 0.00",
                "STANDARD_VAT 5: 10.00 0.50, unsigned 0 0",
                "STANDARD_VAT 7.5: 70.00 5.25, unsigned 2.00 0.15",
            ]
        );
        let total = text("total", &vat.total);
        assert_eq!(total, "total: 120.00 5.75, unsigned -3.00 0.15");
    }

    #[test]
    fn rates_beyond_the_maximum_have_one_sum() {
        let mut vat = CurrencyVat::default();
        let sale = Sale {
            is_signed: true,
            is_credit_note: false,
        };
        for at in 0..RATES_MAX + 7 {
            let taxes = [part("LOCAL", &at.to_string(), "1", "0.1")];
            vat.add(sale, &taxes).unwrap();
        }
        vat.add(sale, &[part("LOCAL", "3", "1", "0.1")]).unwrap();
        assert_eq!(vat.rates.len(), RATES_MAX + 1);
        assert_eq!(vat.rates[&Rate::FURTHER].signed.net, Amount::from(7));
        let whole = i64::try_from(RATES_MAX).unwrap() + 8;
        assert_eq!(vat.total.signed.net, Amount::from(whole));
    }
}
