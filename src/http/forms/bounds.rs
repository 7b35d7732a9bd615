//! The value ranges of amounts, as the tables of the specification define them.

use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::Amount;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AmountBounds {
    Any,
    Above(Amount),
    AtLeast(Amount),
    Within(Amount, Amount),
}

impl AmountBounds {
    pub(crate) const POSITIVE: Self = Self::Above(Amount::ZERO);
    pub(crate) const NOT_NEGATIVE: Self = Self::AtLeast(Amount::ZERO);
    pub(crate) const AT_LEAST_HUNDREDTH: Self = Self::AtLeast(Amount::HUNDREDTH);
    pub(crate) const PERCENTAGE: Self = Self::Within(Amount::ZERO, Amount::ONE_HUNDRED);

    /// Returns the rule that the amount breaks; `None` if the amount is within these bounds.
    pub(super) fn broken_rule(self, amount: Amount) -> Option<FieldRule> {
        match self {
            Self::Above(min) if amount <= min => Some(FieldRule::Above(min)),
            Self::AtLeast(min) | Self::Within(min, _) if amount < min => {
                Some(FieldRule::AtLeast(min))
            }
            Self::Within(_, max) if amount > max => Some(FieldRule::AtMost(max)),
            _ => None,
        }
    }
}
