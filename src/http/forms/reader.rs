//! Reads the fields of one JSON object. A field is asked for by its name, as required or optional, and then
//! as what it has to be (see `field`). Fields that nobody asked for are unknown. Texts are read without the
//! blanks around them, as Laravel's `TrimStrings` does, so that ` INV001` is no other number than `INV001`;
//! passwords are read as they are.

use serde_json::{Map, Value};

use crate::domain::kernel::fault::Fault;
use crate::http::forms::field::Field;
use crate::http::forms::form_schema::{Presence, SchemaRecorder};
use crate::http::forms::report::Report;

/// Where in the body something stands. Its text is put together only for a fault.
#[derive(Clone, Copy)]
pub(crate) enum JsonPath<'p> {
    Root,
    Field(&'p JsonPath<'p>, &'p str),
    Item(&'p JsonPath<'p>, usize),
}

impl JsonPath<'_> {
    /// The names and positions that lead here.
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

    /// The dot path, such as `invoice_lines.0.quantity`.
    pub(crate) fn path(&self) -> String {
        self.steps().join(".")
    }
}

/// One object of the body.
pub(crate) struct Reader<'r> {
    object: &'r Map<String, Value>,
    place: JsonPath<'r>,
    report: &'r Report<'r>,
    asked: Vec<&'static str>,
    recorder: Option<&'r SchemaRecorder>,
}

impl<'r> Reader<'r> {
    /// Reads an object with a form; what the form did not ask for is reported as unknown.
    pub(crate) fn read<T>(
        object: &'r Map<String, Value>,
        place: JsonPath<'r>,
        report: &'r Report<'r>,
        form: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let mut reader = Self { object, place, report, asked: Vec::new(), recorder: None };
        let value = form(&mut reader);
        for name in object.keys().filter(|name| !reader.asked.contains(&name.as_str())) {
            report.unknown(JsonPath::Field(&place, name).steps());
        }
        value
    }

    /// Reads nothing: the form only says what it asks for.
    pub(crate) fn sketched(
        object: &'r Map<String, Value>,
        place: JsonPath<'r>,
        report: &'r Report<'r>,
        recorder: &'r SchemaRecorder,
    ) -> Self {
        Self { object, place, report, asked: Vec::new(), recorder: Some(recorder) }
    }

    /// A field that has to be there: null and blank text are as good as absent.
    pub(crate) fn required(&mut self, name: &'static str) -> Field<'_> {
        self.field(name, Presence::Required, true)
    }

    pub(crate) fn optional(&mut self, name: &'static str) -> Field<'_> {
        self.field(name, Presence::Optional, false)
    }

    /// A field that is required on a condition.
    pub(crate) fn required_if(&mut self, condition: bool, name: &'static str) -> Field<'_> {
        self.field(name, Presence::Conditional, condition)
    }

    fn field(&mut self, name: &'static str, presence: Presence, is_required: bool) -> Field<'_> {
        self.asked.push(name);
        Field {
            parent: &self.place,
            name,
            value: self.object.get(name).filter(|value| !value.is_null()),
            is_required,
            report: self.report,
            recorder: self.recorder.map(|recorder| (recorder, presence)),
        }
    }

    /// Whether a field was sent with something in it.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| !is_absent(value))
    }

    /// Whether a field was sent as null, where that says something else than its absence.
    pub(crate) fn is_null(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(Value::is_null)
    }

    /// Faults a field for a reason that lies in several fields.
    pub(crate) fn fault(&self, name: &str, rule: &'static str, what: &str) {
        let path = JsonPath::Field(&self.place, name).path();
        let message = format!("The {path} field {what}.");
        self.report.fault(Fault::new(path, rule, message));
    }

    /// Remarks on something odd that is accepted.
    pub(crate) fn warn(&self, warning: impl Into<String>) {
        self.report.note(warning);
    }

    pub(crate) fn catalog(&self) -> &'r crate::domain::reference::catalog::Catalog {
        self.report.catalog
    }
}

fn is_absent(value: &Value) -> bool {
    value.is_null() || is_blank(value)
}

/// Whether it is a text that says nothing.
pub(super) fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
}
