//! Changes to documents. A field is named by its dot path: `customer.tin`, `invoice_lines.0.quantity`.

use serde_json::{Value, json};

/// Returns a copy with another value at a dot path. A field that is not there yet is added.
pub fn with(body: &Value, path: &str, value: Value) -> Value {
    let mut body = body.clone();
    let (parent, name) = parent_and_name(&mut body, path);
    match parent {
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        parent => parent[name] = value,
    }
    body
}

/// Returns a copy without the field at a dot path.
pub fn without(body: &Value, path: &str) -> Value {
    let mut body = body.clone();
    let (parent, name) = parent_and_name(&mut body, path);
    parent.as_object_mut().unwrap().remove(name).unwrap();
    body
}

fn parent_and_name<'b, 'p>(body: &'b mut Value, path: &'p str) -> (&'b mut Value, &'p str) {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let pointer = if parent.is_empty() {
        String::new()
    } else {
        format!("/{}", parent.replace('.', "/"))
    };
    (body.pointer_mut(&pointer).unwrap(), name)
}

/// Returns the JSON number with exactly these digits.
pub fn exact(digits: &str) -> Value {
    strict_json::from_trusted(digits).unwrap()
}

/// Returns the dot path of every field of a body, objects and lists included.
pub fn paths(body: &Value) -> Vec<String> {
    match body {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| paths_from(name.clone(), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(at, value)| paths_from(at.to_string(), value))
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns the path of a field, and those of the fields below it.
fn paths_from(name: String, value: &Value) -> Vec<String> {
    let deeper: Vec<_> = paths(value)
        .iter()
        .map(|path| format!("{name}.{path}"))
        .collect();
    std::iter::once(name).chain(deeper).collect()
}

/// Returns values that a hostile caller may send in any field.
pub fn hostile_values() -> Vec<Value> {
    vec![
        json!(true),
        json!([[[]]]),
        json!({ "a": { "b": null } }),
        json!("\u{0}"),
        json!("\u{202e}\u{2066}txt"),
        json!("'; DROP TABLE invoices; --"),
        json!("x".repeat(100_000)),
        exact("-0.0"),
        exact("1e400"),
    ]
}
