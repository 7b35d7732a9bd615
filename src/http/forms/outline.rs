//! What a form asks for, told by the form itself: it is read once with nothing sent, and each field that it
//! asks for says its name, whether it has to be there and what it may be. So the document of the API cannot say
//! anything else than what is checked.

use std::cell::RefCell;

use serde_json::Map;

use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::bounds::Bounds;
use crate::http::forms::reader::{Place, Reader};
use crate::http::forms::report::Report;

/// The fields of an object, in the order in which they are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Outline(pub(crate) Vec<Property>);

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Property {
    pub(crate) name: &'static str,
    pub(crate) need: Need,
    pub(crate) shape: Shape,
}

/// Whether a field has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    Conditional,
    Optional,
}

/// What a field may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A text, and its least and most characters.
    Text {
        min: usize,
        max: usize,
    },
    Email,
    Date,
    /// A text of a form of its own: the rule, and the rest of its sentence.
    Formatted {
        rule: &'static str,
        what: &'static str,
    },
    /// A text of this picture, in which each 9 is a digit; perhaps also of a list.
    Picture {
        picture: &'static str,
        list: Option<ReferenceList>,
    },
    /// One of these words, in any case.
    Word(String),
    /// A code of one of the authority's lists.
    Code {
        max: usize,
        list: ReferenceList,
    },
    Currency,
    Country,
    /// A portal id.
    Id,
    /// The sequence of an event, or a moment (RFC 3339).
    Since,
    /// An IRN of at most so many characters.
    Irn {
        max: usize,
    },
    Number(Bounds),
    Boolean,
    Object(Outline),
    /// A list of at least so many objects.
    Objects {
        min: usize,
        of: Outline,
    },
    /// A whole number from 0 to this one.
    WholeNumber {
        max: u32,
    },
    /// A moment (RFC 3339).
    Moment,
    /// A list of whole numbers from 0 to this one: at least one, and at most so many.
    WholeNumbers {
        items_max: usize,
        max: u32,
    },
    /// A list of texts, of at most so many characters each.
    Texts {
        max: usize,
    },
}

/// Collects while a form is read with nothing sent.
#[derive(Debug, Default)]
pub(crate) struct Sketch(RefCell<Vec<Property>>);

impl Sketch {
    pub(crate) fn draw(&self, property: Property) {
        self.0.borrow_mut().push(property);
    }
}

impl Property {
    /// The ids of the rules that this field may break by itself; what hangs on several fields is not among them.
    pub(crate) fn rules(&self) -> Vec<&'static str> {
        let required = (self.need != Need::Optional).then_some("required");
        let own = self.shape.rules();
        required.into_iter().chain(["type"]).chain(own.into_iter().flatten()).collect()
    }
}

impl Shape {
    /// What else is checked where the type is right.
    fn rules(&self) -> [Option<&'static str>; 3] {
        match self {
            Self::Text { min, .. } => [(*min > 0).then_some("min"), Some("max"), Some("control_characters")],
            Self::Email => [Some("max"), Some("email"), None],
            Self::Date => [Some("date"), None, None],
            Self::Formatted { rule, .. } => [Some(rule), None, None],
            Self::Picture { list, .. } => [Some("format"), list.map(|_| "exists"), None],
            Self::Country => [Some("country"), Some("exists"), None],
            Self::Id | Self::WholeNumber { .. } => [Some("integer"), None, None],
            Self::Since => [Some("format"), None, None],
            Self::Word(_) => [Some("one_of"), None, None],
            Self::Code { .. } => [Some("max"), Some("exists"), None],
            Self::Currency => [Some("currency"), Some("exists"), None],
            Self::Irn { .. } => [Some("max"), Some("irn_malformed"), None],
            Self::Number(Bounds::Any) => [Some("digits"), None, None],
            Self::Number(Bounds::Above(_)) => [Some("digits"), Some("greater_than"), None],
            Self::Number(Bounds::AtLeast(_)) => [Some("digits"), Some("min"), None],
            Self::Number(Bounds::Within(..)) => [Some("digits"), Some("min"), Some("max")],
            Self::Boolean | Self::Object(_) => [None, None, None],
            Self::Objects { min, .. } => [(*min > 0).then_some("min"), Some("max"), None],
            Self::WholeNumbers { .. } => [Some("min"), Some("max"), Some("integer")],
            Self::Moment => [Some("date_time"), None, None],
            Self::Texts { .. } => [Some("max"), None, None],
        }
    }
}

impl Outline {
    /// Of a form.
    pub(crate) fn of<T>(form: impl FnOnce(&mut Reader<'_>) -> Option<T>) -> Self {
        let (nothing, catalog, sketch) = (Map::new(), Catalog::default(), Sketch::default());
        let report = Report::new(&catalog, 0);
        let _ = form(&mut Reader::sketched(&nothing, Place::Root, &report, &sketch));
        Self(sketch.0.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::forms::{standard_invoice, update_status};

    fn named<'o>(outline: &'o Outline, name: &str) -> &'o Property {
        outline.0.iter().find(|property| property.name == name).unwrap()
    }

    #[test]
    fn a_form_tells_each_field_once_in_its_order() {
        let names: Vec<_> = Outline::of(update_status::read).0.iter().map(|field| field.name).collect();
        assert_eq!(names, ["unique_no", "unique_no_type", "status", "remark"]);
    }

    #[test]
    fn what_a_field_may_be_is_what_is_checked() {
        let outline = Outline::of(update_status::read);
        let remark = named(&outline, "remark");
        assert_eq!((remark.need, &remark.shape), (Need::Required, &Shape::Text { min: 3, max: 1_000 }));
        assert_eq!(named(&outline, "status").shape, Shape::Word("draft, approved, cancelled".to_owned()));
    }

    #[test]
    fn parts_and_lists_are_told_with_their_fields() {
        let outline = Outline::of(standard_invoice::read);
        let Shape::Objects { min: 1, of: lines } = &named(&outline, "invoice_lines").shape else {
            panic!("{outline:?}")
        };
        assert_eq!(named(lines, "discount_rate").shape, Shape::Number(Bounds::PERCENTAGE));
        let Shape::Object(customer) = &named(&outline, "customer").shape else { panic!("{outline:?}") };
        assert_eq!(named(customer, "email").shape, Shape::Email);
        assert_eq!(named(customer, "tin").need, Need::Conditional);
    }
}
