//! The payments on the page of an invoice: their sum, the lines of the ledger, and the amount that can be taken back.

use jiff::civil::Date;
use jiff::tz::Offset;

use crate::actors::taxpayer::commands::check_not_paid_at_authority;
use crate::console::accounts::invoice_head::InvoiceHead;
use crate::console::actor_name::actor_name;
use crate::console::badges::{Badge, badge};
use crate::domain::correction::record::Correction;
use crate::domain::correction::refund_share::RefundShare;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::kernel::codes::PaymentStatus;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;
use crate::domain::payment::{CREDITED_REMARK, LedgerEntry};
use crate::domain::pipeline::Run;
use crate::domain::reconciliation::day::day_at;

/// The paid amount of an invoice, the amounts of its credit notes, and the remaining amount. They add up: the payable
/// amount, less what was paid and credited, plus what was paid back, is what remains.
pub(super) struct PaymentSummary {
    /// The payable amount of the signed document; `None` if it is the same as that of the stored invoice.
    pub(super) signed_payable: Option<Amount>,
    /// The amount that was recorded as paid, or as paid back through a credit note. What was set off is not in it.
    pub(super) paid: Amount,
    /// The amount that was paid back through the credit notes of the invoice.
    pub(super) paid_back: Amount,
    /// The amount, the number and the id of each signed credit note.
    pub(super) credited: Vec<(Amount, String, InvoiceId)>,
    /// The amount that is still to be paid or, if `is_refund`, to be paid back.
    pub(super) remaining: Amount,
    /// True if the remaining amount must be paid back to the customer.
    pub(super) is_refund: bool,
    /// True if the invoice can be recorded as paid in full, although nothing is left to pay.
    pub(super) is_complete: bool,
    /// The number of the invoice that replaces this one; `None` if there is none.
    pub(super) replacement: Option<String>,
    /// The parts of a credit note; `None` for any other document, and if they are not known.
    pub(super) parts: Option<CreditNoteParts>,
}

/// The parts of a credit note. Together with what was paid back they are its whole amount.
pub(super) struct CreditNoteParts {
    pub(super) invoice_id: InvoiceId,
    pub(super) invoice_no: String,
    /// The number of the invoice that replaces the credited one; `None` if there is none.
    pub(super) replacement: Option<String>,
    pub(super) refund_amount: Amount,
    /// The amount that is set off against the invoice.
    pub(super) set_off: Amount,
}

impl PaymentSummary {
    pub(super) fn new(
        invoice: &Invoice,
        head: &InvoiceHead,
        entries: &[LedgerEntry],
        digits: u32,
    ) -> Self {
        let credits = &head.credits;
        let remaining = credits.left_to_pay(invoice);
        let notes = credits.notes_in_currency(&invoice.currency);
        let moved = MovedAmounts::new(invoice, credits.used_amount(invoice), entries);
        let share = head.refund_share.as_ref();
        let share = share.filter(|_| !remaining.is_negative());
        let correction = head.corrections.first();
        let replacement = correction.and_then(Correction::created_replacement_no);
        let signed_payable = invoice.payment.signed_payable;
        Self {
            signed_payable: signed_payable.map(|amount| amount.with_digits(digits)),
            paid: moved.paid.with_digits(digits),
            paid_back: moved.paid_back.with_digits(digits),
            is_complete: head.acts.payments.is_any() && remaining.is_zero(),
            parts: share.map(|share| CreditNoteParts::new(invoice, share, moved.paid, digits)),
            credited: notes
                .map(|note| {
                    let amount = note.payment.payable_as_signed().with_digits(digits);
                    (amount, note.invoice_no.clone(), note.id)
                })
                .collect(),
            remaining: remaining.abs().with_digits(digits),
            is_refund: remaining.is_negative(),
            replacement: replacement.map(str::to_owned),
        }
    }
}

