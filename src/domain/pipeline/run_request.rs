//! A request for a run, before it is known whether the request opens a run, joins an existing run or
//! replaces the document of one.

use crate::domain::invoice::irn::Irn;
use crate::domain::pipeline::{Operation, RunPayload};

/// A request for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRequest {
    pub irn: Irn,
    pub payload: RunPayload,
}

impl RunRequest {
    pub fn operation(&self) -> Operation {
        self.payload.operation()
    }

    pub fn digest(&self) -> String {
        self.payload.digest(&self.irn)
    }

    /// Replaces the IRN by another spelling of the same IRN, in the request and in its document.
    #[must_use]
    pub fn with_irn_spelling(self, irn: Irn) -> Self {
        Self {
            payload: self.payload.with_irn_spelling(&irn),
            irn,
        }
    }
}

#[cfg(test)]
impl RunRequest {
    pub fn sample(irn: &str, operation: Operation) -> Self {
        let document = serde_json::json!({
            "irn": irn, "payment_status": "PAID", "agent_tin": "1", "beneficiary_tin": "2", "currency": "NGN",
            "item_description": "Rice", "transaction_date": "2026-11-21", "integrator_service_id": "94AD90FB",
            "vat_status": "ZERO_VAT", "base_amount": "100", "vat_rate": "7.5", "vat_calculated": "7.50",
            "total_amount": "107.50",
        });
        let payload = RunPayload::from_document(operation, document).unwrap();
        Self {
            irn: irn.parse().unwrap(),
            payload,
        }
    }
}
