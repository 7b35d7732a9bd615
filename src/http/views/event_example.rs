//! An example of the message of each kind of event. The code that builds real messages also builds the message around
//! the data here, and a test checks each example against the schema of real messages.

use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::domain::events::event::{Event, EventKind};
use crate::domain::kernel::audit::{Actor, ActorWithName, NamedActor};
use crate::domain::kernel::ids::TaxpayerId;

const IRN: &str = "INV0001-94CD90AA-20260115";
const INVOICE: &str = include_str!("event_example_invoice.json");
/// A time on 15 January 2026, in seconds since 1970.
const AT_S: i64 = 1_768_471_200;
const SUPPLIER_IRN: &str = "INV9001-5A3F00C1-20260115";

/// Returns the message of an event of this kind, as a webhook gets it.
pub(crate) fn example_message(kind: EventKind) -> Value {
    let id = Uuid::from_u128(0x019b_c0de_0000_7000_8000_0000_0000_0001);
    let actor = NamedActor::from(&ActorWithName::from(Actor::Service));
    let event = Event {
        id,
        taxpayer_id: TaxpayerId(1),
        sequence: if kind == EventKind::WebhookTest {
            0
        } else {
            42
        },
        kind,
        timestamp: Timestamp::from_second(AT_S).unwrap_or_default(),
        irn: None,
        data: example_data(kind).to_string(),
        actor: serde_json::to_string(&actor).ok(),
        // A test message is no event of a log, so it has no hash.
        hash: if kind == EventKind::WebhookTest {
            String::new()
        } else {
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned()
        },
        command_id: id,
        trace: None,
    };
    strict_json::from_trusted(&event.notification_json()).unwrap_or_default()
}

fn example_data(kind: EventKind) -> Value {
    let stage = |status: &str, previous: &str, authority: &str| {
        example_invoice_data(status, authority, json!({ "previous_status": previous }))
    };
    match kind {
        EventKind::InvoiceCreated => {
            example_invoice_data("draft", "PENDING", json!({ "previous_status": null }))
        }
        EventKind::InvoiceUpdated => stage("draft", "draft", "PENDING"),
        EventKind::InvoiceStatusUpdated => {
            let extra =
                json!({ "previous_status": "draft", "remark": "Checked by the accountant" });
            example_invoice_data("approved", "PENDING", extra)
        }
        EventKind::InvoiceValidated => stage("validated", "approved", "VALIDATED"),
        EventKind::InvoiceSubmitted => stage("submitted", "validated", "SUBMITTED"),
        EventKind::InvoiceTransmitted => stage("transmitted", "submitted", "TRANSMITTED"),
        EventKind::InvoiceAcknowledged => stage("transmitted", "transmitted", "ACKNOWLEDGED"),
        EventKind::InvoiceReported => stage("reported", "submitted", "REPORTED"),
        EventKind::InvoiceRejected => {
            let error = "The customer's TIN is not registered";
            example_failed_submission_data("REJECTED", error)
        }
        EventKind::InvoiceFailed => {
            let error = "The authority has not answered for three days";
            example_failed_submission_data("FAILED", error)
        }
        EventKind::PaymentStatusUpdated => {
            let extra = json!({
                "amount": 5000.0, "reference": "TRF-881", "remark": "first part", "amount_paid": 5000.0,
                "payable_amount": 10750.0, "payment_date": "2026-01-14",
            });
            example_invoice_data("submitted", "SUBMITTED", extra)
        }
        _ => example_data_without_invoice(kind),
    }
}

/// Returns the data of an event that is about no invoice of the taxpayer's own.
fn example_data_without_invoice(kind: EventKind) -> Value {
    let verification = |status: &str, reason: &str| json!({ "taxpayer_id": 1, "verification": status, "reason": reason });
    let outage_id = Uuid::from_u128(0x019b_c0de_0000_7000_8000_0000_0000_0002);
    match kind {
        EventKind::InvoiceBatchCompleted => {
            json!({
                "batch_no": "B20260115-0123456789ABCDEF",
                "import_no": "I0123456789ABCDEF0123456789ABCDEF",
                "created": 48, "duplicates": 1, "failed": 1, "cancelled": false,
            })
        }
        EventKind::SupplierInvoiceReceived => json!({
            "irn": SUPPLIER_IRN, "supplier_irn": SUPPLIER_IRN, "supplier_name": "Kano Mills Ltd.",
            "supplier_tin": "23456789-0001", "received_at": "2026-01-15T10:00:00.000000Z",
        }),
        EventKind::SupplierInvoiceAcknowledged => json!({
            "irn": SUPPLIER_IRN, "supplier_irn": SUPPLIER_IRN,
            "acknowledged_at": "2026-01-15T10:00:00.000000Z",
        }),
        EventKind::TaxpayerVerified => verification("verified", "confirmed_by_authority"),
        EventKind::TaxpayerUnverified => verification("unverified", "tin_mismatch"),
        EventKind::AuthorityOutageStarted => json!({
            "outage_id": outage_id, "operations": ["sign"], "started_at": "2026-01-15T10:00:00.000000Z",
            "message": "Calls to the authority are failing. What you send is taken in and queued; it goes on by itself, and \
                        nothing needs to be sent again.",
        }),
        EventKind::AuthorityOutageEnded => json!({
            "outage_id": outage_id, "operations": ["sign"], "started_at": "2026-01-15T10:00:00.000000Z",
            "ended_at": "2026-01-15T10:30:00.000000Z", "duration_s": 1800,
            "message": "The authority answers again. What was queued goes on by itself.",
        }),
        EventKind::WebhookUpdated => json!({
            "taxpayer_id": 1, "webhook_id": 1, "webhook_origin": "https://erp.example.com",
            "changed": ["webhook_url", "enabled_events"],
        }),
        EventKind::WebhookTest => json!({
            "taxpayer_id": 1, "message": "This is a test notification: nothing has happened.",
        }),
        // The event of a replaced key, which does not name the key.
        _ => json!({ "taxpayer_id": 1 }),
    }
}

/// Returns the data of an event about the example invoice after its submission was rejected or failed.
fn example_failed_submission_data(authority: &str, error: &str) -> Value {
    let extra = json!({ "previous_status": "approved", "operation": "submit", "error": error });
    example_invoice_data("approved", authority, extra)
}

/// Returns the data of an event about the example invoice, which has this status.
fn example_invoice_data(status: &str, authority: &str, extra: Value) -> Value {
    let mut invoice: Value = strict_json::from_trusted(INVOICE).unwrap_or_default();
    invoice["status"] = status.into();
    invoice["authority_data"]["status"] = authority.into();
    let mut data = json!({ "irn": IRN, "invoice": invoice, "status": status });
    if let (Some(data), Value::Object(extra)) = (data.as_object_mut(), extra) {
        data.extend(extra);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_an_example_with_its_name_and_its_data() {
        for kind in EventKind::ALL {
            let message = example_message(*kind);
            assert_eq!(message["type"], json!(kind), "{message}");
            let data = message["data"].as_object().unwrap();
            let is_about_invoice = data.contains_key("invoice");
            assert!(is_about_invoice || !data.is_empty(), "{kind}");
            assert!(
                !is_about_invoice || data["invoice"]["id"].is_number(),
                "{kind}"
            );
        }
    }
}
