//! The parts of a UBL file that no field of its invoice carries. They are kept beside the invoice and go back into its
//! UBL.

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
    pub fn split_by_room(document: &TradeDocument, parts: Vec<Beside>) -> (Self, Vec<Beside>) {
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
        let fit = Fit::new(&self, document);
        let parts = self.parts.into_iter();
        parts.filter(|part| fit.holds(part)).collect()
    }
}

/// The reasons for which parts may fit a document.
struct Fit {
    has_lines: bool,
    has_taxes: bool,
    names_corrected: bool,
}

impl Fit {
    fn new(kept: &UblParts, document: &TradeDocument) -> Self {
        let has_lines = kept.lines == lines(document);
        let mut references = document.references.iter();
        Self {
            has_lines,
            has_taxes: has_lines && kept.taxes == taxes(document),
            names_corrected: references.any(|one| one.kind == ReferenceKind::Preceding),
        }
    }

    fn holds(&self, part: &Beside) -> bool {
        let child = part.root_child();
        if part.is_root_child() && child == "cac:BillingReference" {
            return !self.names_corrected;
        }
        if ABOUT_TAXES.contains(&child) || part.path.contains(TAX_OF_LINE) {
            return self.has_taxes;
        }
        if ABOUT_LINES.contains(&child) {
            return self.has_lines;
        }
        !(part.path.ends_with(SUPPLIER) && part.value.starts_with(TAX_NUMBER))
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
