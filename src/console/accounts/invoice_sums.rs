//! The totals of the list of invoices, by currency.

use std::collections::BTreeMap;

use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;
use crate::store::invoices::list::DocumentAmounts;

/// The total of the invoices in one currency, minus the credit notes.
pub(super) struct CurrencySum {
    pub(super) currency: String,
    pub(super) payable: Amount,
    pub(super) paid: Amount,
}

/// Returns the amount of a document as it counts in a total: with a minus sign for a credit note.
pub(super) fn amount_in_total(amount: Amount, is_credit_note: bool) -> Amount {
    if is_credit_note {
        Amount::ZERO.minus(amount).unwrap_or(amount)
    } else {
        amount
    }
}

/// Returns the totals of the invoices minus the credit notes, by currency.
pub(super) fn currency_sums(amounts: &[DocumentAmounts], catalog: &Catalog) -> Vec<CurrencySum> {
    let mut sums: BTreeMap<&str, Option<(Amount, Amount)>> = BTreeMap::new();
    for document in amounts {
        let sum = sums
            .entry(&document.currency)
            .or_insert(Some((Amount::ZERO, Amount::ZERO)));
        *sum = sum.and_then(|(payable, paid)| {
            let counted = |amount| amount_in_total(amount, document.is_credit_note);
            Some((
                payable.plus(counted(document.payable))?,
                paid.plus(counted(document.paid))?,
            ))
        });
    }
    let sums = sums.into_iter().filter_map(|(currency, sum)| {
        let (payable, paid) = sum?;
        let digits = catalog.currency_digits(currency);
        Some(CurrencySum {
            currency: currency.to_owned(),
            payable: payable.with_digits(digits),
            paid: paid.with_digits(digits),
        })
    });
    sums.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_come_to_their_sum() {
        // The payables of documents, each with whether it is a credit note, and their sum.
        let cases: [(&[(i64, bool)], i64); 4] = [
            (&[(80, false)], 80),
            (&[(80, true)], -80),
            (&[(80, false), (80, true)], 0),
            (&[(80, false), (30, true), (7, false)], 57),
        ];
        for (documents, expected) in cases {
            let amounts = documents
                .iter()
                .map(|(payable, is_credit_note)| DocumentAmounts {
                    currency: "NGN".to_owned(),
                    payable: Amount::from(*payable),
                    paid: Amount::ZERO,
                    is_credit_note: *is_credit_note,
                });
            let amounts: Vec<_> = amounts.collect();
            let sums = currency_sums(&amounts, &Catalog::default());
            let found: Vec<_> = sums.iter().map(|sum| sum.payable).collect();
            assert_eq!(found, [Amount::from(expected)], "{documents:?}");
            let rows = documents.iter();
            let rows = rows.map(|(payable, is_credit_note)| {
                amount_in_total(Amount::from(*payable), *is_credit_note)
            });
            assert_eq!(
                Amount::sum(rows),
                Some(Amount::from(expected)),
                "{documents:?}"
            );
        }
    }
}
