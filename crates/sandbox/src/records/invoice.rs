//! A signed invoice and its state transitions.
//!
//! The document never changes after the signature. A transition that is not allowed changes nothing and returns the
//! reason in the authority's words.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;
use serde::Serialize;
use serde_json::{Value, json};

use super::Ledger;
use crate::clock;
use crate::route::Operation;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaymentStatus {
    Pending,
    Partial,
    Paid,
    Rejected,
}

impl PaymentStatus {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "PENDING" => Self::Pending,
            "PARTIAL" => Self::Partial,
            "PAID" => Self::Paid,
            "REJECTED" => Self::Rejected,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Partial => "PARTIAL",
            Self::Paid => "PAID",
            Self::Rejected => "REJECTED",
        }
    }
}

/// The stage of an invoice on its way from the supplier to the customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransitStage {
    Signed,
    Transmitted,
    Delivered,
}

impl TransitStage {
    /// Returns the name that the search filter `entry_status` uses for this state.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Signed => "SIGNED",
            Self::Transmitted => "TRANSMITTED",
            Self::Delivered => "DELIVERED",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Invoice {
    pub(crate) irn: String,
    pub(crate) business_id: String,
    /// The signed document, as compact JSON.
    pub(crate) document: String,
    pub(crate) type_code: String,
    pub(crate) issue_date: String,
    pub(crate) due_date: Option<String>,
    pub(crate) supplier_tin: String,
    pub(crate) customer_tin: Option<String>,
    pub(crate) signed_at: Timestamp,
    pub(crate) payment: PaymentStatus,
    pub(crate) payment_reference: Option<String>,
    pub(crate) transit: TransitStage,
    pub(crate) sign_count: u32,
    pub(crate) transmit_count: u32,
}

impl Invoice {
    pub(crate) fn signature_day(&self, zone: Offset) -> Date {
        clock::day(self.signed_at, zone)
    }

    /// Changes the payment status. PAID is final, PENDING is only an initial state, and PARTIAL needs a reference.
    pub(crate) fn set_payment(
        &mut self,
        status: PaymentStatus,
        reference: Option<&str>,
    ) -> Result<(), &'static str> {
        match (self.payment, status, reference) {
            (_, PaymentStatus::Pending, _) => Err("payment status cannot be set to PENDING"),
            (PaymentStatus::Paid, _, _) => {
                Err("payment status is already PAID and cannot be changed")
            }
            (_, PaymentStatus::Partial, None) => Err("reference is required for a PARTIAL payment"),
            _ => {
                self.payment = status;
                self.payment_reference = reference.map(str::to_owned);
                Ok(())
            }
        }
    }

    pub(crate) fn transmit(&mut self) -> Result<(), &'static str> {
        if self.transit != TransitStage::Signed {
            return Err("invoice already transmitted");
        }
        self.transit = TransitStage::Transmitted;
        self.transmit_count += 1;
        Ok(())
    }

    pub(crate) fn acknowledge(&mut self) -> Result<(), &'static str> {
        match self.transit {
            TransitStage::Signed => Err("invoice has not been transmitted"),
            TransitStage::Delivered => Err("invoice transmission already acknowledged"),
            TransitStage::Transmitted => {
                self.transit = TransitStage::Delivered;
                Ok(())
            }
        }
    }

    pub(crate) fn is_transmitted(&self) -> bool {
        self.transit != TransitStage::Signed
    }

    pub(crate) fn is_delivered(&self) -> bool {
        self.transit == TransitStage::Delivered
    }

    /// Returns the data that the operation `confirm` answers with. The day of the signature is one of `zone`.
    pub(crate) fn confirmation(&self, zone: Offset) -> Value {
        json!({
            "issue_date": self.issue_date,
            "due_date": self.due_date,
            "sync_date": self.signature_day(zone).to_string(),
            "payment_status": self.payment.name(),
            "transmitted": self.is_transmitted(),
            "delivered": self.is_delivered(),
        })
    }

    /// Returns the entry of this invoice in the results of a search.
    pub(crate) fn summary(&self, zone: Offset) -> Value {
        let mut row = self.confirmation(zone);
        row["irn"] = json!(self.irn);
        row["business_id"] = json!(self.business_id);
        row["invoice_type_code"] = json!(self.type_code);
        row["entry_status"] = json!(self.transit.name());
        row["payment_reference"] = json!(self.payment_reference);
        row
    }
}

/// The record of one IRN, as `GET /sandbox/invoices/{irn}` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InvoiceSheet {
    pub irn: String,
    pub signed: bool,
    /// The number of successful signatures; never more than 1.
    pub sign_count: u32,
    /// The number of calls of `sign`, successful or not.
    pub sign_attempts: u32,
    pub transmitted: bool,
    pub delivered: bool,
    /// The number of successful transmissions; never more than 1.
    pub transmit_count: u32,
    pub transmit_attempts: u32,
    pub acknowledge_attempts: u32,
    pub confirm_attempts: u32,
    /// The number of accepted reports for this IRN. A report that is equal to the one before it is not counted.
    pub report_count: u32,
    pub report_attempts: u32,
    pub update_attempts: u32,
    pub payment_status: Option<&'static str>,
    pub payment_reference: Option<String>,
}

impl InvoiceSheet {
    pub(crate) fn from_ledger(irn: &str, ledger: &Ledger) -> Self {
        let invoice = ledger.invoice(irn);
        let attempts = |operation: Operation| ledger.tally.attempts(operation, irn);
        Self {
            irn: irn.to_owned(),
            signed: invoice.is_some(),
            sign_count: invoice.map_or(0, |found| found.sign_count),
            sign_attempts: attempts(Operation::Sign),
            transmitted: invoice.is_some_and(Invoice::is_transmitted),
            delivered: invoice.is_some_and(Invoice::is_delivered),
            transmit_count: invoice.map_or(0, |found| found.transmit_count),
            transmit_attempts: attempts(Operation::Transmit),
            acknowledge_attempts: attempts(Operation::Acknowledge),
            confirm_attempts: attempts(Operation::Confirm),
            report_count: ledger.report_count(irn),
            report_attempts: attempts(Operation::Report),
            update_attempts: attempts(Operation::Update),
            payment_status: invoice.map(|found| found.payment.name()),
            payment_reference: invoice.and_then(|found| found.payment_reference.clone()),
        }
    }
}
