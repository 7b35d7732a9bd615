//! Payments of an invoice. Each reported payment adds one posting to a ledger. No payment makes the paid total exceed
//! the payable. Once the authority has signed a document with another payable than the stored one, the signed payable
//! counts.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::kernel::audit::NamedActor;
use crate::domain::kernel::codes::{DeclaredPaymentStatus, PaymentStatus, RelayedPaymentStatus};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::money::Amount;

/// The remark of the posting that closes an invoice because a credit note takes back all of it.
pub const CREDITED_REMARK: &str = "Credited in full";
/// The remark of a posting that sets a credit note off against an invoice, or its beginning if one posting stands for
/// several credit notes.
pub const SET_OFF_REMARK: &str = "Set off";
/// The end of the remark of a posting that stands for several credit notes.
pub const SET_OFF_NOTES: &str = " credit notes";
/// The number of decimal digits of most currencies.
const DIGITS_DEFAULT: u32 = 2;

/// The payment state of an invoice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payment {
    pub status: PaymentStatus,
    /// The payable of the stored document.
    pub payable: Amount,
    /// The payable of the signed document; `None` if it is the payable of the stored document, or nothing is signed.
    pub signed_payable: Option<Amount>,
    pub paid: Amount,
}

/// A payment change that a caller reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentChange {
    Pending,
    Rejected,
    Paid,
    Partial(Amount),
}

/// A request to change the payment of an invoice, with the reference and the remark that the ledger keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentUpdate {
    pub invoice: InvoiceRef,
    pub change: PaymentChange,
    /// An amount that was sent with a change that is no part payment. It is not used, only named in a warning.
    pub unused_amount: Option<Amount>,
    /// The day of the payment; `None` for the day of its recording.
    pub payment_date: Option<Date>,
    pub reference: Option<String>,
    pub remark: String,
}

/// A request to take back an amount that was recorded as paid by mistake, with the texts that the ledger keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeBack {
    /// `None` for all that was recorded as paid.
    pub amount: Option<Amount>,
    pub reference: Option<String>,
    pub remark: String,
}

impl From<RelayedPaymentStatus> for PaymentChange {
    fn from(status: RelayedPaymentStatus) -> Self {
        match status {
            RelayedPaymentStatus::Paid => Self::Paid,
            RelayedPaymentStatus::Pending => Self::Pending,
            RelayedPaymentStatus::Rejected => Self::Rejected,
        }
    }
}

/// A payment status that a run relays to the authority, with a remark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayedPayment {
    pub payment_status: RelayedPaymentStatus,
    pub remark: Option<String>,
}

/// A posting to the payment ledger: the new payment status, and the amount that was paid. The amount is below zero if
/// a payment was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    pub status: PaymentStatus,
    pub amount: Amount,
}

/// A posting as stored in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    pub at: Timestamp,
    pub posting: Posting,
    /// The day of the payment, as it was sent; `None` if none was sent.
    pub payment_date: Option<Date>,
    pub reference: Option<String>,
    pub remark: Option<String>,
    /// The actor that recorded the payment. `None` for postings that are older than the record of actors.
    pub actor: Option<NamedActor>,
}

impl LedgerEntry {
    /// Returns the amount that the entry sets off against credit notes; zero for any other entry.
    pub fn set_off_amount(&self) -> Amount {
        let rest = self
            .remark
            .as_deref()
            .and_then(|remark| remark.strip_prefix(SET_OFF_REMARK));
        let is_set_off = rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(SET_OFF_NOTES));
        if is_set_off {
            self.posting.amount.max(Amount::ZERO)
        } else {
            Amount::ZERO
        }
    }
}

impl Payment {
    /// Creates the payment of a new invoice. If the invoice is declared as paid, also returns the first posting.
    pub fn from_declared(
        payable: Amount,
        status: DeclaredPaymentStatus,
    ) -> (Self, Option<Posting>) {
        let status = status.to_payment_status();
        let fresh = Self {
            status: PaymentStatus::Pending,
            payable,
            signed_payable: None,
            paid: Amount::ZERO,
        };
        if status == PaymentStatus::Paid {
            (
                Self {
                    status,
                    paid: payable,
                    ..fresh
                },
                Some(Posting {
                    status,
                    amount: payable,
                }),
            )
        } else {
            (Self { status, ..fresh }, None)
        }
    }

