//! Request bodies of this API as files: one body or several in JSON, or one body in each line (NDJSON).

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use strict_json::{JsonError, JsonLimits, KeyError, PathSegment};

use crate::domain::import::source::{
    Places, SourceDocument, SourceFile, file_fault, too_many_documents_fault,
};
use crate::domain::invoice::batch::{INVOICES_MAX, ITEM_FAULTS_MAX, WHOLE_ITEM_PATH};
use crate::domain::kernel::fault::Fault;

/// The member of the body of Create Invoices (Bulk) that holds the invoices.
const BULK_FIELD: &str = "invoices";
/// The maximum number of bytes of a path that a fault shows, because a key of the file may be very long.
const PATH_BYTES_SHOWN_MAX: usize = 200;

/// Reads a file: one body, an array of bodies, or the body of Create Invoices (Bulk).
pub fn read(bytes: &[u8]) -> Result<SourceFile, Fault> {
    read_piece(bytes, 0)
}

/// Reads a piece of an array that has `documents_before` documents before it in the file.
pub fn read_piece(bytes: &[u8], documents_before: u64) -> Result<SourceFile, Fault> {
    let mut keys: Vec<Vec<String>> = Vec::new();
    let value = strict_json::read(bytes, JsonLimits::REQUEST, |fault| {
        if keys.len() < ITEM_FAULTS_MAX * INVOICES_MAX {
            keys.push(fault_path(fault));
        }
    })
    .map_err(|error| file_fault("json", error_sentence(&error)))?;
    let (values, depth) = match value {
        Value::Array(values) => (values, 1),
        Value::Object(mut members) => match members.remove(BULK_FIELD) {
            Some(Value::Array(values)) if members.is_empty() => (values, 2),
            Some(other) => {
                members.insert(BULK_FIELD.to_owned(), other);
                (vec![Value::Object(members)], 0)
            }
            None => (vec![Value::Object(members)], 0),
        },
        _ => {
            let message = "The file must be an invoice or an array of invoices.";
            return Err(file_fault("type", message));
        }
    };
    if values.len() > INVOICES_MAX {
        return Err(too_many_documents_fault());
    }
    let mut key_faults: BTreeMap<usize, Vec<Fault>> = BTreeMap::new();
    for steps in keys {
        let index = match depth {
            0 => Some(0),
            _ => steps.get(depth - 1).and_then(|step| step.parse().ok()),
        };
        let Some(index) = index else {
            return Err(unusable_key_fault("file", &steps));
        };
        let faults = key_faults.entry(index).or_default();
        if faults.len() < ITEM_FAULTS_MAX {
            faults.push(unusable_key_fault(
                WHOLE_ITEM_PATH,
                steps.get(depth..).unwrap_or_default(),
            ));
        }
    }
    let numbers = documents_before + 1..;
    let documents = values.into_iter().zip(numbers).enumerate();
    let documents = documents.map(|(index, (value, number))| {
        let place = format!("document {number}");
        source_document(value, place, key_faults.remove(&index).unwrap_or_default())
    });
    Ok(SourceFile {
        documents: documents.collect(),
        ..SourceFile::default()
    })
}

/// Reads one body from each line that is not blank. `lines_before` is the number of lines before the piece in the file.
pub fn read_lines(bytes: &[u8], lines_before: u64) -> Result<SourceFile, Fault> {
    let mut file = SourceFile::default();
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(lines_before + 1..) {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if file.documents.len() == INVOICES_MAX {
            return Err(too_many_documents_fault());
        }
        let place = format!("line {number}");
        let mut faults = Vec::new();
        let read = strict_json::read(line, JsonLimits::REQUEST, |fault| {
            if faults.len() < ITEM_FAULTS_MAX {
                faults.push(unusable_key_fault(WHOLE_ITEM_PATH, &fault_path(fault)));
            }
        });
        file.documents.push(match read {
            Ok(value) => source_document(value, place, faults),
            Err(error) => SourceDocument {
                faults: vec![Fault::new(WHOLE_ITEM_PATH, "json", error_sentence(&error))],
                places: Places::Whole(place),
                ..SourceDocument::default()
            },
        });
    }
    Ok(file)
}

fn source_document(value: Value, place: String, mut faults: Vec<Fault>) -> SourceDocument {
    let body: Option<Map<String, Value>> = if let Value::Object(body) = value {
        Some(body)
    } else {
        let message = "The invoice must be an object.";
        faults.push(Fault::new(WHOLE_ITEM_PATH, "type", message));
        None
    };
    SourceDocument {
        body,
        faults,
        places: Places::Whole(place),
        ..SourceDocument::default()
    }
}

fn fault_path(fault: &KeyError<'_>) -> Vec<String> {
    let steps = fault.steps().map(|step| match step {
        PathSegment::Key(key) => key[..key.floor_char_boundary(PATH_BYTES_SHOWN_MAX)].to_owned(),
        PathSegment::Index(index) => index.to_string(),
    });
    steps.collect()
}

fn unusable_key_fault(whole: &str, steps: &[String]) -> Fault {
    let path = steps.join(".");
    let path = &path[..path.floor_char_boundary(PATH_BYTES_SHOWN_MAX)];
    let path = if path.is_empty() { whole } else { path };
    let message = format!("The {path} field must not be sent twice, nor have a reserved name.");
    Fault::new(path, "duplicate", message)
}

fn error_sentence(error: &JsonError) -> String {
    match error {
        JsonError::TooDeep { max } => format!("The JSON is nested more than {max} levels deep."),
        JsonError::TooManyValues => "The JSON has too many values for its length.".to_owned(),
        other => format!("The JSON is not valid: {other}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summaries(file: &SourceFile) -> Vec<String> {
        let documents = file.documents.iter().map(|document| {
            let faults: Vec<_> = document.faults.iter().map(Fault::rule).collect();
            let number = document
                .body
                .as_ref()
                .and_then(|body| body.get("invoice_no"));
            format!(
                "{} {} {}",
                document.places.document_place(),
                number.map(ToString::to_string).unwrap_or_default(),
                faults.join(",")
            )
        });
        documents.collect()
    }

    #[test]
    fn one_body_many_bodies_and_that_of_bulk_are_read() {
        for (text, expected) in [
            (r#"{"invoice_no":"A"}"#, &["document 1 \"A\" "][..]),
            (
                r#"[{"invoice_no":"A"},7]"#,
                &["document 1 \"A\" ", "document 2  type"],
            ),
            (
                r#"{"invoices":[{"invoice_no":"A"}]}"#,
                &["document 1 \"A\" "],
            ),
            ("[]", &[]),
            (
                r#"[{},{"a":1,"a":2}]"#,
                &["document 1  ", "document 2  duplicate"],
            ),
        ] {
            assert_eq!(
                summaries(&read(text.as_bytes()).unwrap()),
                expected,
                "{text}"
            );
        }
        for text in ["", "7", "{", r#"{"x":1,"invoices":{}"#] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn each_line_stands_for_itself() {
        let text = "{\"invoice_no\":\"A\"}\r\n\n{oops\n[1]\n{\"b\":1,\"b\":2}";
        assert_eq!(
            summaries(&read_lines(text.as_bytes(), 0).unwrap()),
            [
                "line 1 \"A\" ",
                "line 3  json",
                "line 4  type",
                "line 5  duplicate"
            ]
        );
        let many = "{}\n".repeat(INVOICES_MAX + 1);
        assert_eq!(
            read_lines(many.as_bytes(), 0).unwrap_err().rule(),
            "batch_too_large"
        );
    }
}
