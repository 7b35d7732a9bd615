//! The credit notes of an invoice, and the amounts that they leave.

use std::cmp::Ordering;

use serde_json::Map;

use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::{PaymentStatus, WorkflowStatus};
use crate::domain::money::Amount;

/// The credit notes of an invoice, from this service or from another system. A credit note that was cancelled before it
/// was signed is left out.
#[derive(Debug, Default)]
pub struct InvoiceCredits {
    /// The signed credit notes. Only these reduce the invoice.
    pub signed: Vec<Invoice>,
    /// The credit notes that the authority has not signed yet, but may still sign.
    pub unsigned: Vec<Invoice>,
    /// True if so many documents refer to the invoice that the newest were not read. There may be credit notes among
    /// them.
    pub is_cut: bool,
}

/// The settlement of an invoice, as its payments and its signed credit notes leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// The payment status of the invoice says all.
    ByPaymentStatus,
    /// The invoice is not marked as paid, but signed credit notes, together with what was paid, leave nothing of it.
    ByCredits,
    /// More was paid than they leave. A part has to be paid back.
    RefundDue,
}

impl Settlement {
    /// `left` compares what is left to pay with nothing. `has_credit_notes` is true if the invoice has signed credit
    /// notes in its currency.
    pub fn new(invoice: &Invoice, left: Ordering, has_credit_notes: bool) -> Self {
        if invoice.is_credit_note() {
            return Self::ByPaymentStatus;
        }
        let is_marked_as_paid = invoice.payment.status == PaymentStatus::Paid;
        let is_credited = invoice.authority.signed && has_credit_notes && !is_marked_as_paid;
        match left {
            Ordering::Less => Self::RefundDue,
            Ordering::Equal if is_credited => Self::ByCredits,
            Ordering::Equal | Ordering::Greater => Self::ByPaymentStatus,
        }
    }
}

impl InvoiceCredits {
    /// Finds the credit notes of an invoice among documents that refer to it.
    pub fn new(invoice: &Invoice, correcting: Vec<Invoice>) -> Self {
        let notes = correcting.into_iter().filter(|note| {
            let is_in_force = note.authority.signed || note.status != WorkflowStatus::Cancelled;
            is_in_force && note.is_credit_note() && note.corrects(invoice)
        });
        let (signed, unsigned) = notes.partition(|note| note.authority.signed);
        Self {
            signed,
            unsigned,
            is_cut: false,
        }
    }

    /// Adds other credit notes of the same invoice, without their extra fields, which may be large.
    pub fn add_without_extras(&mut self, others: Self) {
        let reduce = |note: Invoice| Invoice {
            extras: Map::new(),
            ..note
        };
        self.signed.extend(others.signed.into_iter().map(reduce));
        self.unsigned
            .extend(others.unsigned.into_iter().map(reduce));
    }

    /// Returns the signed credit notes in a currency. A credit note in another currency than the invoice reduces
    /// nothing, because the amounts cannot be compared.
    pub fn notes_in_currency(&self, currency: &str) -> impl Iterator<Item = &Invoice> {
        let notes = self.signed.iter();
        notes.filter(move |note| note.currency == currency)
    }

    /// Returns the amount by which the signed credit notes reduce the invoice.
    pub fn credited_amount(&self, invoice: &Invoice) -> Amount {
        let notes = self.notes_in_currency(&invoice.currency);
        sum(notes.map(|note| note.payment.payable_as_signed()))
    }

    /// Returns the amount that the taxpayer has received for the invoice: the amount paid, less the amounts paid back
    /// or set off through its credit notes.
    pub fn amount_received(&self, invoice: &Invoice) -> Amount {
        let notes = self.notes_in_currency(&invoice.currency);
        paid_less_paid_back(invoice, notes.map(|note| note.payment.paid))
    }

    /// Returns the amount that is still to be paid; below zero if the taxpayer has to pay it back.
    pub fn left_to_pay(&self, invoice: &Invoice) -> Amount {
        let owed = invoice.payment.payable_as_signed();
        let owed = owed.minus(self.credited_amount(invoice));
        owed.and_then(|owed| owed.minus(self.amount_received(invoice)))
            .unwrap_or_default()
    }

