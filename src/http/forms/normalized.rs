//! A body as its form has read it: texts without the blanks around them, and nothing that is unknown or empty. It is
//! what Submit sends on and what Create Invoice (Full) keeps.

use serde_json::{Map, Value};

/// The fields of a body without those that no form asked for, given by the names and positions that lead to each.
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

/// Texts go as the form reads them, without the blanks around them; what it takes for absent is not sent.
fn as_read(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, inner| match inner {
                Value::Null => false,
                Value::String(text) => !text.trim().is_empty(),
                _ => true,
            });
            fields.values_mut().for_each(as_read);
        }
        Value::Array(items) => items.iter_mut().for_each(as_read),
        Value::String(text) if text.trim().len() < text.len() => *text = text.trim().to_owned(),
        _ => {}
    }
}
