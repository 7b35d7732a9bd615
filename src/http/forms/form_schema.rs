//! Derives the schema of a form by running the form on an empty object, so that the two always agree.

use std::cell::RefCell;

use serde_json::Map;

use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::json_path::JsonPath;
use crate::http::forms::reader::{FormReport, Reader};

/// The fields of one JSON object, in the order in which its form reads them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FormSchema(pub(crate) Vec<Property>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Property {
    pub(crate) name: &'static str,
    pub(crate) presence: Presence,
    pub(crate) shape: FieldType,
}

/// Says whether a field must be present. `Conditional` means that the field is required only if other fields say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Conditional,
    Optional,
}

/// The type of a field's value, with the limits that the form checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldType {
    /// A text of `min` to `max` characters.
    Text {
        min: usize,
        max: usize,
    },
    /// A text of at most `max` characters, without invisible characters.
    Identifier {
        max: usize,
    },
    Email,
    Date,
    /// A text with a special format, which `description` describes. Any other text violates the rule `rule`.
    Formatted {
        rule: &'static str,
        description: String,
    },
    /// A text like `pattern`, in which each 9 stands for one digit. If `list` is set, the text must be on that list.
    Pattern {
        pattern: &'static str,
        list: Option<ReferenceList>,
    },
    /// One of the words in this comma-separated list, in upper or lower case.
    Word(String),
    /// A code from one of the authority's lists, of at most `max` characters.
    Code {
        max: usize,
        list: ReferenceList,
    },
    Currency,
    Country,
    /// An id that this service assigned, such as an invoice's id.
    Id,
    /// The sequence number of an event, or a timestamp (RFC 3339).
    LogPosition,
    /// An IRN of at most `max` characters.
    Irn {
        max: usize,
    },
    Number(AmountBounds),
    Boolean,
    Object(FormSchema),
    /// A list of `min` to `items_max` objects. `item` is the schema of one object.
    Objects {
        min: usize,
        items_max: usize,
        item: FormSchema,
    },
    /// A whole number from 0 to `max`.
    WholeNumber {
        max: u32,
    },
    /// A timestamp (RFC 3339).
    Moment,
    /// A list of 1 to `items_max` whole numbers, each from 0 to `max`.
    WholeNumbers {
        items_max: usize,
        max: u32,
    },
    /// A list of at most `items_max` texts, each of at most `max` characters.
    Texts {
        items_max: usize,
        max: usize,
    },
    /// An object with any names, whose values are texts of at most `max` characters.
    TextsByName {
        max: usize,
    },
    /// An object with any names, whose values are again objects with any names, whose values are texts of at most `max`
    /// characters.
    NestedTextsByName {
        max: usize,
    },
}

/// Collects the fields that a form requests.
#[derive(Debug, Default)]
pub(crate) struct SchemaRecorder(RefCell<Vec<Property>>);

impl SchemaRecorder {
    pub(crate) fn record(&self, property: Property) {
        self.0.borrow_mut().push(property);
    }
}

impl Property {
    /// Returns the ids of the rules that this field can violate without regard to other fields.
    pub(crate) fn rule_ids(&self) -> Vec<&'static str> {
        let required = (self.presence != Presence::Optional).then_some("required");
        let own = self.shape.rule_ids();
        required
            .into_iter()
            .chain(["type"])
            .chain(own.into_iter().flatten())
            .collect()
    }
}

