//! The states of an invoice after each of its events. Each event contains the invoice as it was after the event, and an
//! event of a payment also contains the amounts. So no state has to be computed again.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::domain::events::event::{Event, EventKind};

/// The names of the amounts in the events of payments. Later versions of the invoice keep these amounts until the next
/// payment, but the payable is unknown after an event that may have changed it.
const AMOUNT_FIELDS: [&str; 2] = ["amount_paid", PAYABLE_FIELD];
const PAYABLE_FIELD: &str = "payable_amount";
/// The member that the event of a submission has if another document was signed than is stored.
const DIFFERENCES_FIELD: &str = "differences";

/// An invoice as it was after an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceAfterEvent {
    /// The sequence of the event.
    pub sequence: i64,
    pub at: Timestamp,
    pub kind: EventKind,
    /// The Invoice object, with the amounts of the last payment if there was one.
    pub invoice: Value,
}

/// The versions of one invoice, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History(Vec<InvoiceAfterEvent>);

/// An invoice as it was after one event of its history, with the neighbouring events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    pub version: InvoiceAfterEvent,
    /// The sequences of the events before and after this one.
    pub earlier_sequence: Option<i64>,
    pub later_sequence: Option<i64>,
    /// The fields that the event changed; empty for the first event.
    pub changes: Vec<ChangedField>,
}

/// A field whose value an event changed. A value is JSON; `None` if the field was not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedField {
    pub field: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the data of event {0} is no JSON object")]
pub struct UnreadableEvent(i64);

impl History {
    /// Reads the events of an invoice, the oldest first. Events without an invoice are left out: they concern a
    /// document whose invoice was not stored at the time.
    pub fn new(events: &[Event]) -> Result<Self, UnreadableEvent> {
        let mut versions = Vec::new();
        let mut amounts = Map::new();
        for event in events {
            let sequence = event.sequence;
            let at = event.timestamp;
            let kind = event.kind;
            let read = strict_json::from_trusted(&event.data);
            let mut data: Map<String, Value> = read.map_err(|_| UnreadableEvent(sequence))?;
            let Some(Value::Object(mut invoice)) = data.remove("invoice") else {
                continue;
            };
            if kind == EventKind::InvoiceUpdated || data.contains_key(DIFFERENCES_FIELD) {
                amounts.remove(PAYABLE_FIELD);
            }
            amounts.extend(
                data.into_iter()
                    .filter(|(name, _)| AMOUNT_FIELDS.contains(&name.as_str())),
            );
            invoice.extend(amounts.clone());
            versions.push(InvoiceAfterEvent {
                sequence,
                at,
                kind,
                invoice: Value::Object(invoice),
            });
        }
        Ok(Self(versions))
    }

    /// Returns the invoice as it was after the event of the taxpayer's log with this sequence, which may be about
    /// another invoice. Without a sequence, returns the invoice as it is now. Returns `None` if the invoice did not
    /// exist yet.
    pub fn entry_at(&self, sequence: Option<i64>) -> Option<HistoryEntry> {
        let known = self
            .0
            .partition_point(|version| sequence.is_none_or(|last| version.sequence <= last));
        let (version, before) = self.0.get(..known)?.split_last()?;
        let earlier = before.last();
        Some(HistoryEntry {
            version: version.clone(),
            earlier_sequence: earlier.map(|version| version.sequence),
            later_sequence: self.0.get(known).map(|version| version.sequence),
            changes: earlier
                .map(|earlier| changed_fields(&earlier.invoice, &version.invoice))
                .unwrap_or_default(),
        })
    }
}

