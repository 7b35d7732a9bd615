//! The schema of a request body. It is built from the form that reads the body, so that the API
//! document and the checks cannot differ.

use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{
    AnyOfBuilder, ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};

use crate::domain::money::Amount;
use crate::domain::reference::catalog::ReferenceList;
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::form_schema::{FieldType, FormSchema, Presence, Property};

const EMAIL_FORMAT: SchemaFormat = SchemaFormat::KnownFormat(KnownFormat::Email);
const DATE_FORMAT: SchemaFormat = SchemaFormat::KnownFormat(KnownFormat::Date);
const MOMENT_FORMAT: SchemaFormat = SchemaFormat::KnownFormat(KnownFormat::DateTime);
const UUID_FORMAT: SchemaFormat = SchemaFormat::KnownFormat(KnownFormat::Uuid);
const ID_FORMAT: SchemaFormat = SchemaFormat::KnownFormat(KnownFormat::Int64);

/// Returns the schema of the object that a form reads.
pub(super) fn form_schema(form: &FormSchema) -> Schema {
    form_fields(form).build().into()
}

fn form_fields(form: &FormSchema) -> ObjectBuilder {
    form.0
        .iter()
        .fold(ObjectBuilder::new(), |object, property| {
            let object = object.property(property.name, property_schema(property));
            if property.presence == Presence::Required {
                object.required(property.name)
            } else {
                object
            }
        })
}

/// Returns the schema of one field. If the field is not required, the value may also be null.
fn property_schema(property: &Property) -> Schema {
    if property.presence != Presence::Required && refuses_blank(&property.shape) {
        return schema_allowing_blank(property);
    }
    let presence = property.presence;
    let text = |note: &str| described_schema(property, Type::String, note);
    let value = |kind: Type| described_schema(property, kind, "");
    let schema = match &property.shape {
        FieldType::Text { min, max } => limit_length(text(""), presence, *min, *max),
        FieldType::Identifier { max } => limit_length(text(""), presence, 0, *max),
        FieldType::Email => text("")
            .format(Some(EMAIL_FORMAT))
            .max_length(Some(TEXT_CHARS_MAX)),
        FieldType::Date => text("").format(Some(DATE_FORMAT)),
        FieldType::Moment => text("").format(Some(MOMENT_FORMAT)),
        FieldType::Formatted { rule: "uuid", .. } => text("").format(Some(UUID_FORMAT)),
        FieldType::Formatted { description, .. } => text(description),
        FieldType::Pattern { pattern, list } => {
            text(&list.map(reference_list_note).unwrap_or_default())
                .pattern(Some(pattern_regex(pattern)))
        }
        FieldType::Country => {
            text(&reference_list_note(ReferenceList::Countries)).pattern(Some("^[A-Za-z]{2}$"))
        }
        FieldType::Currency => {
            text(&reference_list_note(ReferenceList::Currencies)).pattern(Some("^[A-Za-z]{3}$"))
        }
        FieldType::Code { max, list } => text(&reference_list_note(*list)).max_length(Some(*max)),
        FieldType::Word(words) => text("in any case").enum_values(Some(word_values(words))),
        FieldType::Irn { max } => {
            text("{invoice_no}-{service_id}-{YYYYMMDD}").max_length(Some(*max))
        }
        FieldType::LogPosition => {
            text("the sequence of an event, or a moment as RFC 3339 writes it")
                .schema_type(log_position_type(presence))
        }
        FieldType::Id => value(Type::Integer)
            .format(Some(ID_FORMAT))
            .minimum(Some(1)),
        FieldType::WholeNumber { max } => value(Type::Integer)
            .minimum(Some(0))
            .maximum(Some(i64::from(*max))),
        FieldType::Number(bounds) => limit_range(value(Type::Number), *bounds),
        FieldType::Boolean => value(Type::Boolean),
        FieldType::Object(form) => {
            form_fields(form).schema_type(nullable_type(Type::Object, presence))
        }
        FieldType::Objects {
            min,
            items_max,
            item,
        } => {
            return list_schema(form_schema(item), *min, *items_max, property);
        }
        FieldType::Texts { items_max, max } => {
            return list_schema(text_item_schema(*max), 0, *items_max, property);
        }
        FieldType::TextsByName { max } => {
            value(Type::Object).additional_properties(Some(text_item_schema(*max)))
        }
        FieldType::NestedTextsByName { max } => {
            value(Type::Object).additional_properties(Some(texts_by_name_schema(*max)))
        }
        FieldType::WholeNumbers { items_max, max } => {
            return number_list_schema(*items_max, *max, property);
        }
    };
    schema.build().into()
}

/// Returns the schema of a value of type `kind`, with the rules of its field. The description is `note`, followed by a
/// sentence if the field is required on a condition.
fn described_schema(property: &Property, kind: Type, note: &str) -> ObjectBuilder {
    let sentence = [note, presence_note(property.presence)]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("; ");
    let description = (!sentence.is_empty()).then_some(sentence);
    ObjectBuilder::new()
        .schema_type(nullable_type(kind, property.presence))
        .description(description)
        .extensions(Some(rule_extensions(property)))
}

fn reference_list_note(list: ReferenceList) -> String {
    format!("must exist in /v1/core/resources/{list}")
}

/// Returns true if a blank text does not match the schema of this type.
fn refuses_blank(shape: &FieldType) -> bool {
    let is_uuid = matches!(shape, FieldType::Formatted { rule: "uuid", .. });
    is_uuid
        || matches!(
            shape,
            FieldType::Email
                | FieldType::Date
                | FieldType::Moment
                | FieldType::Pattern { .. }
                | FieldType::Country
                | FieldType::Currency
                | FieldType::Word(_)
        )
}

