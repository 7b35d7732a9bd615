//! The documents of a correction and its amounts, as a table of a page and in words.

use crate::console::accounts::invoice_sums::amount_in_total;
use crate::domain::correction::record::{Correction, DocumentPurpose, PlannedDocument};
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

/// The documents of a correction and its amounts, as pages show them.
pub(super) struct PlanTable {
    pub(super) documents: Vec<DocumentLine>,
    pub(super) currency: String,
    pub(super) payable_before: Amount,
    pub(super) payable_after: Amount,
    pub(super) paid: Amount,
    /// The amount that is still to be paid or, if `is_refund`, to be paid back.
    pub(super) balance: Amount,
    pub(super) is_refund: bool,
}

pub(super) struct DocumentLine {
    /// The payable of a credit note is below zero.
    pub(super) document: PlannedDocument,
    pub(super) name: &'static str,
}

impl PlanTable {
    pub(super) fn new(correction: &Correction, catalog: &Catalog) -> Self {
        let digits = catalog.currency_digits(&correction.currency);
        let with_digits = |amount: Amount| amount.with_digits(digits);
        let balance = correction.amount_left_to_pay();
        let is_refund = balance.is_negative();
        let documents = correction.documents.iter().map(|document| DocumentLine {
            name: match document.kind {
                DocumentPurpose::CreditNote if correction.is_whole => "Credit note, in full",
                DocumentPurpose::CreditNote => "Credit note, for a part",
                DocumentPurpose::Replacement => "Replacement",
            },
            document: PlannedDocument {
                payable: amount_in_total(
                    with_digits(document.payable),
                    document.kind == DocumentPurpose::CreditNote,
                ),
                ..document.clone()
            },
        });
        Self {
            documents: documents.collect(),
            currency: correction.currency.clone(),
            payable_before: with_digits(correction.before),
            payable_after: with_digits(correction.after),
            paid: with_digits(correction.paid),
            balance: with_digits(balance.abs()),
            is_refund,
        }
    }
}

/// Returns the documents of a plan in words. Two plans with the same words credit and invoice the same amounts.
pub(super) fn plan_fingerprint(correction: &Correction) -> String {
    let documents = correction.documents.iter();
    let words = documents.map(|document| format!("; {} {}", document.kind, document.payable));
    let words: String = words.collect();
    format!("{} {}{words}", correction.currency, correction.before)
}
