//! The parts of a UBL document that no field of its invoice holds. They are stored beside the invoice and put back into
//! its UBL.

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use trade_document::{ReferenceKind, TradeDocument};
use ubl::UnmappedPart;

/// The maximum total size of the parts that are kept for one invoice, in bytes. Larger parts, such as embedded files,
/// are dropped.
pub const BYTES_MAX: usize = 256 * 1024;
/// The children of a UBL document whose parts fit only as long as the amounts of its lines do not change. `ABOUT_TAXES`
/// fit only as long as its taxes do not change either.
const ABOUT_LINES: [&str; 2] = ["cac:InvoiceLine", "cac:CreditNoteLine"];
const ABOUT_TAXES: [&str; 6] = [
    "cac:AllowanceCharge",
    "cac:LegalMonetaryTotal",
    "cac:PrepaidPayment",
    "cac:TaxExchangeRate",
    "cac:TaxTotal",
    "cac:WithholdingTaxTotal",
];
const TAX_OF_LINE: &str = "/cac:ClassifiedTaxCategory";
const SUPPLIER: &str = "/cac:AccountingSupplierParty/cac:Party";
const TAX_NUMBER: &str = "<cac:PartyTaxScheme>";

/// The parts, with the amounts of the document from which they were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UblParts {
    parts: Vec<UnmappedPart>,
    /// The amount of each line.
    lines: Vec<String>,
    /// The category and the amount of each tax.
    taxes: Vec<String>,
}

impl UblParts {
    /// Keeps parts of a document as long as there is room. Also returns the parts for which there is no room.
    pub fn split_by_room(
        document: &TradeDocument,
        parts: Vec<UnmappedPart>,
    ) -> (Self, Vec<UnmappedPart>) {
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

    /// Returns the parts that still fit the document. If its amounts have changed since the import, parts of lines and
    /// of taxes are left out, because they may belong to none of the present ones. Also left out are a second reference
    /// to the corrected invoice, and the tax number of the supplier, because the taxpayer's own is used.
    pub fn fitting_parts(self, document: &TradeDocument) -> Vec<UnmappedPart> {
        let fit = PartsFit::new(&self, document);
        let parts = self.parts.into_iter();
        parts.filter(|part| fit.holds(part)).collect()
    }
}

/// Returns a warning if this UBL does not state the currency of the tax, because EN 16931 demands the tax in it then
/// (BR-53), and only a file that was imported may have it.
pub fn tax_currency_warning(tax_currency: Option<&str>, ubl: &str) -> Option<String> {
    let currency = tax_currency.filter(|_| !ubl.contains("<cbc:TaxCurrencyCode"))?;
    Some(format!(
        "tax_currency_code is {currency}: the UBL would need the tax in {currency} beside its TaxCurrencyCode (BR-53 of \
         EN 16931), so an AdditionalDocumentReference has the code, and an import reads it there"
    ))
}

/// The facts about a document that decide which parts fit it.
struct PartsFit {
    has_lines: bool,
    has_taxes: bool,
    names_corrected: bool,
}

impl PartsFit {
    fn new(kept: &UblParts, document: &TradeDocument) -> Self {
        let has_lines = kept.lines == lines(document);
        let mut references = document.references.iter();
        Self {
            has_lines,
            has_taxes: has_lines && kept.taxes == taxes(document),
            names_corrected: references.any(|one| one.kind == ReferenceKind::Preceding),
        }
    }

    fn holds(&self, part: &UnmappedPart) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tax_currency_that_the_ubl_does_not_state_is_told() {
        let stating = "<cbc:TaxCurrencyCode>USD</cbc:TaxCurrencyCode>";
        for (currency, ubl, is_told) in [
            (None, "", false),
            (Some("USD"), "", true),
            (Some("USD"), stating, false),
        ] {
            let told = tax_currency_warning(currency, ubl);
            assert_eq!(told.is_some(), is_told, "{currency:?} {ubl}: {told:?}");
        }
    }
}