    /// Returns the payment with a new payable. Fails if `payable` is below the paid amount. `digits` is the number of
    /// decimal digits of the currency, for the message.
    pub fn reprice(self, payable: Amount, digits: u32) -> Result<Self, Fault> {
        if payable < self.paid {
            let message = format!(
                "The lines come to {}, which is less than the {} that was paid already.",
                payable.to_currency_text(digits),
                self.paid.to_currency_text(digits)
            );
            return Err(Fault::new("lines", "payment_exceeds_payable", message));
        }
        Ok(Self { payable, ..self }.with_adjusted_status())
    }

    /// Returns the payment after the authority has signed a document with this payable. The paid amount may be above
    /// it.
    #[must_use]
    pub fn after_signature(self, payable: Amount) -> Self {
        let signed_payable = (payable != self.payable).then_some(payable);
        Self {
            signed_payable,
            ..self
        }
        .with_adjusted_status()
    }

    /// Replaces the status "paid" by "pending" or "partial" if the paid amount is below the payable.
    fn with_adjusted_status(self) -> Self {
        let payable = self.payable_as_signed();
        let status = match self.status {
            PaymentStatus::Paid if self.paid.is_zero() && !payable.is_zero() => {
                PaymentStatus::Pending
            }
            PaymentStatus::Paid if self.paid < payable => PaymentStatus::Partial,
            status => status,
        };
        Self { status, ..self }
    }

    /// Returns the payable that counts for payments: that of the signed document, else that of the stored one.
    pub fn payable_as_signed(self) -> Amount {
        self.signed_payable.unwrap_or(self.payable)
    }

    /// Returns the amount that is left to pay, at least zero.
    pub fn amount_left(self) -> Amount {
        let left = self.payable_as_signed().minus(self.paid);
        let left = left.unwrap_or_default();
        left.max(Amount::ZERO)
    }

    pub fn is_partial(self) -> bool {
        self.status == PaymentStatus::Partial
    }

    /// Returns the payment after a change, and the posting that the change adds to the ledger.
    pub fn after(self, change: PaymentChange) -> Result<(Self, Posting), Refusal> {
        match change {
            PaymentChange::Pending => Ok(self.post_without_amount(PaymentStatus::Pending)),
            PaymentChange::Rejected => Ok(self.post_without_amount(PaymentStatus::Rejected)),
            PaymentChange::Paid => self.post(PaymentStatus::Paid, self.amount_left()),
            PaymentChange::Partial(amount) => self.post(PaymentStatus::Partial, amount),
        }
    }

    fn post_without_amount(self, status: PaymentStatus) -> (Self, Posting) {
        (
            Self { status, ..self },
            Posting {
                status,
                amount: Amount::ZERO,
            },
        )
    }

    fn post(self, status: PaymentStatus, amount: Amount) -> Result<(Self, Posting), Refusal> {
        match self.paid.plus(amount) {
            // "Paid" adds nothing to an invoice of which more was paid than the authority then signed.
            Some(paid) if amount.is_zero() || paid <= self.payable_as_signed() => Ok((
                Self {
                    status,
                    paid,
                    ..self
                },
                Posting { status, amount },
            )),
            _ => Err(self.excess_refusal(amount, DIGITS_DEFAULT)),
        }
    }

    /// Returns the refusal of a change with its amounts in the digits of the currency.
    pub fn refusal_with_digits(
        self,
        refusal: Refusal,
        change: PaymentChange,
        digits: u32,
    ) -> Refusal {
        match change {
            PaymentChange::Partial(amount)
                if matches!(refusal, Refusal::PaymentExceedsPayable(_)) =>
            {
                self.excess_refusal(amount, digits)
            }
            _ => refusal,
        }
    }

