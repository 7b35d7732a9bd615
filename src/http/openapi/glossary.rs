//! Adds descriptions to schema properties that have none. `glossary.json` has a sentence for each property name. If a
//! name means something else in one object, the file also has it with the name of that object, such as `filter.state`.

use std::sync::LazyLock;

use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, Schema};

pub(super) static SENTENCES: LazyLock<Value> =
    LazyLock::new(|| strict_json::from_trusted(include_str!("glossary.json")).unwrap_or_default());

/// Adds a description to each property within the schema that has none. `enclosing_name` is the name of the schema, or
/// of the property that the schema belongs to.
pub(super) fn describe_properties(schema: &mut RefOr<Schema>, enclosing_name: &str) {
    let RefOr::T(schema) = schema else {
        return;
    };
    match schema {
        Schema::Object(object) => {
            for (name, property) in &mut object.properties {
                if let Some(sentence) = find_sentence(enclosing_name, name) {
                    set_description(property, sentence);
                }
                describe_properties(property, name);
            }
            if let Some(AdditionalProperties::RefOr(value)) =
                object.additional_properties.as_deref_mut()
            {
                describe_properties(value, enclosing_name);
            }
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(entry) = &mut array.items {
                describe_properties(entry, enclosing_name);
            }
        }
        Schema::OneOf(choice) => describe_all(&mut choice.items, enclosing_name),
        Schema::AllOf(parts) => describe_all(&mut parts.items, enclosing_name),
        Schema::AnyOf(choice) => describe_all(&mut choice.items, enclosing_name),
        _ => {}
    }
}

fn describe_all(schemas: &mut [RefOr<Schema>], enclosing_name: &str) {
    for schema in schemas {
        describe_properties(schema, enclosing_name);
    }
}

fn find_sentence(enclosing_name: &str, name: &str) -> Option<&'static str> {
    let special = SENTENCES.get(format!("{enclosing_name}.{name}"));
    special.or_else(|| SENTENCES.get(name))?.as_str()
}

fn set_description(property: &mut RefOr<Schema>, sentence: &str) {
    match property {
        RefOr::Ref(reference) => {
            if reference.description.is_empty() {
                sentence.clone_into(&mut reference.description);
            }
        }
        RefOr::T(schema) => {
            if let Some(description) = description_mut(schema) {
                description.get_or_insert_with(|| sentence.to_owned());
            }
        }
    }
}

fn description_mut(schema: &mut Schema) -> Option<&mut Option<String>> {
    match schema {
        Schema::Object(object) => Some(&mut object.description),
        Schema::Array(array) => Some(&mut array.description),
        Schema::OneOf(choice) => Some(&mut choice.description),
        Schema::AllOf(parts) => Some(&mut parts.description),
        Schema::AnyOf(choice) => Some(&mut choice.description),
        _ => None,
    }
}
