//! Normalizes a body as the form reads it: trims texts, and removes unknown and empty fields.

use serde_json::{Map, Value};

use crate::http::forms::json_path::is_absent;

/// Returns the normalized body, without the fields at the paths `unknown`.
pub(crate) fn normalize(
    mut body: Map<String, Value>,
    unknown: &[Vec<String>],
) -> Map<String, Value> {
    for steps in unknown {
        remove_field(&mut body, steps);
    }
    trim_fields(&mut body);
    body
}

fn remove_field(fields: &mut Map<String, Value>, steps: &[String]) {
    match steps {
        [] => {}
        [last] => drop(fields.remove(last)),
        [first, rest @ ..] => {
            if let Some(inner) = fields.get_mut(first) {
                remove_in_value(inner, rest);
            }
        }
    }
}

fn remove_in_value(value: &mut Value, steps: &[String]) {
    match (value, steps) {
        (Value::Object(fields), steps) => remove_field(fields, steps),
        (Value::Array(items), [first, rest @ ..]) => {
            if let Some(inner) = first
                .parse()
                .ok()
                .and_then(|index: usize| items.get_mut(index))
            {
                remove_in_value(inner, rest);
            }
        }
        _ => {}
    }
}

/// Trims texts and removes empty fields, as the form does.
fn trim_fields(fields: &mut Map<String, Value>) {
    fields.retain(|_, inner| !is_absent(inner));
    fields.values_mut().for_each(trim_value);
}

fn trim_value(value: &mut Value) {
    match value {
        Value::Object(fields) => trim_fields(fields),
        Value::Array(items) => items.iter_mut().for_each(trim_value),
        Value::String(text) if text.trim().len() < text.len() => *text = text.trim().to_owned(),
        _ => {}
    }
}
