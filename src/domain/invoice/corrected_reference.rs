//! The reference by which a credit note or debit note names the invoice that it corrects.

use serde_json::{Map, Value};

use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::ids::InvoiceId;

/// The kind of identifier by which a reference names an invoice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferencedBy {
    Irn,
    Number,
    PortalId,
}

/// A reference to an invoice. The same text may name one invoice as a number and another one as a portal id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CorrectedReference {
    pub by: ReferencedBy,
    /// The text that the column `invoices.corrects` stores: an IRN as its key, anything else as it was sent.
    pub text: String,
}

impl CorrectedReference {
    pub fn new(kind: UniqueNoType, text: &str) -> Self {
        match kind {
            UniqueNoType::Irn => Self {
                by: ReferencedBy::Irn,
                text: Irn::parse(text).map_or_else(|_| text.to_owned(), |irn| irn.key()),
            },
            UniqueNoType::PortalId => Self {
                by: ReferencedBy::PortalId,
                text: text.to_owned(),
            },
            UniqueNoType::ExternalInvoiceNo | UniqueNoType::InternalInvoiceNo => Self {
                by: ReferencedBy::Number,
                text: text.to_owned(),
            },
        }
    }

    pub fn by_irn(irn: &Irn) -> Self {
        Self {
            by: ReferencedBy::Irn,
            text: irn.key(),
        }
    }
}

/// Finds the reference to a corrected invoice in the extra fields of a document, as it was sent.
pub(super) fn find_original_ref(extras: &Map<String, Value>) -> Option<InvoiceRef> {
    let standard = extras.get("original_invoice_reference");
    let text = standard.or_else(|| extras.get("billing_reference")?.get(0)?.get("irn"));
    let text = text?.as_str()?;
    let stated = extras.get("original_invoice_reference_type");
    let kind = stated.and_then(Value::as_str).and_then(UniqueNoType::parse);
    Some(InvoiceRef {
        kind: kind.unwrap_or(UniqueNoType::Irn),
        text: text.to_owned(),
    })
}

/// Returns all references that name this invoice.
pub fn references_to_invoice(
    irn_key: &str,
    invoice_no: &str,
    id: InvoiceId,
) -> [CorrectedReference; 3] {
    [
        (ReferencedBy::Irn, irn_key.to_owned()),
        (ReferencedBy::Number, invoice_no.to_owned()),
        (ReferencedBy::PortalId, id.to_string()),
    ]
    .map(|(by, text)| CorrectedReference { by, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each invoice is named by the reference of its kind alone, although its number, id and IRN look alike.
    #[test]
    fn a_reference_names_an_invoice_by_its_kind() {
        let irn = "42-5A0D0001-20260115";
        let own = references_to_invoice(irn, "42", InvoiceId(7));
        let other = references_to_invoice("43-5A0D0001-20260115", irn, InvoiceId(42));
        for (kind, text, is_own, is_other) in [
            (UniqueNoType::Irn, irn, true, false),
            (UniqueNoType::Irn, "42-5a0d0001-20260115", true, false),
            (UniqueNoType::Irn, "42", false, false),
            (UniqueNoType::InternalInvoiceNo, "42", true, false),
            (UniqueNoType::ExternalInvoiceNo, irn, false, true),
            (UniqueNoType::ExternalInvoiceNo, "7", false, false),
            (UniqueNoType::PortalId, "7", true, false),
            (UniqueNoType::PortalId, "42", false, true),
            (UniqueNoType::PortalId, "INV7", false, false),
        ] {
            let reference = CorrectedReference::new(kind, text);
            assert_eq!(own.contains(&reference), is_own, "{kind} {text}");
            assert_eq!(other.contains(&reference), is_other, "{kind} {text}");
        }
    }
}
