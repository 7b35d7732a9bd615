//! An invoice to which new credit notes refer, and the amount that its other credit notes leave. A credit note over
//! more than this amount is stored, because the invoice may have changed outside of this service, but its sender is
//! warned.

use std::collections::HashMap;

use crate::domain::invoice::Draft;
use crate::domain::invoice::corrected_reference::CorrectedReference;
use crate::domain::money::Amount;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreditedInvoice {
    /// All references that name the invoice.
    pub references: [CorrectedReference; 3],
    pub invoice_no: String,
    pub currency: String,
    /// The amount of the invoice: that of the signed document, if there is one.
    pub payable: Amount,
    /// The amounts of the credit notes in the currency of the invoice, by number. Those that are not signed yet are
    /// among them, because they may still be signed.
    pub credits: HashMap<String, Amount>,
}

impl CreditedInvoice {
    /// Adds a credit note. Returns a warning if its amount is more than the other credit notes leave. Adds nothing if
    /// there already is a credit note with this number, because the draft is then not stored. `digits` is the number of
    /// decimal digits of the currency.
    pub fn add_credit_note(&mut self, draft: &Draft, digits: u32) -> Option<String> {
        if draft.currency != self.currency {
            return None;
        }
        let number = &draft.invoice_no;
        let others = self.credits.iter().filter(|(other, _)| *other != number);
        let credited = Amount::sum(others.map(|(_, amount)| *amount))?;
        let left = self.payable.minus(credited)?.max(Amount::ZERO);
        self.credits.entry(number.clone()).or_insert(draft.payable);
        (draft.payable > left).then(|| {
            format!(
                "the credit note comes to {currency} {amount}, but the other credit notes of the invoice {invoice_no}, signed or not, leave only {currency} {left}",
                currency = self.currency,
                amount = draft.payable.to_currency_text(digits),
                left = left.to_currency_text(digits),
                invoice_no = self.invoice_no,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::correction::testing::{amount, draft};
    use crate::domain::invoice::Line;
    use crate::domain::invoice::corrected_reference::references_to_invoice;
    use crate::domain::kernel::ids::InvoiceId;

    fn credit_note(number: &str, payable: &str, currency: &str) -> Draft {
        Draft {
            invoice_no: number.to_owned(),
            payable: amount(payable),
            currency: currency.to_owned(),
            ..draft(vec![Line::sample()])
        }
    }

    /// The credit notes that an invoice over NGN 100 has, then new ones with their currencies, each with the amount that
    /// its warning says is left; empty if there is none.
    type Case<'a> = (
        &'a [(&'a str, &'a str)],
        &'a [(&'a str, &'a str, &'a str, &'a str)],
    );

    #[test]
    fn a_credit_note_over_more_than_is_left_is_warned_of() {
        let cases: [Case<'_>; 7] = [
            (
                &[],
                &[("C1", "100", "NGN", ""), ("C2", "0.01", "NGN", "0.00")],
            ),
            (&[], &[("C1", "100.01", "NGN", "100.00")]),
            (&[("C1", "30")], &[("C2", "70", "NGN", "")]),
            (&[("C1", "30")], &[("C2", "70.01", "NGN", "70.00")]),
            (&[("C1", "130")], &[("C2", "5", "NGN", "0.00")]),
            (&[("C1", "100")], &[("C1", "100", "NGN", "")]),
            (&[("C1", "100")], &[("C2", "100", "USD", "")]),
        ];
        for (stored, drafts) in cases {
            let stored = stored.iter();
            let credits = stored.map(|(number, text)| ((*number).to_owned(), amount(text)));
            let mut invoice = CreditedInvoice {
                references: references_to_invoice("K1", "INV1", InvoiceId(1)),
                invoice_no: "INV1".to_owned(),
                currency: "NGN".to_owned(),
                payable: amount("100"),
                credits: credits.collect(),
            };
            for (number, payable, currency, left) in drafts {
                let draft = credit_note(number, payable, currency);
                let warning = invoice.add_credit_note(&draft, 2).unwrap_or_default();
                let name = format!("{number} {payable}: {warning}");
                assert_eq!(warning.is_empty(), left.is_empty(), "{name}");
                let payable = amount(payable).to_currency_text(2);
                let numbers = [format!("NGN {payable},"), format!("leave only NGN {left}")];
                let has_both = numbers.iter().all(|number| warning.contains(number));
                assert!(left.is_empty() || has_both, "{name}");
            }
        }
    }
}
