//! The reference by which a credit note or debit note names the invoice that it corrects, in one spelling for each kind
//! of reference. The column `invoices.corrects` stores it, so that a query finds the notes of an invoice.

use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::ids::InvoiceId;

/// A reference by the number of the invoice begins with this text.
pub const NUMBER_PREFIX: &str = "number:";
/// A reference by the portal id begins with this text. No invoice number or IRN is taken for an id.
pub const ID_PREFIX: &str = "id:";

/// Returns the reference in the spelling that is stored. `None` if the text cannot name an invoice in this way.
pub fn to_stored(kind: UniqueNoType, text: &str) -> Option<String> {
    match kind {
        UniqueNoType::Irn => Irn::parse(text).ok().map(|irn| irn.key()),
        UniqueNoType::PortalId => text.parse().ok().map(by_id),
        UniqueNoType::ExternalInvoiceNo | UniqueNoType::InternalInvoiceNo => Some(by_number(text)),
    }
}

/// Returns all references that name this invoice.
pub fn all_for(irn_key: &str, invoice_no: &str, id: InvoiceId) -> [String; 3] {
    [irn_key.to_owned(), by_number(invoice_no), by_id(id.0)]
}

fn by_number(invoice_no: &str) -> String {
    format!("{NUMBER_PREFIX}{invoice_no}")
}

fn by_id(id: i64) -> String {
    format!("{ID_PREFIX}{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each invoice is named by the reference of its kind alone, although its number, id and IRN look alike.
    #[test]
    fn a_reference_names_an_invoice_by_its_kind() {
        let irn = "42-5A0D0001-20260115";
        let own = all_for(irn, "42", InvoiceId(7));
        let other = all_for("43-5A0D0001-20260115", irn, InvoiceId(42));
        for (kind, text, is_own, is_other) in [
            (UniqueNoType::Irn, irn, true, false),
            (UniqueNoType::Irn, "42-5a0d0001-20260115", true, false),
            (UniqueNoType::Irn, "42", false, false),
            (UniqueNoType::Irn, "id:42", false, false),
            (UniqueNoType::InternalInvoiceNo, "42", true, false),
            (UniqueNoType::ExternalInvoiceNo, irn, false, true),
            (UniqueNoType::ExternalInvoiceNo, "7", false, false),
            (UniqueNoType::PortalId, "7", true, false),
            (UniqueNoType::PortalId, "042", false, true),
            (UniqueNoType::PortalId, "INV7", false, false),
        ] {
            let stored = to_stored(kind, text);
            let names = |all: &[String; 3]| stored.as_ref().is_some_and(|one| all.contains(one));
            assert_eq!(names(&own), is_own, "{kind} {text}");
            assert_eq!(names(&other), is_other, "{kind} {text}");
        }
    }
}
