//! The amounts of a document, or the part of them that its credit notes have left: the totals, and base and tax of each
//! tax category.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::invoice::breakdown::{Breakdown, DocumentTotals};
use crate::domain::money::Amount;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amounts {
    pub totals: DocumentTotals,
    /// The amounts of each tax category, by its code. Categories whose base and tax are zero are left out.
    pub taxes: BTreeMap<String, CategoryAmounts>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CategoryAmounts {
    pub percent: Option<Amount>,
    pub base: Amount,
    pub tax: Amount,
}

impl From<Breakdown> for Amounts {
    fn from(breakdown: Breakdown) -> Self {
        let mut taxes: BTreeMap<_, CategoryAmounts> = BTreeMap::new();
        for part in breakdown.taxes {
            let sum = taxes.entry(part.category).or_default();
            sum.percent = sum.percent.or(part.percent);
            // The sums cannot be too large, because the totals of the document include them.
            sum.base = sum.base.plus(part.base).unwrap_or(sum.base);
            sum.tax = sum.tax.plus(part.tax).unwrap_or(sum.tax);
        }
        Self {
            totals: breakdown.totals,
            taxes,
        }
        .without_zero_categories()
    }
}

impl Amounts {
    /// Returns amounts of zero, to which the amounts of documents can be added.
    pub fn zero() -> Self {
        let zero = Amount::ZERO;
        Self {
            totals: DocumentTotals {
                line_extension_amount: zero,
                tax_exclusive_amount: zero,
                tax_inclusive_amount: zero,
                payable_amount: zero,
            },
            taxes: BTreeMap::new(),
        }
    }

    #[cfg(test)]
    pub fn plus(&self, other: &Self) -> Option<Self> {
        self.combine(other, Amount::plus)
    }

    pub fn minus(&self, other: &Self) -> Option<Self> {
        self.combine(other, Amount::minus)
    }

    fn combine(&self, other: &Self, combine: fn(Amount, Amount) -> Option<Amount>) -> Option<Self> {
        let (mine, theirs) = (self.totals, other.totals);
        let totals = DocumentTotals {
            line_extension_amount: combine(
                mine.line_extension_amount,
                theirs.line_extension_amount,
            )?,
            tax_exclusive_amount: combine(mine.tax_exclusive_amount, theirs.tax_exclusive_amount)?,
            tax_inclusive_amount: combine(mine.tax_inclusive_amount, theirs.tax_inclusive_amount)?,
            payable_amount: combine(mine.payable_amount, theirs.payable_amount)?,
        };
        let mut taxes = self.taxes.clone();
        for (category, theirs) in &other.taxes {
            let mine = taxes.entry(category.clone()).or_default();
            mine.percent = mine.percent.or(theirs.percent);
            mine.base = combine(mine.base, theirs.base)?;
            mine.tax = combine(mine.tax, theirs.tax)?;
        }
        Some(Self { totals, taxes }.without_zero_categories())
    }

    fn without_zero_categories(mut self) -> Self {
        self.taxes
            .retain(|_, part| !(part.base.is_zero() && part.tax.is_zero()));
        self
    }

    fn all_amounts(&self) -> impl Iterator<Item = Amount> {
        let totals = self.totals;
        let taxes = self.taxes.values().flat_map(|part| [part.base, part.tax]);
        taxes.chain([
            totals.line_extension_amount,
            totals.tax_exclusive_amount,
            totals.tax_inclusive_amount,
            totals.payable_amount,
        ])
    }

    pub fn is_zero(&self) -> bool {
        self.all_amounts().all(Amount::is_zero)
    }

    /// True if any of the amounts is below zero.
    pub fn is_negative(&self) -> bool {
        self.all_amounts().any(Amount::is_negative)
    }
}