/// Returns the schema of an optional text with a format. A blank text is allowed, since it counts as absent.
fn schema_allowing_blank(property: &Property) -> Schema {
    let strict = Property {
        presence: Presence::Required,
        ..property.clone()
    };
    let text_or_null = SchemaType::from_iter([Type::String, Type::Null]);
    let blank = ObjectBuilder::new()
        .schema_type(text_or_null)
        .pattern(Some("^\\s*$"));
    let condition_note =
        (property.presence == Presence::Conditional).then(|| presence_note(property.presence));
    let schema = AnyOfBuilder::new()
        .item(property_schema(&strict))
        .item(blank)
        .description(condition_note);
    schema
        .extensions(Some(rule_extensions(property)))
        .build()
        .into()
}

/// Returns the ids of the rules that the field can violate; a failure names them in `errors[].rule`.
fn rule_extensions(property: &Property) -> Extensions {
    let rules = Extensions::builder().add("x-rules", property.rule_ids());
    match &property.shape {
        FieldType::Word(words) => match enum_names(words) {
            Some(names) => rules.add("x-enum-varnames", names).build(),
            None => rules.build(),
        },
        _ => rules.build(),
    }
}

/// Returns a name for each word if two of the words differ only in case, otherwise `None`. Code generators write all
/// names of an enumeration in the same case, so without these names two of them would be equal.
fn enum_names(words: &str) -> Option<Vec<String>> {
    let mut folded: Vec<_> = words.split(", ").map(str::to_lowercase).collect();
    let word_count = folded.len();
    folded.sort_unstable();
    folded.dedup();
    let names = words.split(", ").map(variant_name);
    (folded.len() < word_count).then(|| names.collect())
}

fn variant_name(word: &str) -> String {
    let is_lower = word.chars().all(|letter| !letter.is_uppercase());
    format!(
        "{}{}",
        word.to_uppercase(),
        if is_lower { "_IN_LOWER_CASE" } else { "" }
    )
}

fn presence_note(presence: Presence) -> &'static str {
    if presence == Presence::Conditional {
        "required on a condition"
    } else {
        ""
    }
}

fn nullable_type(kind: Type, presence: Presence) -> SchemaType {
    match presence {
        Presence::Required => SchemaType::Type(kind),
        Presence::Conditional | Presence::Optional => SchemaType::from_iter([kind, Type::Null]),
    }
}

fn log_position_type(presence: Presence) -> SchemaType {
    let null = (presence != Presence::Required).then_some(Type::Null);
    [Type::Integer, Type::String]
        .into_iter()
        .chain(null)
        .collect()
}

/// Limits the length of a text. An optional text has no minimum, since a blank text counts as absent.
fn limit_length(text: ObjectBuilder, presence: Presence, min: usize, max: usize) -> ObjectBuilder {
    let min_length = (presence == Presence::Required).then_some(min.max(1));
    text.min_length(min_length).max_length(Some(max))
}

fn word_values(words: &str) -> impl Iterator<Item = Value> {
    words.split(", ").map(Value::from)
}

/// Returns the regular expression for a pattern such as `9999.99`. Each 9 in the pattern stands for one digit.
fn pattern_regex(pattern: &str) -> String {
    let parts = pattern
        .split('.')
        .map(|digits| format!("[0-9]{{{}}}", digits.len()));
    format!("^{}$", parts.collect::<Vec<_>>().join("[.]"))
}

fn limit_range(number: ObjectBuilder, bounds: AmountBounds) -> ObjectBuilder {
    match bounds {
        AmountBounds::Any => number,
        AmountBounds::Above(min) => number.exclusive_minimum(schema_bound(min)),
        AmountBounds::AtLeast(min) => number.minimum(schema_bound(min)),
        AmountBounds::Within(min, max) => {
            number.minimum(schema_bound(min)).maximum(schema_bound(max))
        }
    }
}

/// Converts an amount into a bound in a schema. A float is precise enough, since no amounts are computed from a schema.
fn schema_bound(amount: Amount) -> Option<utoipa::Number> {
    let text = amount.to_string();
    let whole = text.parse().map(utoipa::Number::Int);
    whole
        .or_else(|_| text.parse().map(utoipa::Number::Float))
        .ok()
}

fn list_schema(item: Schema, min: usize, items_max: usize, property: &Property) -> Schema {
    let min_items = (min > 0).then_some(min);
    ArrayBuilder::new()
        .schema_type(nullable_type(Type::Array, property.presence))
        .items(RefOr::T(item))
        .min_items(min_items)
        .max_items(Some(items_max))
        .extensions(Some(rule_extensions(property)))
        .build()
        .into()
}

/// Returns the schema of an object with any names, whose values are texts.
fn texts_by_name_schema(max: usize) -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(text_item_schema(max)))
        .build()
        .into()
}

fn text_item_schema(max: usize) -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(max))
        .build()
        .into()
}

fn number_list_schema(items_max: usize, max: u32, property: &Property) -> Schema {
    let item = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(0))
        .maximum(Some(i64::from(max)));
    ArrayBuilder::new()
        .schema_type(nullable_type(Type::Array, property.presence))
        .items(item)
        .min_items(Some(1))
        .max_items(Some(items_max))
        .extensions(Some(rule_extensions(property)))
        .build()
        .into()
}
