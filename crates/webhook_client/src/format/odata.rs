//! OData v4: a POST that creates one flat entity. Each kind of event has other data, so all data is one text property,
//! `Data`. <https://docs.oasis-open.org/odata/odata/v4.01/odata-v4.01-part1-protocol.html>

use serde_json::{Map, Value};

pub(super) const HEADERS: [(&str, &str); 5] = [
    ("content-type", "application/json;odata.metadata=minimal"),
    ("accept", "application/json;odata.metadata=minimal"),
    ("odata-version", "4.0"),
    ("odata-maxversion", "4.0"),
    ("prefer", "return=minimal"),
];

/// Writes an entity with these properties, each with the JSON pointer of its value in the notification.
pub(super) fn render(properties: &[(&str, &str)], notification: &str) -> String {
    let event: Value = strict_json::from_trusted(notification).unwrap_or_default();
    let fields = properties.iter().map(|(name, pointer)| {
        let value = event.pointer(pointer).cloned();
        ((*name).to_owned(), value.unwrap_or_default())
    });
    let mut entity: Map<String, Value> = fields.collect();
    entity.insert("Data".to_owned(), Value::from(event["data"].to_string()));
    Value::Object(entity).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PROPERTIES: [(&str, &str); 3] = [
        ("Id", "/id"),
        ("Sequence", "/sequence"),
        ("Isbn", "/data/isbn"),
    ];

    #[test]
    fn an_event_is_a_flat_entity() {
        let notification = r#"{"id":"e1","sequence":7,"data":{"isbn":"I1","book":{"price":1.50}}}"#;
        let text = render(&PROPERTIES, notification);
        let entity: Value = strict_json::from_trusted(&text).unwrap();
        let expected = json!({
            "Id": "e1", "Sequence": 7, "Isbn": "I1", "Data": r#"{"book":{"price":1.50},"isbn":"I1"}"#,
        });
        assert_eq!(entity, expected);
    }

    #[test]
    fn a_property_that_the_event_does_not_have_is_null() {
        let text = render(&PROPERTIES, r#"{"id":"e1","data":{}}"#);
        let entity: Value = strict_json::from_trusted(&text).unwrap();
        assert_eq!(
            (&entity["Isbn"], &entity["Data"]),
            (&Value::Null, &json!("{}"))
        );
    }
}