fn changed_fields(before: &Value, after: &Value) -> Vec<ChangedField> {
    let mut fields = BTreeMap::new();
    let mut new_fields = BTreeMap::new();
    flatten_fields("", before, &mut fields);
    flatten_fields("", after, &mut new_fields);
    let mut names: Vec<_> = fields.keys().chain(new_fields.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let changed = names
        .into_iter()
        .filter(|name| fields.get(*name) != new_fields.get(*name));
    changed
        .map(|name| ChangedField {
            field: name.clone(),
            before: fields.get(name).cloned(),
            after: new_fields.get(name).cloned(),
        })
        .collect()
}

/// Adds the values of a document to `fields`, each under its dot path, such as `customer.tin`.
fn flatten_fields(path: &str, value: &Value, fields: &mut BTreeMap<String, String>) {
    let dot = if path.is_empty() { "" } else { "." };
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                flatten_fields(&format!("{path}{dot}{name}"), member, fields);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                flatten_fields(&format!("{path}{dot}{index}"), item, fields);
            }
        }
        leaf => {
            fields.insert(path.to_owned(), leaf.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::domain::kernel::ids::TaxpayerId;

    fn event(sequence: i64, kind: EventKind, data: &Value) -> Event {
        Event {
            id: Uuid::nil(),
            taxpayer_id: TaxpayerId(1),
            sequence,
            kind,
            timestamp: Timestamp::UNIX_EPOCH,
            irn: None,
            data: data.to_string(),
            actor: None,
            hash: String::new(),
            command_id: Uuid::nil(),
            trace: None,
        }
    }

    fn history() -> History {
        History::new(&[
            event(2, EventKind::InvoiceValidated, &json!({ "invoice": null })),
            event(
                3,
                EventKind::InvoiceCreated,
                &json!({ "invoice": { "status": "draft", "customer": { "tin": "1" } } }),
            ),
            event(
                5,
                EventKind::PaymentStatusUpdated,
                &json!({ "invoice": { "status": "draft", "customer": { "tin": "2" } }, "amount_paid": 10 }),
            ),
            event(
                9,
                EventKind::InvoiceStatusUpdated,
                &json!({ "invoice": { "status": "paid", "customer": {} } }),
            ),
        ])
        .unwrap()
    }

    fn sequences_at(as_of: Option<i64>) -> Option<(i64, Option<i64>, Option<i64>)> {
        history().entry_at(as_of).map(|entry| {
            (
                entry.version.sequence,
                entry.earlier_sequence,
                entry.later_sequence,
            )
        })
    }

    #[test]
    fn an_invoice_is_seen_after_any_event_of_its_taxpayer() {
        assert_eq!(sequences_at(Some(2)), None);
        assert_eq!(sequences_at(Some(3)), Some((3, None, Some(5))));
        assert_eq!(sequences_at(Some(4)), Some((3, None, Some(5))));
        assert_eq!(sequences_at(Some(5)), Some((5, Some(3), Some(9))));
        assert_eq!(sequences_at(None), Some((9, Some(5), None)));
        assert_eq!(History::default().entry_at(None), None);
        let broken = event(7, EventKind::InvoiceCreated, &json!([]));
        assert_eq!(History::new(&[broken]), Err(UnreadableEvent(7)));
    }

    #[test]
    fn changes_are_told_by_field_and_amounts_stay() {
        let told = |as_of| {
            let changes = history().entry_at(Some(as_of)).unwrap().changes;
            let lines = changes.into_iter().map(|change| {
                format!(
                    "{}: {:?} {:?}",
                    change.field,
                    change.before.as_deref(),
                    change.after.as_deref()
                )
            });
            lines.collect::<Vec<_>>().join("; ")
        };
        assert_eq!(told(3), "");
        assert_eq!(
            told(5),
            r#"amount_paid: None Some("10"); customer.tin: Some("\"1\"") Some("\"2\"")"#
        );
        let expected = r#"customer: None Some("{}"); customer.tin: Some("\"2\"") None; status: Some("\"draft\"") Some("\"paid\"")"#;
        assert_eq!(told(9), expected);
        assert_eq!(
            history().entry_at(None).unwrap().version.invoice["amount_paid"],
            json!(10)
        );
    }

    #[test]
    fn the_payable_of_a_payment_is_not_shown_after_it_may_have_changed() {
        let cases = [
            (EventKind::InvoiceStatusUpdated, json!({}), true),
            (EventKind::InvoiceSubmitted, json!({}), true),
            (EventKind::InvoiceUpdated, json!({}), false),
            (
                EventKind::InvoiceSubmitted,
                json!({ "differences": [] }),
                false,
            ),
            (
                EventKind::PaymentStatusUpdated,
                json!({ "amount_paid": 20, "payable_amount": 100 }),
                true,
            ),
        ];
        for (kind, mut data, is_shown) in cases {
            data["invoice"] = json!({ "status": "approved" });
            let paid = json!({ "invoice": {}, "amount_paid": 10, "payable_amount": 100 });
            let events = [
                event(1, EventKind::PaymentStatusUpdated, &paid),
                event(2, kind, &data),
            ];
            let history = History::new(&events).unwrap();
            let shown = history.entry_at(None).unwrap().version.invoice;
            assert_eq!(shown.get("payable_amount").is_some(), is_shown, "{data}");
            assert!(shown.get("amount_paid").is_some(), "{data}");
        }
    }
}
