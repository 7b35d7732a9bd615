//! The formula for the amount of a line: quantity × price / base quantity, less its discount, plus its fee, and at
//! least zero. It computes amounts that a document leaves out, and checks the lines of a credit note.

use serde::Deserialize;

use crate::domain::invoice::Line;
use crate::domain::money::Amount;

/// The terms from which the amount of a line is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineTerms {
    pub(crate) quantity: Amount,
    pub(crate) price: Amount,
    /// The quantity for which the price is stated, usually 1.
    pub(crate) base_quantity: Amount,
    pub(crate) discount: RateAndAmount,
    pub(crate) fee: RateAndAmount,
}

/// A discount or a fee: a rate in percent of quantity × price, and a flat amount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RateAndAmount {
    pub(crate) rate: Amount,
    pub(crate) amount: Amount,
}

impl LineTerms {
    /// Returns the amount of the line before tax, unrounded; `None` if it is too large.
    pub(crate) fn net(&self) -> Option<Amount> {
        Some(self.net_without_minimum()?.max(Amount::ZERO))
    }

    /// Returns the amount of the line without the lower limit: it is negative if the discount exceeds the rest. `None`
    /// if it is too large.
    pub(crate) fn net_without_minimum(&self) -> Option<Amount> {
        let gross = self
            .quantity
            .times(self.price)?
            .divided_by(self.base_quantity)?;
        let part = |part: RateAndAmount| part.rate.percent_share(gross)?.plus(part.amount);
        gross.minus(part(self.discount)?)?.plus(part(self.fee)?)
    }
}

impl From<&Line> for LineTerms {
    fn from(line: &Line) -> Self {
        let extra = |name: &str| Amount::deserialize(line.extras.get(name)?).ok();
        Self {
            quantity: line.quantity,
            price: line.unit_price,
            base_quantity: extra("base_quantity").unwrap_or(1.into()),
            discount: RateAndAmount {
                rate: line.discount_rate.unwrap_or_default(),
                amount: line.discount_amount.unwrap_or_default(),
            },
            fee: RateAndAmount {
                rate: extra("fee_rate").unwrap_or_default(),
                amount: extra("fee_amount").unwrap_or_default(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_quantity_by_price_less_its_discount_plus_its_fee() {
        let cases = [
            (json!({}), "1000"),
            (json!({ "base_quantity": 4 }), "250"),
            (json!({ "discount_rate": 10 }), "900"),
            (json!({ "discount_amount": 0.01 }), "999.99"),
            (json!({ "fee_rate": 2.5 }), "1025"),
            (json!({ "fee_amount": 30 }), "1030"),
            (
                json!({ "base_quantity": 2, "discount_rate": 10, "fee_rate": 20, "fee_amount": 5 }),
                "555",
            ),
            (json!({ "discount_amount": 1001 }), "0"),
            (json!({ "discount_amount": 1001, "fee_amount": 3 }), "2"),
        ];
        for (fields, expected) in cases {
            let amount = |name: &str| Some(Amount::deserialize(fields.get(name)?).unwrap());
            let line = Line {
                quantity: 10.into(),
                discount_rate: amount("discount_rate"),
                discount_amount: amount("discount_amount"),
                extras: fields.as_object().cloned().unwrap(),
                ..Line::sample()
            };
            let expected = Amount::parse(expected).ok();
            assert_eq!(LineTerms::from(&line).net(), expected, "{fields}");
        }
    }
}
