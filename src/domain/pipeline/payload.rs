//! The payload of a run: the content that the run sends to the authority. The table of runs stores it as JSON, together
//! with the IRN.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::digest;
use crate::domain::payment::RelayedPayment;
use crate::domain::pipeline::Operation;
use crate::domain::pipeline::authority_document::AuthorityDocument;
use crate::domain::pipeline::vat_report::VatReport;

/// The payload of a run, by its operation.
#[derive(Debug, Clone, PartialEq)]
pub enum RunPayload {
    Submit(Box<AuthorityDocument>),
    /// Only the IRN is sent, because the authority already has the document.
    Transmit,
    Report(Box<VatReport>),
    Payment(RelayedPayment),
}

/// A document that consists of the IRN and the fields of `part`.
#[derive(Serialize)]
struct DocumentWithIrn<'a, T> {
    irn: &'a str,
    #[serde(flatten)]
    part: &'a T,
}

impl RunPayload {
    /// Reads the payload from the stored document of a run.
    pub fn from_document(operation: Operation, document: Value) -> Result<Self, serde_json::Error> {
        Ok(match operation {
            Operation::Submit => Self::Submit(Box::new(AuthorityDocument::from_json(document))),
            Operation::Transmit => Self::Transmit,
            Operation::Report => Self::Report(Box::new(VatReport::deserialize(document)?)),
            Operation::Payment => Self::Payment(RelayedPayment::deserialize(document)?),
        })
    }

    pub fn operation(&self) -> Operation {
        match self {
            Self::Submit(_) => Operation::Submit,
            Self::Transmit => Operation::Transmit,
            Self::Report(_) => Operation::Report,
            Self::Payment(_) => Operation::Payment,
        }
    }

    /// Returns the document that is sent and stored for this IRN.
    pub fn document(&self, irn: &Irn) -> Value {
        let irn = irn.as_str();
        match self {
            Self::Submit(document) => document.as_json().clone(),
            Self::Transmit => json!({ "irn": irn }),
            Self::Report(part) => json!(DocumentWithIrn { irn, part }),
            Self::Payment(part) => json!(DocumentWithIrn { irn, part }),
        }
    }

    /// Returns the SHA-256 of the document, in hexadecimal. The spelling of a number, such as `5` or `5.00`, does not
    /// change the digest.
    pub fn digest(&self, irn: &Irn) -> String {
        match self {
            Self::Submit(document) => digest::document_digest(document.as_json()),
            Self::Report(report) => digest::document_digest(&json!(DocumentWithIrn {
                irn: irn.as_str(),
                part: &report.with_canonical_numbers()
            })),
            Self::Transmit | Self::Payment(_) => digest::document_digest(&self.document(irn)),
        }
    }

    /// Replaces the IRN in the payload by another spelling of the same IRN.
    #[must_use]
    pub fn with_irn_spelling(self, irn: &Irn) -> Self {
        match self {
            Self::Submit(document) => Self::Submit(Box::new(document.with_irn_spelling(irn))),
            other => other,
        }
    }

    /// Returns the payload of a submission; `None` for any other operation.
    pub fn submission(&self) -> Option<&AuthorityDocument> {
        if let Self::Submit(document) = self {
            Some(document)
        } else {
            None
        }
    }

    /// Returns the payload of a payment update; `None` for any other operation.
    pub fn payment(&self) -> Option<&RelayedPayment> {
        if let Self::Payment(payment) = self {
            Some(payment)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::codes::RelayedPaymentStatus;

    #[test]
    fn a_stored_document_gives_the_payload_and_the_digest_back() {
        let irn: Irn = "INV001-94AD90FB-20261121".parse().unwrap();
        let report = json!({
            "irn": irn, "agent_tin": "1", "beneficiary_tin": "2", "currency": "NGN", "item_description": "Rice",
            "transaction_date": "2026-11-21", "integrator_service_id": "94AD90FB", "vat_status": "ZERO_VAT",
            "base_amount": "100", "vat_rate": "7.5", "vat_calculated": "7.50", "total_amount": "107.50",
        });
        let payment = RelayedPayment {
            payment_status: RelayedPaymentStatus::Paid,
            remark: None,
        };
        for (operation, document) in [
            (
                Operation::Submit,
                json!({ "irn": irn, "note": "x", "amount": 1 }),
            ),
            (Operation::Transmit, json!({ "irn": irn })),
            (Operation::Report, report),
            (
                Operation::Payment,
                json!({ "irn": irn, "payment_status": "PAID", "remark": null }),
            ),
        ] {
            let payload = RunPayload::from_document(operation, document.clone()).unwrap();
            assert_eq!(
                (payload.operation(), payload.document(&irn)),
                (operation, document)
            );
            let again = RunPayload::from_document(operation, payload.document(&irn)).unwrap();
            assert_eq!(again.digest(&irn), payload.digest(&irn));
            assert_eq!(
                payload.payment(),
                (operation == Operation::Payment).then_some(&payment)
            );
        }
        assert!(RunPayload::from_document(Operation::Payment, json!({ "irn": irn })).is_err());
    }
}
