//! An invoice as it was after an event, and the fields that the event changed.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::events::event::EventKind;
use crate::domain::invoice::history::{ChangedField, HistoryEntry};
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::ids::TaxpayerId;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvoiceVersion<'a> {
    taxpayer_id: TaxpayerId,
    /// The sequence number of the event after which the invoice looked like this. `at` is the time of that event,
    /// `event` its type.
    sequence: i64,
    at: String,
    event: EventKind,
    /// The Invoice object, with the paid and the payable amount since the last payment, if there was one.
    #[schema(value_type = Object)]
    invoice: &'a Value,
    /// The fields that the event changed; empty for the first event.
    changes: Vec<FieldChange<'a>>,
    /// The sequence number of the invoice's previous event; `later` is that of the next one. Null if there is none.
    earlier: Option<i64>,
    later: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct FieldChange<'a> {
    field: &'a str,
    /// The value before the event, as JSON text; null if the field did not exist. `after` is the value after the event.
    before: Option<&'a str>,
    after: Option<&'a str>,
}

impl<'a> InvoiceVersion<'a> {
    pub(crate) fn new(taxpayer_id: TaxpayerId, entry: &'a HistoryEntry) -> Self {
        let version = &entry.version;
        Self {
            taxpayer_id,
            sequence: version.sequence,
            at: precise_time(version.at),
            event: version.kind,
            invoice: &version.invoice,
            changes: entry.changes.iter().map(FieldChange::from).collect(),
            earlier: entry.earlier_sequence,
            later: entry.later_sequence,
        }
    }
}

impl<'a> From<&'a ChangedField> for FieldChange<'a> {
    fn from(change: &'a ChangedField) -> Self {
        let ChangedField {
            field,
            before,
            after,
        } = change;
        Self {
            field,
            before: before.as_deref(),
            after: after.as_deref(),
        }
    }
}
