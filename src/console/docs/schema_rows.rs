//! A schema of the API document as rows of a table, one for each field.

use serde_json::Value;

use crate::console::docs::operations::{find_schema, text_member};

/// The maximum number of rows of a table.
const ROWS_MAX: usize = 150;
/// The maximum nesting of fields that are shown. A schema may contain itself.
const DEPTH_MAX: usize = 7;

/// The members of a schema that list required fields: those that are always required, and those that are required
/// unless a rule in their description says otherwise.
const REQUIRED_LISTS: [&str; 2] = ["required", "x-conditionally-required"];

/// A field of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FieldRow {
    /// The names that lead to the field, such as `invoice_lines[].quantity`.
    pub(super) path: String,
    pub(super) kind: String,
    pub(super) is_required: bool,
    /// The description of the field, and its allowed values.
    pub(super) description: String,
}

/// Returns the fields of a schema.
pub(super) fn field_rows(schema: &'static Value) -> Vec<FieldRow> {
    let mut rows = Vec::new();
    add_fields(&mut rows, schema, "", DEPTH_MAX);
    rows
}

fn add_fields(rows: &mut Vec<FieldRow>, schema: &'static Value, parent: &str, depth: usize) {
    let schema = resolve_schema(schema);
    if depth == 0 {
        return;
    }
    if let Some(items) = schema.get("items") {
        return add_fields(rows, items, &format!("{parent}[]"), depth);
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, property) in properties {
        if rows.len() == ROWS_MAX {
            return;
        }
        let path = if parent.is_empty() {
            name.clone()
        } else {
            format!("{parent}.{name}")
        };
        let required = REQUIRED_LISTS
            .iter()
            .filter_map(|list| schema[*list].as_array());
        rows.push(FieldRow {
            kind: type_words(property),
            is_required: required.flatten().any(|one| one == name),
            description: field_description(property),
            path: path.clone(),
        });
        add_fields(rows, property, &path, depth - 1);
    }
}

/// Replaces a reference by the schema that it names, and a choice of schemas by the first that is not null. Returns any
/// other schema as it is.
fn resolve_schema(schema: &'static Value) -> &'static Value {
    let target = schema["$ref"].as_str().and_then(find_schema);
    let schema = target.unwrap_or(schema);
    let choice = ["oneOf", "anyOf", "allOf"]
        .into_iter()
        .find_map(|name| schema[name].as_array());
    let first = choice.and_then(|all| all.iter().find(|one| one["type"] != "null"));
    match first {
        Some(first) if schema.get("properties").is_none() => resolve_schema(first),
        _ => schema,
    }
}

/// Returns the type of a field in words.
fn type_words(schema: &'static Value) -> String {
    let schema = resolve_schema(schema);
    if let Some(items) = schema.get("items") {
        return format!("list of {}", type_words(items));
    }
    let names: Vec<_> = match &schema["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let kinds: Vec<_> = names.into_iter().filter(|name| *name != "null").collect();
    match (schema["format"].as_str(), kinds.as_slice()) {
        (Some(format), ["string"]) => format.to_owned(),
        (_, []) => "any".to_owned(),
        _ => kinds.join(" or "),
    }
}

/// Returns the description of a field, followed by its allowed values.
fn field_description(schema: &'static Value) -> String {
    let inner = resolve_schema(schema);
    let own_description = [schema, inner]
        .into_iter()
        .map(|one| text_member(one, "description"))
        .find(|words| !words.is_empty());
    // The schema of an optional field has two alternatives: a value that follows the rule, and a blank value. The
    // first one has the description of the rule.
    let rule = schema
        .pointer("/anyOf/0")
        .map(|one| text_member(one, "description"));
    let rule = rule.filter(|rule| !rule.is_empty() && own_description != Some(rule));
    let limits = [
        allowed_words(inner),
        length_words(inner),
        range_words(inner),
        pattern_words(inner),
    ];
    let parts = own_description
        .into_iter()
        .chain(rule)
        .map(str::to_owned)
        .chain(limits.into_iter().flatten());
    parts.fold(String::new(), |description, part| {
        let separator = match description.chars().last() {
            None => "",
            Some('.') => " ",
            Some(_) => "; ",
        };
        description + separator + &part
    })
}

fn allowed_words(schema: &Value) -> Option<String> {
    let words = schema["enum"].as_array()?.iter().map(|word| match word {
        Value::String(word) => word.clone(),
        other => other.to_string(),
    });
    Some(format!("one of {}", words.collect::<Vec<_>>().join(", ")))
}

fn length_words(schema: &Value) -> Option<String> {
    let max = schema.get("maxLength")?;
    Some(match schema.get("minLength") {
        Some(min) => format!("{min} to {max} characters"),
        None => format!("at most {max} characters"),
    })
}

fn range_words(schema: &Value) -> Option<String> {
    let bounds = [
        ("exclusiveMinimum", "more than"),
        ("minimum", "at least"),
        ("maximum", "at most"),
    ];
    let limits: Vec<_> = bounds
        .into_iter()
        .filter_map(|(name, words)| schema.get(name).map(|bound| format!("{words} {bound}")))
        .collect();
    (!limits.is_empty()).then(|| limits.join(", "))
}

fn pattern_words(schema: &Value) -> Option<String> {
    Some(format!("matches {}", schema["pattern"].as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::docs::operations::find_by_id;

    #[test]
    fn the_fields_of_a_body_are_rows() {
        let body = find_by_id("create_invoice").unwrap().json_body().unwrap();
        let rows = field_rows(&body["schema"]);
        let row = |path: &str| {
            let row = rows.iter().find(|row| row.path == path).unwrap();
            (row.kind.as_str(), row.is_required, row.description.as_str())
        };
        assert_eq!(
            row("invoice_date"),
            ("date", true, "The day of the invoice.")
        );
        assert_eq!(
            row("invoice_lines"),
            ("list of object", true, "The lines of the invoice.")
        );
        let (kind, is_required, description) = row("invoice_lines[].quantity");
        assert_eq!((kind, is_required), ("number", true));
        assert!(
            description.starts_with("The number of units. more than 0"),
            "{description}"
        );
        assert!(row("currency").2.contains("/v1/core/resources/currencies"));
    }

    #[test]
    fn a_schema_that_contains_itself_comes_to_an_end() {
        for operation in crate::console::docs::operations::all() {
            for (_, answer) in operation.answers() {
                let content = answer["content"].as_object().into_iter().flatten();
                for (_, content) in content {
                    assert!(field_rows(&content["schema"]).len() <= ROWS_MAX);
                }
            }
        }
    }
}
