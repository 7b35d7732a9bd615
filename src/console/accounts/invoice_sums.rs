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

/// Returns the totals of the invoices minus the credit notes, by currency.
pub(super) fn currency_sums(amounts: &[DocumentAmounts], catalog: &Catalog) -> Vec<CurrencySum> {
    let mut sums: BTreeMap<&str, Option<(Amount, Amount)>> = BTreeMap::new();
    for document in amounts {
        let sum = sums
            .entry(&document.currency)
            .or_insert(Some((Amount::ZERO, Amount::ZERO)));
        *sum = sum.and_then(|(payable, paid)| {
            if document.is_credit_note {
                Some((payable.minus(document.payable)?, paid.minus(document.paid)?))
            } else {
                Some((payable.plus(document.payable)?, paid.plus(document.paid)?))
            }
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