    /// Returns the amount that was recorded as paid by callers: all that is paid, less the part that credit notes set
    /// off.
    pub fn recorded_amount(self, set_off: Amount) -> Amount {
        let recorded = self.paid.minus(set_off);
        recorded.unwrap_or_default().max(Amount::ZERO)
    }

    /// Returns the payment after an amount was taken back (`None`: all that was recorded as paid), and the posting with
    /// the amount below zero. The part that credit notes set off cannot be taken back. `digits` is the number of decimal
    /// digits of the currency, for the message.
    pub fn take_back(
        self,
        amount: Option<Amount>,
        set_off: Amount,
        digits: u32,
    ) -> Result<(Self, Posting), Fault> {
        let recorded = self.recorded_amount(set_off);
        let amount = amount.unwrap_or(recorded);
        let paid = self.paid.minus(amount);
        let taken = Amount::ZERO.minus(amount);
        match paid.zip(taken) {
            Some((paid, taken)) if amount > Amount::ZERO && amount <= recorded => {
                // A sum may be a zero with digits after its point, such as 0.00.
                let paid = if paid.is_zero() { Amount::ZERO } else { paid };
                let status = if paid.is_zero() {
                    PaymentStatus::Pending
                } else {
                    PaymentStatus::Partial
                };
                let posting = Posting {
                    status,
                    amount: taken,
                };
                let payment = Self {
                    status,
                    paid,
                    ..self
                };
                Ok((payment, posting))
            }
            _ => Err(take_back_fault(amount, recorded, set_off, digits)),
        }
    }

    fn excess_refusal(self, amount: Amount, digits: u32) -> Refusal {
        let message = format!(
            "The amount {} is more than the {} left to pay of {}.",
            amount.to_currency_text(digits),
            self.amount_left().to_currency_text(digits),
            self.payable_as_signed().to_currency_text(digits)
        );
        Refusal::PaymentExceedsPayable(Fault::new("amount", "payment_exceeds_payable", message))
    }
}

