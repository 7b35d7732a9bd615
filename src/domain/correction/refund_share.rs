//! The part of a credit note that is to be paid back to the customer. The rest of it is set off against its invoice.

use crate::domain::correction::credits::InvoiceCredits;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;
use crate::domain::payment::PaymentChange;

#[derive(Debug, PartialEq, Eq)]
pub struct RefundShare {
    pub invoice_id: InvoiceId,
    pub invoice_no: String,
    /// The number of the invoice that replaces the credited one; `None` if there is none. The refund may be set off
    /// against it.
    pub replacement: Option<String>,
    /// The amount that is still to be paid back through the credit note.
    pub refund_amount: Amount,
    /// The amount of the credit note that was neither paid back nor set off so far.
    unused_amount: Amount,
}

impl RefundShare {
    /// Returns the share of a credit note of this invoice, without a replacement. `credits` are the credit notes of the
    /// invoice.
    pub fn new(note: &Invoice, invoice: &Invoice, mut credits: InvoiceCredits) -> Self {
        if !note.authority.signed {
            // A refund through a credit note that is not signed yet counts once the note is signed.
            credits.signed.push(note.clone());
        }
        let left_of_invoice = credits.left_to_pay(invoice);
        let refund = Amount::ZERO.minus(left_of_invoice).unwrap_or_default();
        let unused_amount = note.payment.amount_left();
        Self {
            invoice_id: invoice.id,
            invoice_no: invoice.invoice_no.clone(),
            replacement: None,
            refund_amount: refund.max(Amount::ZERO).min(unused_amount),
            unused_amount,
        }
    }

    /// True if the whole unused amount is set off, so that nothing is to be paid back. False if the credit note is used
    /// up.
    pub fn is_set_off_only(&self) -> bool {
        self.refund_amount.is_zero() && !self.unused_amount.is_zero()
    }

    /// True if the whole unused amount is to be paid back. Also true if the credit note is used up.
    pub fn is_refund_only(&self) -> bool {
        self.refund_amount == self.unused_amount
    }

    /// Refuses to record that more was paid back than is to be paid back. `digits` is the number of decimal digits of
    /// the currency.
    pub fn check_payment(&self, change: PaymentChange, digits: u32) -> Result<(), Fault> {
        let amount = match change {
            PaymentChange::Partial(amount) => amount,
            PaymentChange::Paid => self.unused_amount,
            PaymentChange::Pending | PaymentChange::Rejected => return Ok(()),
        };
        if amount <= self.refund_amount {
            return Ok(());
        }
        let field = if change == PaymentChange::Paid {
            "payment_status"
        } else {
            "amount"
        };
        let number = &self.invoice_no;
        let message = if self.refund_amount.is_zero() {
            format!(
                "Nothing is to be paid back for {number}: the rest of the credit note is set off against this invoice."
            )
        } else {
            format!(
                "The amount {} is more than the {} that is to be paid back for {number}. The rest of the credit note is set off against this invoice.",
                amount.to_currency_text(digits),
                self.refund_amount.to_currency_text(digits)
            )
        };
        Err(Fault::new(field, "exceeds_refund", message))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::correction::testing::{amount, draft, signed};
    use crate::domain::invoice::Line;
    use crate::domain::kernel::codes::PaymentStatus;
    use crate::domain::payment::Payment;

    fn with_amounts(invoice: &Invoice, payable: &str, paid: &str) -> Invoice {
        Invoice {
            payment: Payment {
                status: PaymentStatus::Partial,
                payable: amount(payable),
                signed_payable: None,
                paid: amount(paid),
            },
            ..invoice.clone()
        }
    }

    fn credit_note(invoice: &Invoice, id: i64, payable: &str, paid: &str) -> Invoice {
        let mut note = with_amounts(invoice, payable, paid);
        note.id = InvoiceId(id);
        note.invoice_type = "380".to_owned();
        let reference = json!(invoice.irn.as_str());
        note.extras
            .insert("original_invoice_reference".to_owned(), reference);
        note
    }

    /// The paid amount of an invoice over 3,065.59, its credit notes with what was paid back through each, and what is
    /// still to be paid back through the last one.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

    #[test]
    fn no_more_is_paid_back_than_was_paid_and_not_used() {
        let cases: [Case<'_>; 8] = [
            ("1000", &[("966.64", "0")], "0"),
            ("1000", &[("966.64", "0"), ("2098.95", "0")], "1000"),
            ("1000", &[("966.64", "0"), ("2098.95", "600")], "400"),
            ("1000", &[("966.64", "600"), ("2098.95", "0")], "400"),
            ("1000", &[("966.64", "0"), ("2098.95", "1000")], "0"),
            ("1000", &[("966.64", "0"), ("2098.95", "2098.95")], "0"),
            ("3065.59", &[("966.64", "0")], "966.64"),
            ("0", &[("3065.59", "0")], "0"),
        ];
        for (paid, notes, expected) in cases {
            for is_signed in [true, false] {
                let invoice = with_amounts(&signed(draft(vec![Line::sample()])), "3065.59", paid);
                let notes = (2..).zip(notes);
                let mut notes: Vec<_> = notes
                    .map(|(id, (payable, back))| credit_note(&invoice, id, payable, back))
                    .collect();
                let last = notes.last_mut().unwrap();
                last.authority.signed = is_signed;
                let last = last.clone();
                let credits = InvoiceCredits::new(&invoice, notes);
                let share = RefundShare::new(&last, &invoice, credits);
                let name = format!("{paid} {expected} {is_signed}");
                assert_eq!(share.refund_amount, amount(expected), "{name}");
                let is_used_up = last.payment.amount_left().is_zero();
                let is_alone = expected == "0" && !is_used_up;
                assert_eq!(share.is_set_off_only(), is_alone, "{name}");
            }
        }
    }

    #[test]
    fn a_refund_above_what_is_to_be_paid_back_is_refused() {
        use PaymentChange::{Paid, Partial, Pending, Rejected};
        let share = |refund_amount: &str, left: &str| RefundShare {
            invoice_id: InvoiceId(1),
            invoice_no: "JAN001".to_owned(),
            replacement: None,
            refund_amount: amount(refund_amount),
            unused_amount: amount(left),
        };
        let part = |text: &str| Partial(amount(text));
        let too_much =
            "The amount 2,098.95 is more than the 1,000.00 that is to be paid back for JAN001.";
        // The change, what is to be paid back, what is left of the credit note, and the beginning of the refusal.
        for (change, refund_amount, left, expected) in [
            (part("1000"), "1000", "2098.95", None),
            (part("0.01"), "1000", "2098.95", None),
            (part("2098.95"), "1000", "2098.95", Some(too_much)),
            (Paid, "1000", "2098.95", Some(too_much)),
            (Paid, "1000", "1000", None),
            (Paid, "0", "0", None),
            (Paid, "0", "5", Some("Nothing is to be paid back for")),
            (part("1"), "0", "5", Some("Nothing is to be paid back")),
            (Pending, "0", "5", None),
            (Rejected, "0", "5", None),
        ] {
            let share = share(refund_amount, left);
            let refused = share.check_payment(change, 2).err();
            let message = refused.map(|fault| fault.to_string()).unwrap_or_default();
            let name = format!("{change:?} {refund_amount} {left}: {message}");
            assert!(message.starts_with(expected.unwrap_or_default()), "{name}");
            assert_eq!(message.is_empty(), expected.is_none(), "{name}");
            assert_eq!(share.is_refund_only(), refund_amount == left, "{name}");
        }
    }
}
