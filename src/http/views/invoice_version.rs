//! An invoice as it was after an event, with what the event changed.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::events::event::EventKind;
use crate::domain::invoice::history::{Change, Moment};
use crate::domain::invoice::invoice_view::precise;
use crate::domain::kernel::ids::TaxpayerId;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvoiceVersion<'a> {
    taxpayer_id: TaxpayerId,
    /// The sequence, time and type of the event that left the invoice like this.
    sequence: i64,
    at: String,
    event: EventKind,
    /// The Invoice object, with the amounts of the last payment.
    #[schema(value_type = Object)]
    invoice: &'a Value,
    /// What the event changed; empty for the first event.
    changes: Vec<FieldChange<'a>>,
    /// The sequences of the invoice's events before and after this one.
    earlier: Option<i64>,
    later: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct FieldChange<'a> {
    field: &'a str,
    /// JSON text; null if the field was not there.
    before: Option<&'a str>,
    after: Option<&'a str>,
}

impl<'a> InvoiceVersion<'a> {
    pub(crate) fn new(taxpayer_id: TaxpayerId, moment: &'a Moment) -> Self {
        let version = &moment.version;
        Self {
            taxpayer_id,
            sequence: version.sequence,
            at: precise(version.at),
            event: version.kind,
            invoice: &version.invoice,
            changes: moment.changes.iter().map(FieldChange::from).collect(),
            earlier: moment.earlier,
            later: moment.later,
        }
    }
}

impl<'a> From<&'a Change> for FieldChange<'a> {
    fn from(change: &'a Change) -> Self {
        let Change { field, before, after } = change;
        Self { field, before: before.as_deref(), after: after.as_deref() }
    }
}