/// Returns the fault of an amount that is more than the amount that was recorded as paid.
fn take_back_fault(amount: Amount, recorded: Amount, set_off: Amount, digits: u32) -> Fault {
    let message = if recorded.is_zero() {
        "No payment of this invoice is recorded, so there is none to take back.".to_owned()
    } else {
        format!(
            "The amount {} is more than the {} that was recorded as paid.",
            amount.to_currency_text(digits),
            recorded.to_currency_text(digits)
        )
    };
    let message = if set_off.is_zero() {
        message
    } else {
        format!("{message} What credit notes set off cannot be taken back.")
    };
    Fault::new("amount", "exceeds_paid", message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unpaid_payment(payable: i64) -> Payment {
        Payment::from_declared(Amount::from(payable), DeclaredPaymentStatus::Pending).0
    }

    #[test]
    fn a_partial_payment_above_the_payable_amount_is_refused() {
        let (half, _) = unpaid_payment(100)
            .after(PaymentChange::Partial(Amount::from(60)))
            .unwrap();
        assert!(matches!(
            half.after(PaymentChange::Partial(Amount::from(41))),
            Err(Refusal::PaymentExceedsPayable(fault)) if fault.path == "amount"
        ));
    }

    #[test]
    fn a_refusal_shows_money_as_people_write_it() {
        let payable = Amount::parse("2001.5").unwrap();
        let (fresh, _) = Payment::from_declared(payable, DeclaredPaymentStatus::Pending);
        let half = PaymentChange::Partial(Amount::parse("1000.75").unwrap());
        let (part, _) = fresh.after(half).unwrap();
        let above = PaymentChange::Partial(Amount::parse("12345.5").unwrap());
        let too_much = part.after(above).unwrap_err().to_string();
        let too_little = part
            .reprice(Amount::from(1_000), 2)
            .unwrap_err()
            .to_string();
        for (message, expected) in [
            (
                too_much.as_str(),
                "The amount 12,345.50 is more than the 1,000.75 left to pay of 2,001.50.",
            ),
            (
                too_little.as_str(),
                "The lines come to 1,000.00, which is less than the 1,000.75 that was paid already.",
            ),
        ] {
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn a_refusal_has_the_digits_of_the_currency() {
        for (digits, excess, loss) in [
            (
                0,
                "The amount 5,000 is more than the 975 left to pay of 1,075.",
                "The lines come to 99, which is less than the 100 that was paid already.",
            ),
            (
                2,
                "The amount 5,000.00 is more than the 975.00 left to pay of 1,075.00.",
                "The lines come to 99.00, which is less than the 100.00 that was paid already.",
            ),
            (
                3,
                "The amount 5,000.000 is more than the 975.000 left to pay of 1,075.000.",
                "The lines come to 99.000, which is less than the 100.000 that was paid already.",
            ),
        ] {
            let first = PaymentChange::Partial(Amount::from(100));
            let (part, _) = unpaid_payment(1_075).after(first).unwrap();
            let change = PaymentChange::Partial(Amount::from(5_000));
            let refusal = part.after(change).unwrap_err();
            let refusal = part.refusal_with_digits(refusal, change, digits);
            assert_eq!(refusal.to_string(), excess, "{digits}");
            let fault = part.reprice(Amount::from(99), digits).unwrap_err();
            assert_eq!(fault.to_string(), loss, "{digits}");
        }
    }

    #[test]
    fn a_partial_payment_that_reaches_the_total_stays_partial() {
        let (full, _) = unpaid_payment(100)
            .after(PaymentChange::Partial(Amount::from(100)))
            .unwrap();
        assert_eq!(
            (full.status, full.paid),
            (PaymentStatus::Partial, Amount::from(100))
        );
    }

    #[test]
    fn paid_after_partials_posts_the_remainder_once() {
        let (part, _) = unpaid_payment(100)
            .after(PaymentChange::Partial(Amount::from(30)))
            .unwrap();
        let (paid, posting) = part.after(PaymentChange::Paid).unwrap();
        assert_eq!(
            (paid.status, paid.paid, posting.amount),
            (PaymentStatus::Paid, 100.into(), 70.into())
        );
        assert_eq!(
            paid.after(PaymentChange::Paid).unwrap().1.amount,
            Amount::ZERO
        );
    }

    #[test]
    fn a_rejection_keeps_the_paid_amount() {
        let (part, _) = unpaid_payment(100)
            .after(PaymentChange::Partial(Amount::from(30)))
            .unwrap();
        assert_eq!(
            part.after(PaymentChange::Rejected).unwrap().0.paid,
            Amount::from(30)
        );
    }

    #[test]
    fn what_was_recorded_as_paid_can_be_taken_back() {
        use PaymentStatus::{Paid, Partial, Pending, Rejected};
        // The status and the paid amount of an invoice over 100, the part of it that was set off, the amount to take
        // back, then the status and the paid amount after it; `None` if it is refused.
        let cases = [
            (Paid, "100", "0", None, Some((Pending, "0"))),
            (Paid, "100", "0", Some("100.00"), Some((Pending, "0"))),
            (Paid, "100", "0", Some("0.01"), Some((Partial, "99.99"))),
            (Paid, "100", "0", Some("100.01"), None),
            (Paid, "100", "30", None, Some((Partial, "30"))),
            (Paid, "100", "30", Some("70"), Some((Partial, "30"))),
            (Paid, "100", "30", Some("70.01"), None),
            (Paid, "100", "100", None, None),
            (Paid, "120", "0", None, Some((Pending, "0"))),
            (Partial, "30.50", "0", None, Some((Pending, "0"))),
            (Partial, "30.50", "0", Some("0.50"), Some((Partial, "30"))),
            (Pending, "30", "0", None, Some((Pending, "0"))),
            (Rejected, "30", "0", Some("10"), Some((Partial, "20"))),
            (Pending, "0", "0", None, None),
            (Pending, "0", "0", Some("1"), None),
            (Partial, "30", "0", Some("0"), None),
            (Partial, "30", "0", Some("-1"), None),
        ];
        for (status, paid, set_off, amount, expected) in cases {
            let parse = |text: &str| Amount::parse(text).unwrap();
            let before = Payment {
                status,
                paid: parse(paid),
                ..unpaid_payment(100)
            };
            let name = format!("{status} {paid} {set_off} {amount:?}");
            let found = before.take_back(amount.map(parse), parse(set_off), 2);
            let Some((status, paid)) = expected else {
                assert_eq!(found.unwrap_err().rule(), "exceeds_paid", "{name}");
                continue;
            };
            let (after, posting) = found.unwrap();
            assert_eq!((after.status, after.paid), (status, parse(paid)), "{name}");
            assert_eq!(posting.status, status, "{name}");
            assert_eq!(before.paid.plus(posting.amount), Some(after.paid), "{name}");
            let is_plain_zero = after.paid.to_string() == "0";
            assert_eq!(is_plain_zero, after.paid.is_zero(), "{name}");
        }
    }

    #[test]
    fn a_refusal_to_take_back_says_what_was_recorded() {
        let paid = |paid: i64| Payment {
            status: PaymentStatus::Partial,
            paid: paid.into(),
            ..unpaid_payment(5_000)
        };
        for (paid, set_off, expected) in [
            (
                paid(0),
                0,
                "No payment of this invoice is recorded, so there is none to take back.",
            ),
            (
                paid(30),
                30,
                "No payment of this invoice is recorded, so there is none to take back. \
                 What credit notes set off cannot be taken back.",
            ),
            (
                paid(1_500),
                0,
                "The amount 9,000.00 is more than the 1,500.00 that was recorded as paid.",
            ),
            (
                paid(1_500),
                500,
                "The amount 9,000.00 is more than the 1,000.00 that was recorded as paid. \
                 What credit notes set off cannot be taken back.",
            ),
        ] {
            let refused = paid.take_back(Some(9_000.into()), set_off.into(), 2);
            assert_eq!(refused.unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn only_entries_of_credit_notes_are_set_off() {
        for (remark, amount, expected) in [
            (Some("Set off"), 30, 30),
            (Some("Set off: 12 credit notes"), 30, 30),
            (Some("Set off"), -30, 0),
            (Some("Set off by hand"), 30, 0),
            (Some("by bank"), 30, 0),
            (Some("set off"), 30, 0),
            (None, 30, 0),
        ] {
            let entry = LedgerEntry {
                at: Timestamp::UNIX_EPOCH,
                posting: Posting {
                    status: PaymentStatus::Partial,
                    amount: amount.into(),
                },
                payment_date: None,
                reference: None,
                remark: remark.map(str::to_owned),
                actor: None,
            };
            assert_eq!(
                entry.set_off_amount(),
                expected.into(),
                "{remark:?} {amount}"
            );
        }
    }

    #[test]
    fn another_payable_keeps_the_paid_amount() {
        let (part, _) = unpaid_payment(100)
            .after(PaymentChange::Partial(Amount::from(30)))
            .unwrap();
        assert_eq!(
            part.reprice(30.into(), 2).map(|payment| payment.payable),
            Ok(30.into())
        );
        assert_eq!(
            part.reprice(29.into(), 2).unwrap_err().rule(),
            "payment_exceeds_payable"
        );
        let (paid, _) = Payment::from_declared(Amount::from(9), DeclaredPaymentStatus::Paid);
        let status = |payable: i64| {
            paid.reprice(payable.into(), 2)
                .map(|payment| payment.status)
        };
        assert_eq!(
            (status(9), status(10)),
            (Ok(PaymentStatus::Paid), Ok(PaymentStatus::Partial))
        );
        let (free, _) = Payment::from_declared(Amount::ZERO, DeclaredPaymentStatus::Paid);
        assert_eq!(
            free.reprice(1.into(), 2).map(|payment| payment.status),
            Ok(PaymentStatus::Pending)
        );
    }

    #[test]
    fn the_signed_payable_counts() {
        use PaymentStatus::{Paid, Partial, Pending, Rejected};
        // The status and the paid amount of an invoice over 100, the signed payable, then the status, what is left, and
        // what "paid" posts.
        for (status, paid, signed, after, left) in [
            (Pending, 0, 100, Pending, 100),
            (Pending, 0, 80, Pending, 80),
            (Partial, 80, 80, Partial, 0),
            (Partial, 90, 80, Partial, 0),
            (Paid, 100, 80, Paid, 0),
            (Paid, 100, 120, Partial, 20),
            (Rejected, 0, 120, Rejected, 120),
        ] {
            let stored = Payment {
                status,
                paid: paid.into(),
                ..unpaid_payment(100)
            };
            let payment = stored.after_signature(signed.into());
            let name = format!("{status} {paid} of {signed}");
            assert_eq!(payment.status, after, "{name}");
            assert_eq!(payment.payable, 100.into(), "{name}");
            assert_eq!(payment.payable_as_signed(), signed.into(), "{name}");
            assert_eq!(payment.amount_left(), left.into(), "{name}");
            assert_eq!(payment.after_signature(signed.into()), payment, "{name}");
            let (full, posting) = payment.after(PaymentChange::Paid).unwrap();
            assert_eq!(full.status, Paid, "{name}");
            assert_eq!(posting.amount, left.into(), "{name}");
            let above = PaymentChange::Partial(Amount::from(left + 1));
            assert!(payment.after(above).is_err(), "{name}");
        }
    }

    #[test]
    fn an_invoice_declared_paid_posts_its_payable() {
        let (payment, posting) =
            Payment::from_declared(Amount::from(9), DeclaredPaymentStatus::Paid);
        assert_eq!(
            (payment.paid, posting.unwrap().amount),
            (Amount::from(9), Amount::from(9))
        );
        assert_eq!(
            Payment::from_declared(Amount::from(9), DeclaredPaymentStatus::Cancelled)
                .0
                .status,
            PaymentStatus::Rejected
        );
    }

    proptest! {
        #[test]
        fn the_ledger_sums_to_the_paid_amount_and_never_exceeds_the_payable(
            payable in 0_i64..10_000,
            notices in prop::collection::vec((0_u8..4, 1_i64..4_000), 0..40),
        ) {
            let mut payment = unpaid_payment(payable);
            let mut ledger = Vec::new();
            for (kind, amount) in notices {
                let notice = [PaymentChange::Pending, PaymentChange::Rejected, PaymentChange::Paid, PaymentChange::Partial(amount.into())][kind as usize];
                if let Ok((after, posting)) = payment.after(notice) {
                    payment = after;
                    ledger.push(posting.amount);
                }
                prop_assert!(payment.paid <= payment.payable);
                prop_assert_eq!(Amount::sum(ledger.iter().copied()), Some(payment.paid));
            }
        }

        #[test]
        fn payments_and_take_backs_sum_to_the_paid_amount_between_zero_and_the_payable(
            payable in 0_i64..10_000,
            set_off in 0_i64..2_000,
            acts in prop::collection::vec((0_u8..6, 1_i64..4_000), 0..60),
        ) {
            let set_off = Amount::from(set_off.min(payable));
            let first = unpaid_payment(payable).after(PaymentChange::Partial(set_off));
            let (mut payment, posting) = first.unwrap();
            let mut ledger = vec![posting.amount];
            for (kind, amount) in acts {
                let outcome = match kind {
                    0 => payment.after(PaymentChange::Pending).ok(),
                    1 => payment.after(PaymentChange::Rejected).ok(),
                    2 => payment.after(PaymentChange::Paid).ok(),
                    3 => payment.after(PaymentChange::Partial(amount.into())).ok(),
                    4 => payment.take_back(None, set_off, 2).ok(),
                    _ => payment.take_back(Some(amount.into()), set_off, 2).ok(),
                };
                if let Some((after, posting)) = outcome {
                    payment = after;
                    ledger.push(posting.amount);
                }
                prop_assert!(payment.paid >= set_off && payment.paid <= payment.payable);
                prop_assert_eq!(Amount::sum(ledger.iter().copied()), Some(payment.paid));
            }
        }
    }
}
