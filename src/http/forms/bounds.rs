//! The value ranges of amounts, as the tables of the specification define them.

use crate::domain::money::Amount;

/// The range of an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bounds {
    Any,
    Above(Amount),
    AtLeast(Amount),
    Within(Amount, Amount),
}

impl Bounds {
    pub(crate) const POSITIVE: Self = Self::Above(Amount::ZERO);
    pub(crate) const NOT_NEGATIVE: Self = Self::AtLeast(Amount::ZERO);
    pub(crate) const HUNDREDTH: Self = Self::AtLeast(Amount::HUNDREDTH);
    pub(crate) const PERCENTAGE: Self = Self::Within(Amount::ZERO, Amount::ONE_HUNDRED);

    /// Returns the violated rule and the rest of its sentence; `None` if the amount is in range.
    pub(super) fn broken_by(self, amount: Amount) -> Option<(&'static str, String)> {
        let below = |min: Amount| (amount < min).then(|| ("min", format!("must be at least {min}")));
        match self {
            Self::Any => None,
            Self::Above(min) => {
                (amount <= min).then(|| ("greater_than", format!("must be greater than {min}")))
            }
            Self::AtLeast(min) => below(min),
            Self::Within(min, max) => below(min)
                .or_else(|| (amount > max).then(|| ("max", format!("must not be greater than {max}")))),
        }
    }
}
