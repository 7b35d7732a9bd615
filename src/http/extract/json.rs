//! Reads a body as a JSON object and reports two kinds of forbidden keys. Duplicate keys are forbidden because a proxy
//! may use the other value. Private keys of the JSON library are forbidden because the library would read an object
//! with such a key as a number or as text.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use strict_json::{JsonError, JsonLimits, KeyError, KeyErrorKind, PathSegment};

use crate::domain::invoice::batch::{INVOICES_MAX, ITEM_FAULTS_MAX, WHOLE_ITEM_PATH};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// The field name in a fault that concerns the body as a whole.
const WHOLE_BODY_FIELD: &str = "body";
/// The largest number of forbidden keys that are reported.
const KEY_FAULTS_MAX: usize = 20;
/// The number of bytes of a key that a fault shows. It is limited because a key may be as long as the body.
const KEY_BYTES_SHOWN_MAX: usize = 100;
/// The number of bytes of a path that a fault shows.
const PATH_BYTES_SHOWN_MAX: usize = 300;
/// The field with the items of a batch. Each item is accepted or refused separately.
const ITEMS_FIELD: &str = "invoices";

/// The body of Create Invoices (Bulk).
#[derive(Debug)]
pub(crate) struct BatchBody {
    pub(crate) object: Map<String, Value>,
    /// The faults for forbidden keys within items, by the index of the item. Their paths are relative to the item.
    pub(crate) key_faults: BTreeMap<usize, Faults>,
}

/// Parses a JSON object. Refuses an object that contains a duplicate or reserved key at any depth.
pub(crate) fn parse_object(text: &[u8]) -> Result<Map<String, Value>, ApiError> {
    let mut faults = Faults::with_max(KEY_FAULTS_MAX);
    let value = parse_value(text, |fault| {
        faults.push(forbidden_key_fault(
            fault.kind,
            fault.steps(),
            WHOLE_BODY_FIELD,
        ));
    })?;
    require_object(value, faults)
}

/// Parses the body of a batch. A forbidden key within an item is a fault of that item only.
pub(crate) fn parse_batch(text: &[u8]) -> Result<BatchBody, ApiError> {
    let mut faults = Faults::with_max(KEY_FAULTS_MAX);
    let mut key_faults = BTreeMap::new();
    let value = parse_value(text, |fault| match item_index(fault) {
        // The form refuses a list of more than `INVOICES_MAX` items, so faults of items beyond this limit are dropped.
        Some(index) if index >= INVOICES_MAX => {}
        Some(index) => {
            let item_faults = key_faults
                .entry(index)
                .or_insert_with(|| Faults::with_max(ITEM_FAULTS_MAX));
            item_faults.push(forbidden_key_fault(
                fault.kind,
                fault.steps().skip(2),
                WHOLE_ITEM_PATH,
            ));
        }
        None => faults.push(forbidden_key_fault(
            fault.kind,
            fault.steps(),
            WHOLE_BODY_FIELD,
        )),
    })?;
    Ok(BatchBody {
        object: require_object(value, faults)?,
        key_faults,
    })
}

