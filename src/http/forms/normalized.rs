//! Normalizes a body as the form reads it: trims texts, and removes unknown and empty fields.

use serde_json::{Map, Value};

use crate::http::forms::reader::is_absent;

/// Returns the normalized body, without the fields at the paths `unknown`.
pub(crate) fn as_sent(body: Map<String, Value>, unknown: &[Vec<String>]) -> Value {
    let mut document = Value::Object(body);
    for steps in unknown {
        remove(&mut document, steps);
    }
    as_read(&mut document);
    document
}

fn remove(value: &mut Value, steps: &[String]) {
    match (value, steps) {
        (Value::Object(fields), [last]) => drop(fields.remove(last)),
        (Value::Object(fields), [first, rest @ ..]) => {
            if let Some(inner) = fields.get_mut(first) {
                remove(inner, rest);
            }
        }
        (Value::Array(items), [first, rest @ ..]) => {
            if let Some(inner) = first.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                remove(inner, rest);
            }
        }
        _ => {}
    }
}

/// Trims texts and removes empty fields, as the form does.
fn as_read(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, inner| !is_absent(inner));
            fields.values_mut().for_each(as_read);
        }
        Value::Array(items) => items.iter_mut().for_each(as_read),
        Value::String(text) if text.trim().len() < text.len() => *text = text.trim().to_owned(),
        _ => {}
    }
}
