//! The payments on the page of an invoice: their sum, the lines of the ledger, and the amount that can be taken back.

use crate::actors::taxpayer::commands::check_not_paid_at_authority;
use crate::console::actor_name::actor_name;
use crate::console::badges::{Badge, badge};
use crate::domain::correction::credits::InvoiceCredits;
use crate::domain::correction::record::{Correction, DocumentPurpose};
use crate::domain::invoice::Invoice;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::kernel::codes::PaymentStatus;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;
use crate::domain::payment::{CREDITED_REMARK, LedgerEntry};
use crate::domain::pipeline::Run;

/// The paid amount of an invoice, the amounts of its credit notes, and the remaining amount.
pub(super) struct PaymentSummary {
    /// The payable amount of the signed document; `None` if it is the same as that of the stored invoice.
    pub(super) signed_payable: Option<Amount>,
    pub(super) paid: Amount,
    /// The amount, the number and the id of each signed credit note.
    pub(super) credited: Vec<(Amount, String, InvoiceId)>,
    pub(super) left: Amount,
    /// True if the remaining amount must be paid back to the customer.
    pub(super) is_refund: bool,
    /// The number of the invoice that replaces this one; `None` if there is none.
    pub(super) replacement: Option<String>,
}

impl PaymentSummary {
    pub(super) fn new(
        invoice: &Invoice,
        credits: &InvoiceCredits,
        correction: Option<&Correction>,
        digits: u32,
    ) -> Self {
        let left = credits.left_to_pay(invoice);
        let notes = credits.notes_in_currency(&invoice.currency);
        let mut documents = correction.iter().flat_map(|one| &one.documents);
        let replacement =
            documents.find(|one| one.kind == DocumentPurpose::Replacement && one.id.is_some());
        let signed_payable = invoice.payment.signed_payable;
        Self {
            signed_payable: signed_payable.map(|amount| amount.with_digits(digits)),
            paid: invoice.payment.paid.with_digits(digits),
            credited: notes
                .map(|note| {
                    let amount = note.payment.payable_as_signed().with_digits(digits);
                    (amount, note.invoice_no.clone(), note.id)
                })
                .collect(),
            left: left.abs().with_digits(digits),
            is_refund: left.is_negative(),
            replacement: replacement.map(|one| one.invoice_no.clone()),
        }
    }
}

pub(super) struct PaymentLine {
    pub(super) entry: LedgerEntry,
    /// The amount, with a minus sign if it was taken back.
    pub(super) amount: String,
    /// The name of the actor that recorded the payment; empty for old payments, for which this was not stored.
    pub(super) by: String,
    pub(super) badge: Badge,
}

pub(super) fn to_payments(entries: Vec<LedgerEntry>, digits: u32) -> Vec<PaymentLine> {
    let entries = entries.into_iter();
    entries
        .map(|entry| PaymentLine::new(entry, digits))
        .collect()
}

impl PaymentLine {
    fn new(entry: LedgerEntry, digits: u32) -> Self {
        let amount = entry.posting.amount;
        let by = entry.actor.as_ref().map(actor_name).unwrap_or_default();
        let is_credit = entry.posting.status == PaymentStatus::Rejected
            && entry.remark.as_deref() == Some(CREDITED_REMARK);
        let sign = if amount.is_negative() { "-" } else { "" };
        Self {
            amount: format!("{sign}{}", amount.abs().to_currency_text(digits)),
            badge: if is_credit {
                badge("idle", "Credited")
            } else if amount.is_negative() {
                badge("warn", "Taken back")
            } else {
                entry.posting.status.into()
            },
            by,
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
    use crate::domain::payment::Posting;

    #[test]
    fn a_line_tells_a_payment_from_one_that_was_taken_back() {
        use PaymentStatus::{Partial, Pending, Rejected};
        for (status, amount, remark, expected) in [
            (Partial, "1000.5", "by bank", "Partly paid 1,000.50"),
            (Partial, "-1000.5", "by bank", "Taken back -1,000.50"),
            (Pending, "-7", "by bank", "Taken back -7.00"),
            (Pending, "0", "by bank", "Not paid 0.00"),
            (Rejected, "0", CREDITED_REMARK, "Credited 0.00"),
        ] {
            let entry = LedgerEntry {
                at: Timestamp::UNIX_EPOCH,
                posting: Posting {
                    status,
                    amount: Amount::parse(amount).unwrap(),
                },
                reference: None,
                remark: Some(remark.to_owned()),
                actor: None,
            };
            let line = PaymentLine::new(entry, 2);
            let shown = format!("{} {}", line.badge.text, line.amount);
            assert_eq!(shown, expected, "{status} {amount}");
        }
    }
}