fn parse_value(text: &[u8], on_fault: impl FnMut(&KeyError<'_>)) -> Result<Value, ApiError> {
    let malformed_error = |message: String| ApiError::new(ErrorCode::MalformedJson, message);
    let is_blank = text
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(text)
        .iter()
        .all(u8::is_ascii_whitespace);
    if is_blank {
        return Err(malformed_error(
            "The request body is empty; a JSON object is expected.".to_owned(),
        ));
    }
    strict_json::read(text, JsonLimits::REQUEST, on_fault).map_err(|error| match error {
        JsonError::TooDeep { max } => malformed_error(format!(
            "The request body is nested more than {max} levels deep."
        )),
        JsonError::TooManyValues => {
            malformed_error("The request body has too many values for its length.".to_owned())
        }
        other => malformed_error(format!("The request body is not valid JSON: {other}.")),
    })
}

fn require_object(value: Value, key_faults: Faults) -> Result<Map<String, Value>, ApiError> {
    match value {
        _ if !key_faults.is_empty() => Err(key_faults.into()),
        Value::Object(object) => Ok(object),
        _ => Err(Fault::new(
            WHOLE_BODY_FIELD,
            "type",
            "The request body must be a JSON object.",
        )
        .into()),
    }
}

/// Returns the index of the item that contains the fault, or `None` if the fault is outside the items.
fn item_index(fault: &KeyError<'_>) -> Option<usize> {
    let mut steps = fault.steps();
    match (steps.next()?, steps.next()?) {
        (PathSegment::Key(ITEMS_FIELD), PathSegment::Index(index)) => Some(index),
        _ => None,
    }
}

/// Returns the fault for a forbidden key. The path of the fault includes a duplicate key, but not a reserved key, which
/// only the message names. `whole_path` is the path of a fault of the whole body or item.
fn forbidden_key_fault<'f>(
    kind: KeyErrorKind,
    steps: impl Iterator<Item = PathSegment<'f>>,
    whole_path: &str,
) -> Fault {
    let mut segments: Vec<String> = steps.map(segment_text).collect();
    let reserved_key = if kind == KeyErrorKind::Reserved {
        segments.pop()
    } else {
        None
    };
    let path = segments.join(".");
    let path = match truncate(&path, PATH_BYTES_SHOWN_MAX) {
        _ if segments.is_empty() => whole_path,
        path => path,
    };
    let message = match reserved_key {
        Some(key) => format!("The {path} field must not have the reserved key {key}."),
        None => format!("The {path} field must not be sent twice."),
    };
    Fault::new(
        path,
        if kind == KeyErrorKind::Reserved {
            "reserved"
        } else {
            "duplicate"
        },
        message,
    )
}

fn segment_text(step: PathSegment<'_>) -> String {
    match step {
        PathSegment::Key(key) => truncate(key, KEY_BYTES_SHOWN_MAX).to_owned(),
        PathSegment::Index(index) => index.to_string(),
    }
}

