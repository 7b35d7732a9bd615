//! The schemas of views. A view leaves out only members that are never null (`#[schema(nullable = false)]` beside
//! `skip_serializing_if`). So a member that may be null is always there, and its schema requires it: a generated client
//! has to know two cases of a member, not three.

use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, Schema, SchemaType, Type};

/// Returns the schema of a view and those that it refers to, by name.
pub(super) fn view_schemas<T: ToSchema>() -> Vec<(String, RefOr<Schema>)> {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    for (_, schema) in &mut schemas {
        require_nullable_members(schema);
    }
    schemas
}

/// Requires each member that may be null.
fn require_nullable_members(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::T(Schema::Object(object)) => require_in_object(object),
        RefOr::T(Schema::AllOf(parts)) => {
            parts.items.iter_mut().for_each(require_nullable_members);
        }
        _ => {}
    }
}

fn require_in_object(object: &mut Object) {
    let nullable = object.properties.iter().filter(|(name, property)| {
        let is_required = object.required.contains(name);
        !is_required && may_be_null(property)
    });
    let names: Vec<_> = nullable.map(|(name, _)| name.clone()).collect();
    object.required.extend(names);
}

fn may_be_null(schema: &RefOr<Schema>) -> bool {
    let RefOr::T(schema) = schema else {
        return false;
    };
    match schema {
        Schema::Object(object) => allows_null(&object.schema_type),
        Schema::Array(array) => allows_null(&array.schema_type),
        Schema::OneOf(choice) => choice.items.iter().any(may_be_null),
        Schema::AnyOf(choice) => choice.items.iter().any(may_be_null),
        _ => false,
    }
}

fn allows_null(schema_type: &SchemaType) -> bool {
    match schema_type {
        SchemaType::Type(kind) => *kind == Type::Null,
        SchemaType::Array(kinds) => kinds.contains(&Type::Null),
        SchemaType::AnyValue => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;
    use serde_json::json;

    use super::*;

    #[derive(Serialize, ToSchema)]
    struct PartView {
        text: Option<String>,
        list: Option<Vec<i64>>,
        #[schema(nullable = false)]
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<String>,
    }

    #[derive(Serialize, ToSchema)]
    struct WholeView {
        part: Option<PartView>,
        #[schema(nullable = false)]
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<PartView>,
    }

    #[test]
    fn a_member_that_may_be_null_is_required_and_one_that_may_be_left_out_is_not() {
        let schemas: BTreeMap<_, _> = view_schemas::<WholeView>().into_iter().collect();
        for (name, expected) in [
            ("PartView", json!(["text", "list"])),
            ("WholeView", json!(["part"])),
        ] {
            let schema = serde_json::to_value(&schemas[name]).unwrap();
            assert_eq!(schema["required"], expected, "{schema}");
        }
        let part = PartView {
            text: None,
            list: None,
            left_out: None,
        };
        let whole = WholeView {
            part: Some(part),
            left_out: None,
        };
        let expected = json!({ "part": { "text": null, "list": null } });
        assert_eq!(serde_json::to_value(whole).unwrap(), expected);
    }

    /// Without the mark, the schema says that the member is null and always there.
    #[test]
    fn a_view_marks_each_member_that_it_leaves_out() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/views");
        let files = std::fs::read_dir(directory).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        for path in paths.filter(|path| path.extension().is_some_and(|end| end == "rs")) {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines: Vec<_> = text.lines().map(str::trim).collect();
            for pair in lines.windows(2) {
                let leaves_out = pair[1] == "#[serde(skip_serializing_if = \"Option::is_none\")]";
                let is_marked = pair[0] == "#[schema(nullable = false)]";
                assert!(is_marked || !leaves_out, "{}", path.display());
            }
        }
    }
}