impl CreditNoteParts {
    /// `paid_back` is the amount that was paid back so far.
    fn new(note: &Invoice, share: &RefundShare, paid_back: Amount, digits: u32) -> Self {
        let rest = note.payment.payable_as_signed().minus(paid_back);
        let set_off = rest.and_then(|rest| rest.minus(share.refund_amount));
        let set_off = set_off.unwrap_or_default().max(Amount::ZERO);
        Self {
            invoice_id: share.invoice_id,
            invoice_no: share.invoice_no.clone(),
            replacement: share.replacement.clone(),
            refund_amount: share.refund_amount.with_digits(digits),
            set_off: set_off.with_digits(digits),
        }
    }
}

/// The money that moved for a document, without what was set off.
#[derive(Debug, PartialEq, Eq)]
struct MovedAmounts {
    paid: Amount,
    /// The amount that was paid back through the credit notes of the document.
    paid_back: Amount,
}

impl MovedAmounts {
    /// `used` is the amount that was paid back or set off through the credit notes of the document, and `entries` are
    /// its own payments.
    fn new(document: &Invoice, used: Amount, entries: &[LedgerEntry]) -> Self {
        let set_off = Amount::sum(entries.iter().map(LedgerEntry::set_off_amount));
        let set_off = set_off.unwrap_or_default();
        // A person may have typed the remark of a set-off. So no more counts as set off than the credit notes have used.
        let set_off = if document.is_credit_note() {
            set_off
        } else {
            set_off.min(used)
        };
        let paid_back = used.minus(set_off).unwrap_or_default();
        Self {
            paid: document.payment.recorded_amount(set_off),
            paid_back: paid_back.max(Amount::ZERO),
        }
    }
}

pub(super) struct PaymentLine {
    pub(super) entry: LedgerEntry,
    /// The day of the payment; `None` for an entry that only changes the payment status.
    pub(super) paid_on: Option<Date>,
    /// The amount, with a minus sign if it was taken back.
    pub(super) amount: String,
    /// The name of the actor that recorded the payment; empty for old payments, for which this was not stored.
    pub(super) recorded_by: String,
    pub(super) badge: Badge,
}

/// Returns the lines of the ledger. `zone` decides the day of a payment that was recorded without one.
pub(super) fn to_payments(
    entries: Vec<LedgerEntry>,
    digits: u32,
    zone: Offset,
) -> Vec<PaymentLine> {
    let entries = entries.into_iter();
    entries
        .map(|entry| PaymentLine::new(entry, digits, zone))
        .collect()
}

/// Returns the day of a payment: the one that was sent, else the day of its recording.
pub(super) fn payment_day(entry: &LedgerEntry, zone: Offset) -> Date {
    let recorded_on = day_at(entry.at, zone);
    entry.payment_date.unwrap_or(recorded_on)
}

impl PaymentLine {
    fn new(entry: LedgerEntry, digits: u32, zone: Offset) -> Self {
        let amount = entry.posting.amount;
        let recorded_by = entry.actor.as_ref().map(actor_name).unwrap_or_default();
        let is_credit = entry.posting.status == PaymentStatus::Rejected
            && entry.remark.as_deref() == Some(CREDITED_REMARK);
        let sign = if amount.is_negative() { "-" } else { "" };
        let is_dated = entry.payment_date.is_some() || !amount.is_zero();
        Self {
            paid_on: is_dated.then(|| payment_day(&entry, zone)),
            amount: format!("{sign}{}", amount.abs().to_currency_text(digits)),
            badge: if is_credit {
                badge("idle", "Credited")
            } else if amount.is_negative() {
                badge("warn", "Taken back")
            } else {
                entry.posting.status.into()
            },
            recorded_by,
            entry,
        }
    }
}