fn truncate(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &[u8]) -> (u16, &'static str) {
        let error = parse_object(text).unwrap_err();
        (error.status.as_u16(), error.code.as_str())
    }

    fn faults(text: &str) -> Vec<(String, &'static str)> {
        let paths_and_rules = |faults: &Faults| {
            faults
                .iter()
                .map(|fault| (fault.path.clone(), fault.rule()))
                .collect()
        };
        match parse_object(text.as_bytes()) {
            Ok(_) => Vec::new(),
            Err(error) => paths_and_rules(&error.faults),
        }
    }

    #[test]
    fn only_text_that_is_no_json_is_malformed() {
        let deep = format!("{{\"a\":{}0{}}}", "[".repeat(128), "]".repeat(128));
        let dense = format!("{{\"a\":[{}0]}}", "0,".repeat(1_000_000));
        for text in [
            b"".as_slice(),
            b"  \n",
            b"\xef\xbb\xbf",
            b"{",
            b"{\"a\":}",
            b"{\"a\":\"\xff\"}",
            b"{} {}",
            deep.as_bytes(),
            dense.as_bytes(),
        ] {
            let shown = String::from_utf8_lossy(&text[..text.len().min(80)]);
            assert_eq!(refusal(text), (400, "MALFORMED_JSON"), "{shown}");
        }
        for text in [b"null".as_slice(), b"[]", b"1", b"true", b"\"text\""] {
            assert_eq!(
                refusal(text),
                (422, "VALIDATION_FAILED"),
                "{}",
                String::from_utf8_lossy(text)
            );
        }
        let too_many = parse_object(dense.as_bytes()).unwrap_err();
        assert_eq!(
            &*too_many.message,
            "The request body has too many values for its length."
        );
        assert!(parse_object(b"{}").is_ok());
        assert!(parse_object(b"\xef\xbb\xbf{}").is_ok(), "a byte order mark");
        assert!(
            parse_object(format!("{{\"a\":{}0{}}}", "[".repeat(127), "]".repeat(127)).as_bytes())
                .is_ok()
        );
    }

    #[test]
    fn numbers_keep_their_digits() {
        let object = parse_object(br#"{"amount": 0.10000000000000000001}"#).unwrap();
        assert_eq!(object["amount"].to_string(), "0.10000000000000000001");
    }

    #[test]
    fn each_key_that_is_sent_twice_is_named_by_its_path() {
        let text = r#"{"amount":1.5e300,"x":[-1,12345678901234567890123,1e400,0.1],"a":{"b":[{"c":1},{"c":1,"d":null,"c":2}]},"amount":100,"a":true,"amount":3}"#;
        let expected =
            ["a.b.1.c", "amount", "a", "amount"].map(|path| (path.to_owned(), "duplicate"));
        assert_eq!(faults(text), expected);
        assert_eq!(
            faults(r#"{"amount":1,"\u0061mount":2}"#),
            [("amount".to_owned(), "duplicate")]
        );
        assert_eq!(faults(r#"{"a:":":","b":"\":\"","c":"\\","d":"\\\":"}"#), []);
    }

    #[test]
    fn a_reserved_key_is_named_by_the_object_that_has_it() {
        for key in [
            "$serde_json::private::RawValue",
            "\\u0024serde_json::private::Number",
        ] {
            let expected = |path: &str| [(path.to_owned(), "reserved")];
            assert_eq!(faults(&format!(r#"{{"{key}":"1"}}"#)), expected("body"));
            assert_eq!(
                faults(&format!(r#"{{"a":[{{"b":1,"{key}":"{{}}"}}]}}"#)),
                expected("a.0")
            );
            let hidden =
                format!(r#"{{"price":1,"price":500,"x":{{"{key}":"{{\"a\":1,\"b\":2}}"}}}}"#);
            assert_eq!(
                faults(&hidden),
                [
                    ("price".to_owned(), "duplicate"),
                    ("x".to_owned(), "reserved")
                ]
            );
            let summary = parse_object(format!(r#"{{"{key}":"1"}}"#).as_bytes())
                .unwrap_err()
                .faults
                .summary();
            assert!(
                summary.contains("must not have the reserved key"),
                "{summary}"
            );
        }
    }

    #[test]
    fn little_of_a_hostile_body_is_shown() {
        let duplicates = vec!["\"a\":1"; 1_000].join(",");
        let shown_faults = faults(&format!("{{\"{}\":{{{duplicates}}}}}", "k".repeat(100_000)));
        assert_eq!(shown_faults.len(), KEY_FAULTS_MAX);
        assert_eq!(shown_faults[0].0, format!("{}.a", "k".repeat(100)));
        let accents = "\u{e9}".repeat(60);
        assert_eq!(
            faults(&format!("{{\"{accents}\":1,\"{accents}\":2}}"))[0].0,
            "\u{e9}".repeat(50)
        );
        let deep = format!("{{\"{}\":", "k".repeat(100)).repeat(9);
        let shown_faults = faults(&format!("{deep}{{{duplicates}}}{}", "}".repeat(9)));
        assert_eq!(shown_faults[0].0.len(), PATH_BYTES_SHOWN_MAX);
    }

    #[test]
    fn a_key_fault_in_an_item_of_a_batch_belongs_to_that_item() {
        let text = r#"{"invoices":[{"a":1},{"a":1,"a":2,"b":{"c":[{"d":1,"d":1}]}},7,{"$serde_json::private::x":1}]}"#;
        let body = parse_batch(text.as_bytes()).unwrap();
        let item_faults: Vec<_> = body
            .key_faults
            .iter()
            .flat_map(|(index, faults)| {
                faults
                    .iter()
                    .map(move |fault| (*index, fault.path.as_str()))
            })
            .collect();
        assert_eq!(item_faults, [(1, "a"), (1, "b.c.0.d"), (3, "invoice")]);
        for text in [
            r#"{"invoices":[{"a":1}],"x":{"a":1,"a":2}}"#,
            r#"{"invoices":[{"a":1}],"invoices":[{"a":1,"a":2}]}"#,
            r#"{"invoices":{"0":{"a":1,"a":2}}}"#,
        ] {
            assert_eq!(
                parse_batch(text.as_bytes()).unwrap_err().status.as_u16(),
                422,
                "{text}"
            );
        }
        for text in [
            r#"{"invoices":[NaN]}"#,
            r#"{"invoices":[{"a":1]}"#,
            r#"{"invoices":["\ud800"]}"#,
        ] {
            let error = parse_batch(text.as_bytes()).unwrap_err();
            assert_eq!(
                (error.status.as_u16(), error.code.as_str()),
                (400, "MALFORMED_JSON"),
                "{text}"
            );
        }
        // The batch has too many items, each with a fault. Only faults of the first `INVOICES_MAX` items are stored.
        let items = vec![r#"{"a":1,"a":2}"#; INVOICES_MAX + 5].join(",");
        let body = parse_batch(format!("{{\"invoices\":[{items}]}}").as_bytes()).unwrap();
        assert_eq!(body.key_faults.len(), INVOICES_MAX);
    }
}
