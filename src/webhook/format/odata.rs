//! OData v4: a POST that creates one flat entity. Each kind of event has other data, so all data is one text property,
//! `Data`. <https://docs.oasis-open.org/odata/odata/v4.01/odata-v4.01-part1-protocol.html>

use serde_json::{Value, json};

pub(super) const HEADERS: [(&str, &str); 5] = [
    ("content-type", "application/json;odata.metadata=minimal"),
    ("accept", "application/json;odata.metadata=minimal"),
    ("odata-version", "4.0"),
    ("odata-maxversion", "4.0"),
    ("prefer", "return=minimal"),
];

pub(super) fn render(notification: &str) -> String {
    let event: Value = strict_json::from_trusted(notification).unwrap_or_default();
    let data = &event["data"];
    json!({
        "Id": event["id"],
        "Type": event["type"],
        "Timestamp": event["timestamp"],
        "Sequence": event["sequence"],
        "TaxpayerId": event["taxpayer_id"],
        "Irn": data["irn"],
        "Data": data.to_string(),
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_flat_entity() {
        let notification = r#"{"id":"e1","type":"invoice.created","timestamp":"2026-01-15T08:00:00.000000Z",
            "sequence":7,"taxpayer_id":3,"data":{"irn":"I1","invoice":{"payable_amount":1.50}}}"#;
        let entity: Value = strict_json::from_trusted(&render(notification)).unwrap();
        let expected = json!({
            "Id": "e1", "Type": "invoice.created", "Timestamp": "2026-01-15T08:00:00.000000Z", "Sequence": 7,
            "TaxpayerId": 3, "Irn": "I1", "Data": r#"{"invoice":{"payable_amount":1.50},"irn":"I1"}"#,
        });
        assert_eq!(entity, expected);
    }

    #[test]
    fn an_event_without_an_invoice_has_no_irn() {
        let entity: Value = strict_json::from_trusted(&render(r#"{"id":"e1","data":{}}"#)).unwrap();
        assert_eq!(
            (&entity["Irn"], &entity["Data"]),
            (&Value::Null, &json!("{}"))
        );
    }
}
