//! The totals of the invoices that an import creates, by currency. People compare them with the totals of the program
//! that wrote the file.

use serde::{Deserialize, Serialize};

use crate::domain::money::Amount;

/// The invoices in one currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrencyTotal {
    pub currency: String,
    pub invoices: usize,
    /// The sum of the payable amounts. Credit notes count below zero.
    pub payable: Amount,
}

/// The totals by currency, in the order in which the file has the currencies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CreatedTotals(Vec<CurrencyTotal>);

impl CreatedTotals {
    pub fn by_currency(&self) -> impl Iterator<Item = &CurrencyTotal> {
        self.0.iter()
    }

    pub(super) fn add(&mut self, added: CurrencyTotal) {
        let mut known = self.0.iter_mut();
        let known = known.find(|total| total.currency == added.currency);
        if let Some(total) = known {
            let payable = total.payable.plus(added.payable);
            total.payable = payable.unwrap_or(total.payable);
            total.invoices += added.invoices;
        } else {
            self.0.push(added);
        }
    }

    /// Adds the totals of the next piece of the file.
    pub(super) fn add_all(&mut self, piece: Self) {
        piece.0.into_iter().for_each(|total| self.add(total));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invoices_are_added_up_by_currency() {
        let total = |currency: &str, invoices: usize, payable: i64| CurrencyTotal {
            currency: currency.to_owned(),
            invoices,
            payable: payable.into(),
        };
        let mut totals = CreatedTotals::default();
        for (currency, payable) in [("NGN", 100), ("USD", 7), ("NGN", -30)] {
            totals.add(total(currency, 1, payable));
        }
        totals.add_all(CreatedTotals(vec![total("KWD", 2, 5), total("USD", 1, 1)]));
        let found: Vec<_> = totals.by_currency().cloned().collect();
        let expected = [total("NGN", 2, 70), total("USD", 2, 8), total("KWD", 2, 5)];
        assert_eq!(found, expected);
    }
}
