//! The payment of a document in a row of the list and on its page: a word, and the amount that was paid above the signed
//! payable.

use crate::console::badges::{Badge, badge};
use crate::domain::correction::credits::{InvoiceCredits, Settlement};
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::PaymentStatus;
use crate::domain::money::Amount;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct PaymentBadgeAndRefund {
    /// `None` for a credit note of which nothing was paid back or set off: nobody is expected to pay it.
    pub(super) badge: Option<Badge>,
    /// The amount that was paid above the payable amount of the signed document; `None` if there is none. Credit
    /// notes are not counted here. The page of the invoice counts them, so its refund may be larger.
    pub(super) refund: Option<Amount>,
}

impl PaymentBadgeAndRefund {
    /// `digits` is the number of decimal digits of the currency.
    pub(super) fn new(invoice: &Invoice, digits: u32, settlement: Settlement) -> Self {
        let payment = invoice.payment;
        let excess = payment
            .signed_payable
            .filter(|_| settlement == Settlement::RefundDue)
            .and_then(|payable| payment.paid.minus(payable))
            .filter(|excess| *excess > Amount::ZERO);
        Self {
            badge: payment_badge(invoice, settlement),
            refund: excess.map(|excess| excess.with_digits(digits)),
        }
    }
}

/// Returns the word for the payment of a document with these credit notes; `None` for a credit note that needs none.
pub(super) fn badge_after_credits(invoice: &Invoice, credits: &InvoiceCredits) -> Option<Badge> {
    payment_badge(invoice, credits.settlement(invoice))
}

/// Returns the word for the payment of a document; `None` for a credit note that needs none. After a credit in full the
/// payment status of an invoice is "rejected", or stays "pending", which would sound as if money were missing.
fn payment_badge(invoice: &Invoice, settlement: Settlement) -> Option<Badge> {
    match settlement {
        Settlement::RefundDue => Some(badge("warn", "Refund due")),
        Settlement::ByCredits if invoice.payment.paid.is_zero() => Some(badge("idle", "Credited")),
        Settlement::ByCredits => Some(badge("ok", "Settled")),
        Settlement::ByPaymentStatus if invoice.is_credit_note() => credit_note_badge(invoice),
        Settlement::ByPaymentStatus => Some(invoice.payment.status.into()),
    }
}

fn credit_note_badge(note: &Invoice) -> Option<Badge> {
    match note.payment.status {
        PaymentStatus::Pending => None,
        PaymentStatus::Partial => Some(badge("wait", "Partly settled")),
        PaymentStatus::Paid => Some(badge("ok", "Settled")),
        PaymentStatus::Rejected => Some(PaymentStatus::Rejected.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;
    use crate::domain::payment::Payment;

    fn amount(text: &str) -> Amount {
        Amount::parse(text).unwrap()
    }

    #[test]
    fn a_credit_is_no_rejected_payment_and_a_credit_note_is_not_owed() {
        use PaymentStatus::{Paid, Partial, Pending, Rejected};
        use Settlement::{ByCredits, ByPaymentStatus, RefundDue};
        // The type of the document, its payment status, the paid amount, its settlement, and the word.
        for (code, status, paid, settlement, word) in [
            ("381", Pending, "0", ByPaymentStatus, Some("Not paid")),
            ("381", Pending, "0", ByCredits, Some("Credited")),
            (
                "381",
                Rejected,
                "0",
                ByPaymentStatus,
                Some("Payment rejected"),
            ),
            ("381", Rejected, "0", ByCredits, Some("Credited")),
            ("381", Partial, "40", ByPaymentStatus, Some("Partly paid")),
            ("381", Partial, "40", ByCredits, Some("Settled")),
            ("381", Partial, "40", RefundDue, Some("Refund due")),
            ("381", Paid, "100", ByPaymentStatus, Some("Paid")),
            ("381", Paid, "100", RefundDue, Some("Refund due")),
            ("380", Pending, "0", ByPaymentStatus, None),
            (
                "380",
                Partial,
                "40",
                ByPaymentStatus,
                Some("Partly settled"),
            ),
            ("380", Paid, "100", ByPaymentStatus, Some("Settled")),
            (
                "380",
                Rejected,
                "0",
                ByPaymentStatus,
                Some("Payment rejected"),
            ),
        ] {
            let mut invoice = signed(draft(vec![Line::sample()]));
            code.clone_into(&mut invoice.invoice_type);
            invoice.payment.status = status;
            invoice.payment.paid = amount(paid);
            let found = payment_badge(&invoice, settlement).map(|badge| badge.text);
            assert_eq!(found, word, "{code} {status} {settlement:?}");
        }
    }

    #[test]
    fn what_credit_notes_take_off_above_the_rest_is_to_be_refunded() {
        // The paid amount of an invoice over 1,612.50, the amount of its credit note, and the word.
        for (paid, credited, word) in [
            ("0", "1000", "Not paid"),
            ("0", "1612.50", "Credited"),
            ("0", "1612.51", "Refund due"),
            ("612.50", "1000", "Settled"),
            ("612.51", "1000", "Refund due"),
        ] {
            let mut invoice = signed(draft(vec![Line::sample()]));
            invoice.payment = Payment {
                status: PaymentStatus::Pending,
                payable: amount("1612.50"),
                signed_payable: None,
                paid: amount(paid),
            };
            let mut note = invoice.clone();
            note.payment.payable = amount(credited);
            note.payment.paid = Amount::ZERO;
            let credits = InvoiceCredits {
                signed: vec![note],
                ..InvoiceCredits::default()
            };
            let found = badge_after_credits(&invoice, &credits).map(|badge| badge.text);
            assert_eq!(found, Some(word), "{paid} {credited}");
        }
    }

    #[test]
    fn only_what_was_paid_above_the_signed_payable_is_to_be_refunded() {
        let sample_invoice = signed(draft(vec![Line::sample()]));
        // The status, the payable of the signed document if it is another one, the paid amount, and the word.
        for (status, signed_payable, paid, text, refund) in [
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
                signed_payable: signed_payable.map(amount),
                paid: amount(paid),
            };
            let invoice = Invoice {
                payment,
                ..sample_invoice.clone()
            };
            let settlement = InvoiceCredits::default().settlement(&invoice);
            let word = PaymentBadgeAndRefund::new(&invoice, 2, settlement);
            let case = format!("{status:?} {signed_payable:?} {paid}");
            assert_eq!(word.badge.map(|badge| badge.text), Some(text), "{case}");
            assert_eq!(word.refund, refund.map(amount), "{case}");
        }
    }
}
