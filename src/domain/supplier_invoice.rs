//! An invoice that a supplier sent to one of our taxpayers. Only the IRN, the supplier and the buyer are read from the
//! document.

use jiff::Timestamp;
use serde_json::Value;

use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::TaxpayerId;

/// The longest IRN in characters: 255 for the invoice number, 8 for the service id, 8 for the date, and 2 hyphens.
const IRN_CHARS_MAX: usize = 273;
/// The maximum number of characters that are kept of a name or tax number in a document.
const PARTY_CHARS_MAX: usize = 255;

/// An invoice in a taxpayer's inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupplierInvoice {
    pub taxpayer_id: TaxpayerId,
    /// The IRN in the authority's spelling.
    pub irn: Irn,
    pub supplier_name: Option<String>,
    pub supplier_tin: Option<String>,
    pub received_at: Timestamp,
    /// The time at which the taxpayer acknowledged the invoice through this service.
    pub acknowledged_at: Option<Timestamp>,
}

/// A supplier's invoice as the authority returned it, decrypted, with the fields that the inbox needs.
#[derive(Debug, Clone, PartialEq)]
pub struct SupplierDocument {
    pub irn: Irn,
    pub supplier_name: Option<String>,
    pub supplier_tin: Option<String>,
    /// The tax number of the buyer; `None` if the document has none.
    pub buyer_tin: Option<String>,
    pub document: Value,
}

/// The error for a document that belongs to another invoice than was requested, or that has no IRN.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the authority's document of {asked} is of another invoice or of none")]
pub struct IrnMismatch {
    asked: Irn,
}

impl SupplierDocument {
    /// Parses the document that the authority returned for the IRN `asked`. Fails if the document does not have this
    /// IRN.
    pub fn from_document(asked: &Irn, document: Value) -> Result<Self, IrnMismatch> {
        let named = document
            .get("irn")
            .and_then(Value::as_str)
            .and_then(parse_foreign_irn);
        let irn = named.filter(|irn| irn.key() == asked.key());
        let irn = irn.ok_or_else(|| IrnMismatch {
            asked: asked.clone(),
        })?;
        let supplier = |name: &str| party_text(&document, "accounting_supplier_party", name);
        Ok(Self {
            irn,
            supplier_name: supplier("party_name"),
            supplier_tin: supplier("tin"),
            buyer_tin: buyer_tin(&document),
            document,
        })
    }

    /// Creates the entry for this document in a taxpayer's inbox.
    pub fn to_inbox_entry(&self, taxpayer_id: TaxpayerId, now: Timestamp) -> SupplierInvoice {
        SupplierInvoice {
            taxpayer_id,
            irn: self.irn.clone(),
            supplier_name: self.supplier_name.clone(),
            supplier_tin: self.supplier_tin.clone(),
            received_at: now,
            acknowledged_at: None,
        }
    }
}

pub fn buyer_tin(document: &Value) -> Option<String> {
    party_text(document, "accounting_customer_party", "tin")
}

/// Returns a text or a number of a document as text; an empty text for any other value.
pub fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

/// Parses an IRN that another system sent; `None` if it is malformed or too long to store.
pub fn parse_foreign_irn(text: &str) -> Option<Irn> {
    let fits = text.chars().count() <= IRN_CHARS_MAX;
    fits.then(|| Irn::parse(text).ok())?
}

/// Returns a text field of a party, trimmed and cut to `PARTY_CHARS_MAX`; `None` if it is blank or absent.
fn party_text(document: &Value, party: &str, name: &str) -> Option<String> {
    let sent = document.get(party)?.get(name)?.as_str()?;
    let line: String = sent
        .chars()
        .filter(|letter| !letter.is_control())
        .take(PARTY_CHARS_MAX)
        .collect();
    let line = line.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn irn(text: &str) -> Irn {
        Irn::parse(text).unwrap()
    }

    fn document() -> Value {
        json!({
            "irn": "SUP1-5A0D0001-20260115",
            "accounting_supplier_party": { "party_name": " Supplier\u{0} Ltd ", "tin": "1-2" },
            "accounting_customer_party": { "tin": "12345678-0001" },
        })
    }

    #[test]
    fn a_document_names_its_sender_and_recipient() {
        let read =
            SupplierDocument::from_document(&irn("SUP1-5a0d0001-20260115"), document()).unwrap();
        assert_eq!(
            read.irn.as_str(),
            "SUP1-5A0D0001-20260115",
            "the authority's spelling"
        );
        assert_eq!(read.supplier_name.as_deref(), Some("Supplier Ltd"));
        assert_eq!(read.supplier_tin.as_deref(), Some("1-2"));
        assert_eq!(read.buyer_tin.as_deref(), Some("12345678-0001"));
    }

    #[test]
    fn a_document_of_another_invoice_or_of_none_is_refused() {
        assert!(
            SupplierDocument::from_document(&irn("SUP2-5A0D0001-20260115"), document()).is_err()
        );
        for odd in [json!({}), json!({ "irn": 7 }), json!({ "irn": "odd" })] {
            assert!(SupplierDocument::from_document(&irn("SUP1-5A0D0001-20260115"), odd).is_err());
        }
    }

    #[test]
    fn parties_that_are_missing_or_odd_are_none() {
        for party in [
            json!(null),
            json!("text"),
            json!({ "tin": " " }),
            json!({ "tin": 12 }),
        ] {
            let document =
                json!({ "irn": "A-5A0D0001-20260115", "accounting_customer_party": party });
            assert_eq!(buyer_tin(&document), None);
        }
    }

    #[test]
    fn an_irn_that_is_too_long_to_keep_is_none() {
        assert!(parse_foreign_irn(&format!("{}-5A0D0001-20260115", "A".repeat(255))).is_some());
        assert!(parse_foreign_irn(&format!("{}-5A0D0001-20260115", "A".repeat(256))).is_none());
    }
}
