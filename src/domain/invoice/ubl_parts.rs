//! What a UBL file says of an invoice and no field of it carries. It is kept beside the invoice and goes back into the
//! UBL of the invoice.

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use trade_document::{ReferenceKind, TradeDocument};
use ubl::Beside;

/// The size of the parts that are kept of one invoice, in bytes. An embedded file may be larger.
pub const BYTES_MAX: usize = 256 * 1024;
/// The children of a UBL document that only fit its lines and its taxes.
const ABOUT_LINES: [&str; 2] = ["cac:InvoiceLine", "cac:CreditNoteLine"];
const ABOUT_TAXES: [&str; 7] = [
    "cac:AllowanceCharge",
    "cac:LegalMonetaryTotal",
    "cac:PrepaidPayment",
    "cac:TaxExchangeRate",
    "cac:TaxTotal",
    "cac:WithholdingTaxTotal",
    "cbc:TaxCurrencyCode",
];
const TAX_OF_LINE: &str = "/cac:ClassifiedTaxCategory";
const SUPPLIER: &str = "/cac:AccountingSupplierParty/cac:Party";
const TAX_NUMBER: &str = "<cac:PartyTaxScheme>";

/// The parts, with the money of the document that they were read with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UblParts {
    parts: Vec<Beside>,
    /// The amount of each line.
    lines: Vec<String>,
    /// The category and the amount of each tax.
    taxes: Vec<String>,
}

impl UblParts {
    /// Keeps parts of a document as far as there is room, and returns the others too.
    pub fn keep(document: &TradeDocument, parts: Vec<Beside>) -> (Self, Vec<Beside>) {
        let mut room = BYTES_MAX;
        let (parts, others) = parts.into_iter().partition(|part| {
            let rest = room.checked_sub(part.path.len() + part.value.len());
            room = rest.unwrap_or(room);
            rest.is_some()
        });
        let kept = Self {
            parts,
            lines: lines(document),
            taxes: taxes(document),
        };
        (kept, others)
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the parts that go into the UBL of the document. If its lines have other amounts by now, the parts of lines
    /// and of taxes may belong to none of them. The invoice that it corrects is named once, and the taxpayer has its own
    /// tax number.
    pub fn fitting(self, document: &TradeDocument) -> Vec<Beside> {
        let has_lines = self.lines == lines(document);
        let has_taxes = has_lines && self.taxes == taxes(document);
        let mut references = document.references.iter();
        let corrects = references.any(|one| one.kind == ReferenceKind::Preceding);
        let fits = |part: &Beside| {
            let child = part.root_child();
            let is_about_tax = ABOUT_TAXES.contains(&child) || part.path.contains(TAX_OF_LINE);
            let is_tax_number = part.path.ends_with(SUPPLIER) && part.value.starts_with(TAX_NUMBER);
            let is_corrected = part.is_root_child() && child == "cac:BillingReference";
            let reasons_against = [
                !has_lines && ABOUT_LINES.contains(&child),
                !has_taxes && is_about_tax,
                is_tax_number,
                corrects && is_corrected,
            ];
            !reasons_against.contains(&true)
        };
        self.parts.into_iter().filter(fits).collect()
    }
}

fn lines(document: &TradeDocument) -> Vec<String> {
    let lines = document.lines.iter();
    lines.map(|line| digits(line.amount)).collect()
}

fn taxes(document: &TradeDocument) -> Vec<String> {
    let taxes = document.taxes.iter();
    let texts = taxes.map(|one| format!("{} {}", one.tax.category.code, digits(one.amount)));
    texts.collect()
}

fn digits(amount: Decimal) -> String {
    amount.normalize().to_string()
}