impl FieldType {
    /// Returns the ids of the rules that a value of the right JSON type may still violate.
    fn rule_ids(&self) -> [Option<&'static str>; 3] {
        match self {
            Self::Text { min, .. } => [
                (*min > 0).then_some("min"),
                Some("max"),
                Some("control_characters"),
            ],
            Self::Identifier { .. } => [
                Some("max"),
                Some("control_characters"),
                Some("invisible_characters"),
            ],
            Self::Email => [Some("max"), Some("email"), None],
            Self::Date => [Some("date"), None, None],
            Self::Formatted { rule, .. } => [Some(rule), None, None],
            Self::Pattern { list, .. } => [Some("format"), list.map(|_| "exists"), None],
            Self::Country => [Some("country"), Some("exists"), None],
            Self::Id | Self::WholeNumber { .. } => [Some("integer"), None, None],
            Self::LogPosition => [Some("format"), None, None],
            Self::Word(_) => [Some("one_of"), None, None],
            Self::Code { .. } => [Some("max"), Some("exists"), None],
            Self::Currency => [Some("currency"), Some("exists"), None],
            Self::Irn { .. } => [Some("max"), Some("irn_malformed"), None],
            Self::Number(AmountBounds::Any) => [Some("digits"), None, None],
            Self::Number(AmountBounds::Above(_)) => [Some("digits"), Some("greater_than"), None],
            Self::Number(AmountBounds::AtLeast(_)) => [Some("digits"), Some("min"), None],
            Self::Number(AmountBounds::Within(..)) => [Some("digits"), Some("min"), Some("max")],
            Self::Boolean | Self::Object(_) => [None, None, None],
            Self::Objects { min, .. } => [(*min > 0).then_some("min"), Some("max"), None],
            Self::WholeNumbers { .. } => [Some("min"), Some("max"), Some("integer")],
            Self::Moment => [Some("date_time"), None, None],
            Self::Texts { .. } => [Some("max"), None, None],
            Self::TextsByName { .. } | Self::NestedTextsByName { .. } => {
                [Some("max"), Some("one_of"), None]
            }
        }
    }
}

impl FormSchema {
    /// Records the schema of a form by running the form on an empty object.
    pub(crate) fn for_form<T>(form: impl FnOnce(&mut Reader<'_>) -> Option<T>) -> Self {
        let empty_object = Map::new();
        let catalog = Catalog::default();
        let recorder = SchemaRecorder::default();
        let report = FormReport::new(&catalog, 0);
        let _ = form(&mut Reader::with_recorder(
            &empty_object,
            JsonPath::Root,
            &report,
            &recorder,
        ));
        Self(recorder.0.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::forms::standard_invoice;
    use crate::http::forms::update_status;

    fn find_property<'o>(form: &'o FormSchema, name: &str) -> &'o Property {
        form.0
            .iter()
            .find(|property| property.name == name)
            .unwrap()
    }

    #[test]
    fn a_schema_lists_each_field_once_in_the_order_of_the_form() {
        let names: Vec<_> = FormSchema::for_form(update_status::read)
            .0
            .iter()
            .map(|field| field.name)
            .collect();
        assert_eq!(names, ["unique_no", "unique_no_type", "status", "remark"]);
    }

    #[test]
    fn a_schema_has_the_limits_that_the_form_checks() {
        let form = FormSchema::for_form(update_status::read);
        let remark = find_property(&form, "remark");
        assert_eq!(
            (remark.presence, &remark.shape),
            (Presence::Required, &FieldType::Text { min: 3, max: 1_000 })
        );
        assert_eq!(
            find_property(&form, "status").shape,
            FieldType::Word("draft, approved, cancelled".to_owned())
        );
    }

    #[test]
    fn a_schema_has_the_fields_of_objects_and_lists() {
        let form = FormSchema::for_form(standard_invoice::read);
        let FieldType::Objects {
            min: 1,
            items_max: 10_000,
            item: lines,
        } = &find_property(&form, "invoice_lines").shape
        else {
            panic!("{form:?}")
        };
        assert_eq!(
            find_property(lines, "discount_rate").shape,
            FieldType::Number(AmountBounds::PERCENTAGE)
        );
        let FieldType::Object(customer) = &find_property(&form, "customer").shape else {
            panic!("{form:?}")
        };
        assert_eq!(find_property(customer, "email").shape, FieldType::Email);
        assert_eq!(
            find_property(customer, "tin").presence,
            Presence::Conditional
        );
    }
}
