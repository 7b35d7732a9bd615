//! The payment of an invoice in a row of the list: a word, and the amount that was paid above the signed payable.

use crate::console::badges::{Badge, badge};
use crate::domain::money::Amount;
use crate::domain::payment::Payment;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct PaymentBadgeAndRefund {
    pub(super) badge: Badge,
    /// The amount that was paid above the payable amount of the signed document; `None` if there is none. Credit
    /// notes are not counted here. The page of the invoice counts them, so its refund may be larger.
    pub(super) refund: Option<Amount>,
}

impl PaymentBadgeAndRefund {
    /// `digits` is the number of decimal digits of the currency.
    pub(super) fn new(payment: Payment, digits: u32) -> Self {
        let excess = payment
            .signed_payable
            .and_then(|payable| payment.paid.minus(payable))
            .filter(|excess| *excess > Amount::ZERO);
        Self {
            badge: match excess {
                Some(_) => badge("warn", "Refund due"),
                None => payment.status.into(),
            },
            refund: excess.map(|excess| excess.with_digits(digits)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::codes::PaymentStatus;

    fn amount(text: &str) -> Amount {
        Amount::parse(text).unwrap()
    }

    #[test]
    fn only_what_was_paid_above_the_signed_payable_is_to_be_refunded() {
        // The status, the payable of the signed document if it is another one, the paid amount, and the word.
        for (status, signed, paid, text, refund) in [
            (PaymentStatus::Paid, None, "1612.50", "Paid", None),
            (
                PaymentStatus::Paid,
                Some("1075"),
                "1612.50",
                "Refund due",
                Some("537.50"),
            ),
            (
                PaymentStatus::Paid,
                Some("1612.50"),
                "1612.50",
                "Paid",
                None,
            ),
            (
                PaymentStatus::Partial,
                Some("1700"),
                "1612.50",
                "Partly paid",
                None,
            ),
            (
                PaymentStatus::Partial,
                Some("1075"),
                "1075.01",
                "Refund due",
                Some("0.01"),
            ),
        ] {
            let payment = Payment {
                status,
                payable: amount("1612.50"),
                signed_payable: signed.map(amount),
                paid: amount(paid),
            };
            let word = PaymentBadgeAndRefund::new(payment, 2);
            let case = format!("{status:?} {signed:?} {paid}");
            assert_eq!(word.badge.text, text, "{case}");
            assert_eq!(word.refund, refund.map(amount), "{case}");
        }
    }
}