    /// Returns the amount that was paid back or set off through the signed credit notes.
    pub fn used_amount(&self, invoice: &Invoice) -> Amount {
        let notes = self.notes_in_currency(&invoice.currency);
        sum(notes.map(|note| note.payment.paid))
    }

    pub fn settlement(&self, invoice: &Invoice) -> Settlement {
        let left = self.left_to_pay(invoice).cmp(&Amount::ZERO);
        let mut notes = self.notes_in_currency(&invoice.currency);
        Settlement::new(invoice, left, notes.next().is_some())
    }

    /// True if signed credit notes, together with what was paid, leave nothing to pay of an invoice that is not marked as
    /// paid. A part may have to be paid back then.
    pub fn leave_nothing(&self, invoice: &Invoice) -> bool {
        invoice.authority.signed
            && invoice.payment.status != PaymentStatus::Paid
            && self.notes_in_currency(&invoice.currency).next().is_some()
            && self.left_to_pay(invoice) <= Amount::ZERO
    }
}

/// Returns the amount paid for an invoice, less these amounts, which were paid back or set off through its credit
/// notes.
pub fn paid_less_paid_back(
    invoice: &Invoice,
    paid_back: impl IntoIterator<Item = Amount>,
) -> Amount {
    let back = sum(paid_back.into_iter());
    invoice.payment.paid.minus(back).unwrap_or_default()
}