/// Returns the amount that can be taken back of what was recorded as paid; `None` if nothing can be.
pub(super) fn amount_to_take_back(
    invoice: &Invoice,
    runs: &[Run],
    entries: &[LedgerEntry],
) -> Option<Amount> {
    let set_off = Amount::sum(entries.iter().map(LedgerEntry::set_off_amount));
    let recorded = invoice.payment.recorded_amount(set_off.unwrap_or_default());
    let may_be_taken = invoice.status.after(Transition::TakePaymentBack).is_ok()
        && check_not_paid_at_authority(runs).is_ok();
    Some(recorded).filter(|recorded| may_be_taken && !recorded.is_zero())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;
    use crate::domain::payment::{Payment, Posting, SET_OFF_REMARK};

    fn amount(text: &str) -> Amount {
        Amount::parse(text).unwrap()
    }

    fn entry(status: PaymentStatus, amount: &str, remark: &str) -> LedgerEntry {
        LedgerEntry {
            at: Timestamp::UNIX_EPOCH,
            posting: Posting {
                status,
                amount: Amount::parse(amount).unwrap(),
            },
            payment_date: None,
            reference: None,
            remark: Some(remark.to_owned()),
            actor: None,
        }
    }

    const SET_OFF: (&str, &str) = ("30", SET_OFF_REMARK);

    /// The type of a document over 100, its payments with their remarks, what its credit notes used, then what was paid
    /// and what was paid back.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a str, &'a str);

    #[test]
    fn what_was_set_off_is_neither_paid_nor_paid_back() {
        let cases: [Case<'_>; 8] = [
            ("381", &[], "0", "0", "0"),
            ("381", &[("40", "by bank")], "0", "40", "0"),
            ("381", &[("40", "by bank")], "15", "40", "15"),
            ("381", &[SET_OFF, ("70", "x")], "30", "70", "0"),
            ("381", &[SET_OFF, ("70", "x")], "45", "70", "15"),
            ("381", &[SET_OFF], "0", "30", "0"),
            ("380", &[SET_OFF, ("5", "x")], "0", "5", "0"),
            ("380", &[("30", "by bank")], "0", "30", "0"),
        ];
        for (code, payments, used, paid, paid_back) in cases {
            let mut document = signed(draft(vec![Line::sample()]));
            code.clone_into(&mut document.invoice_type);
            let payments = payments.iter();
            let entries: Vec<_> = payments
                .map(|(amount, remark)| entry(PaymentStatus::Partial, amount, remark))
                .collect();
            let amounts = entries.iter().map(|entry| entry.posting.amount);
            document.payment = Payment {
                status: PaymentStatus::Partial,
                payable: amount("100"),
                signed_payable: None,
                paid: Amount::sum(amounts).unwrap(),
            };
            let found = MovedAmounts::new(&document, amount(used), &entries);
            let expected = MovedAmounts {
                paid: amount(paid),
                paid_back: amount(paid_back),
            };
            assert_eq!(found, expected, "{code} {entries:?} {used}");
        }
    }

    #[test]
    fn a_payment_without_a_day_has_that_of_its_recording() {
        let sent = Date::constant(2026, 2, 3);
        // The amount, the day that was sent, the hours of the time zone, and the day of the payment.
        for (amount, payment_date, hours, expected) in [
            ("5", Some(sent), 0, "2026-02-03"),
            ("0", Some(sent), 0, "2026-02-03"),
            ("5", None, 0, "1970-01-01"),
            ("-5", None, -1, "1969-12-31"),
            ("0", None, 0, ""),
        ] {
            let entry = LedgerEntry {
                payment_date,
                ..entry(PaymentStatus::Partial, amount, "by bank")
            };
            let line = PaymentLine::new(entry, 2, Offset::constant(hours));
            let found = line.paid_on.map(|day| day.to_string()).unwrap_or_default();
            assert_eq!(found, expected, "{amount} {payment_date:?} {hours}");
        }
    }

    #[test]
    fn a_line_distinguishes_a_payment_from_one_that_was_taken_back() {
        use PaymentStatus::{Partial, Pending, Rejected};
        for (status, amount, remark, expected) in [
            (Partial, "1000.5", "by bank", "Partly paid 1,000.50"),
            (Partial, "-1000.5", "by bank", "Taken back -1,000.50"),
            (Pending, "-7", "by bank", "Taken back -7.00"),
            (Pending, "0", "by bank", "Not paid 0.00"),
            (Rejected, "0", CREDITED_REMARK, "Credited 0.00"),
        ] {
            let line = PaymentLine::new(entry(status, amount, remark), 2, Offset::UTC);
            let shown = format!("{} {}", line.badge.text, line.amount);
            assert_eq!(shown, expected, "{status} {amount}");
        }
    }
}
