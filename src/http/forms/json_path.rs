//! A position in a body, and the values that count as absent there.

use serde_json::Value;

use crate::domain::kernel::invisible;

/// A position in the body. The text of the path is built only for a fault, so that valid bodies cost no allocation.
#[derive(Clone, Copy)]
pub(crate) enum JsonPath<'p> {
    Root,
    Field(&'p JsonPath<'p>, &'p str),
    Item(&'p JsonPath<'p>, usize),
}

impl JsonPath<'_> {
    /// Returns the names and indexes from the root to this position.
    pub(crate) fn steps(&self) -> Vec<String> {
        let (parent, last) = match self {
            Self::Root => return Vec::new(),
            Self::Field(parent, name) => (parent, (*name).to_owned()),
            Self::Item(parent, index) => (parent, index.to_string()),
        };
        let mut steps = parent.steps();
        steps.push(last);
        steps
    }

    /// Returns this position as a dotted path, such as `invoice_lines.0.quantity`.
    pub(crate) fn dotted_path(&self) -> String {
        self.steps().join(".")
    }
}

/// Returns true for null, a blank text and an empty list, which all mean the same as leaving the field out.
pub(super) fn is_absent(value: &Value) -> bool {
    value.is_null() || is_blank(value) || value.as_array().is_some_and(Vec::is_empty)
}

/// Returns true if the value is a text without any visible character.
pub(super) fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(invisible::is_blank)
}