fn sum(amounts: impl Iterator<Item = Amount>) -> Amount {
    amounts.fold(Amount::ZERO, |sum, amount| sum.plus(amount).unwrap_or(sum))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;
    use crate::domain::kernel::ids::InvoiceId;
    use crate::domain::payment::Payment;

    fn with_amounts(invoice: &Invoice, payable: &str, paid: &str) -> Invoice {
        Invoice {
            payment: Payment {
                status: PaymentStatus::Pending,
                payable: Amount::parse(payable).unwrap(),
                signed_payable: None,
                paid: Amount::parse(paid).unwrap(),
            },
            ..invoice.clone()
        }
    }

    fn credit_note(invoice: &Invoice, payable: &str, paid: &str, is_signed: bool) -> Invoice {
        let mut note = with_amounts(invoice, payable, paid);
        note.id = InvoiceId(2);
        note.invoice_type = "380".to_owned();
        note.authority.signed = is_signed;
        let reference = json!(invoice.irn.as_str());
        note.extras
            .insert("original_invoice_reference".to_owned(), reference);
        note
    }

    #[test]
    fn signed_credit_notes_lower_what_is_left() {
        for (paid, notes, credited, received, left) in [
            ("0", vec![], "0", "0", "100"),
            ("0", vec![("30", "0", true)], "30", "0", "70"),
            ("0", vec![("30", "0", false)], "0", "0", "100"),
            ("0", vec![("100", "0", true)], "100", "0", "0"),
            ("40", vec![("100", "0", true)], "100", "40", "-40"),
            ("40", vec![("100", "40", true)], "100", "0", "0"),
            ("100", vec![("30", "30", true)], "30", "70", "0"),
            (
                "100",
                vec![("30", "0", true), ("20", "0", true)],
                "50",
                "100",
                "-50",
            ),
        ] {
            let invoice = with_amounts(&signed(draft(vec![Line::sample()])), "100", paid);
            let mut documents = Vec::new();
            for (payable, paid, is_signed) in notes {
                documents.push(credit_note(&invoice, payable, paid, is_signed));
            }
            documents.push(with_amounts(&invoice, "5", "0"));
            let credits = InvoiceCredits::new(&invoice, documents);
            let found = [
                credits.credited_amount(&invoice),
                credits.amount_received(&invoice),
                credits.left_to_pay(&invoice),
            ];
            let wanted = [credited, received, left].map(|text| Amount::parse(text).unwrap());
            assert_eq!(found, wanted, "{paid} {left}");
            let is_nothing_left = left == "0" || left.starts_with('-');
            assert_eq!(credits.leave_nothing(&invoice), is_nothing_left, "{paid}");
            let mut marked = invoice;
            marked.payment.status = PaymentStatus::Paid;
            assert!(!credits.leave_nothing(&marked), "{paid} {left}");
        }
    }

    #[test]
    fn more_than_is_left_is_to_be_paid_back_whatever_the_payment_status() {
        use PaymentStatus::{Paid, Partial, Pending};
        use Settlement::{ByCredits, ByPaymentStatus, RefundDue};
        // The payment status and the paid amount of an invoice over 100, its credit notes over these amounts with what
        // was paid back through each, and the settlement.
        let cases: [(_, _, &[(&str, &str)], _); 9] = [
            (Pending, "0", &[], ByPaymentStatus),
            (Paid, "100", &[], ByPaymentStatus),
            (Paid, "100", &[("30", "0")], RefundDue),
            (Paid, "100", &[("30", "10")], RefundDue),
            (Paid, "100", &[("30", "30")], ByPaymentStatus),
            (Partial, "40", &[("30", "0")], ByPaymentStatus),
            (Partial, "40", &[("60", "0")], ByCredits),
            (Partial, "40", &[("30", "0"), ("70", "0")], RefundDue),
            (Pending, "0", &[("100", "0")], ByCredits),
        ];
        for (status, paid, notes, expected) in cases {
            let mut invoice = with_amounts(&signed(draft(vec![Line::sample()])), "100", paid);
            invoice.payment.status = status;
            let notes = notes.iter();
            let notes = notes.map(|(payable, back)| credit_note(&invoice, payable, back, true));
            let credits = InvoiceCredits::new(&invoice, notes.collect());
            let name = format!("{status} {paid} {expected:?}");
            assert_eq!(credits.settlement(&invoice), expected, "{name}");
            let used = credits.used_amount(&invoice);
            let received = invoice.payment.paid.minus(used);
            assert_eq!(received, Some(credits.amount_received(&invoice)), "{name}");
            let note = credit_note(&invoice, "100", "0", true);
            let of_note = Settlement::new(&note, Ordering::Less, false);
            assert_eq!(of_note, ByPaymentStatus, "{name}");
        }
    }

    #[test]
    fn the_amounts_that_were_signed_count() {
        let invoice = with_amounts(&signed(draft(vec![Line::sample()])), "300", "50");
        // The signed payables of the invoice and of its credit note over 100, and what is left to pay.
        for (of_invoice, of_note, left) in [
            ("300", "100", "150"),
            ("215", "100", "65"),
            ("215", "215", "-50"),
            ("300", "40", "210"),
        ] {
            let mut invoice = invoice.clone();
            let mut note = credit_note(&invoice, "100", "0", true);
            let amount = |text| Amount::parse(text).unwrap();
            note.payment = note.payment.after_signature(amount(of_note));
            invoice.payment = invoice.payment.after_signature(amount(of_invoice));
            let credits = InvoiceCredits::new(&invoice, vec![note]);
            assert_eq!(
                credits.left_to_pay(&invoice),
                amount(left),
                "{of_invoice} {of_note}"
            );
        }
    }

    #[test]
    fn a_credit_note_counts_for_another_invoice_in_its_currency() {
        let invoice = with_amounts(&signed(draft(vec![Line::sample()])), "100", "0");
        let note = credit_note(&invoice, "30", "10", true);
        let foreign = Invoice {
            currency: "USD".to_owned(),
            ..note.clone()
        };
        let itself = Invoice {
            id: invoice.id,
            ..note.clone()
        };
        // The document, how many signed credit notes it is, and what it leaves to pay.
        for (document, count, left) in [(note, 1, "80"), (foreign, 1, "100"), (itself, 0, "100")] {
            let name = format!("{} {}", document.id, document.currency);
            let credits = InvoiceCredits::new(&invoice, vec![document]);
            assert_eq!(credits.signed.len(), count, "{name}");
            let left = Amount::parse(left).unwrap();
            assert_eq!(credits.left_to_pay(&invoice), left, "{name}");
        }
    }
}
