//! Faults of request fields: path of the field, stable id of a rule, and message. A form reports all faults at once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::domain::kernel::field_rule::FieldRule;

/// A field and the rule that it breaks. `Display` writes the message, which tells the caller what to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The dot path of the field from the root of the body, such as `invoice_lines.0.quantity`.
    pub path: String,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    /// The field breaks this rule.
    Field(FieldRule),
    /// A message of its own, for faults whose message does not begin with `The … field`.
    Message { rule: &'static str, message: String },
}

impl Fault {
    /// Creates a fault with its own message.
    pub fn new(path: impl Into<String>, rule: &'static str, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            problem: Problem::Message {
                rule,
                message: message.into(),
            },
        }
    }

    /// Creates the fault of a field that breaks a rule.
    pub fn field(path: impl Into<String>, rule: FieldRule) -> Self {
        Self {
            path: path.into(),
            problem: Problem::Field(rule),
        }
    }

    /// Returns the fault with the label of the field in place of its name, for a page. A field without a label keeps
    /// its name.
    #[must_use]
    pub fn with_labels<L>(self, label: impl Fn(&str) -> Option<L>) -> Self
    where
        L: Into<Cow<'static, str>>,
    {
        let Problem::Field(rule) = self.problem else {
            return self;
        };
        let label = |name: &str| label(name).map(Into::<Cow<'static, str>>::into);
        let rule = match rule {
            FieldRule::NotBefore(other) => match label(other) {
                Some(Cow::Borrowed(other)) => FieldRule::NotBefore(other),
                _ => FieldRule::NotBefore(other),
            },
            rule => rule,
        };
        let name = label(&self.path).unwrap_or_else(|| Cow::Owned(self.path.clone()));
        let message = format!("The {name} field {rule}.");
        Self::new(self.path, rule.id(), message)
    }

    /// Returns the stable id of the rule, such as `required` or `exists`.
    pub fn rule(&self) -> &'static str {
        match &self.problem {
            Problem::Field(rule) => rule.id(),
            Problem::Message { rule, .. } => rule,
        }
    }

    /// Returns the value that the rule expects, if the rule names one.
    pub fn expected_value(&self) -> Option<String> {
        match &self.problem {
            Problem::Field(rule) => rule.expected_value(),
            Problem::Message { .. } => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Problem::Field(rule) => write!(f, "The {} field {rule}.", self.path),
            Problem::Message { message, .. } => f.write_str(message),
        }
    }
}

/// Converts a dot path to a JSON Pointer (RFC 6901): `lines.0.price` becomes `/lines/0/price`.
pub fn json_pointer(path: &str) -> String {
    format!(
        "/{}",
        path.replace('~', "~0").replace('/', "~1").replace('.', "/")
    )
}

/// The maximum number of faults of one request that are kept. Further faults are dropped, so that a small body cannot
/// cause a large response.
pub const FAULTS_MAX: usize = 1_000;

/// The faults found in one request, in the order of the fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    kept: Vec<Fault>,
    /// True once as many faults are kept as may be. Nobody knows then how many others there are.
    is_full: bool,
    max: usize,
}

impl Default for Faults {
    fn default() -> Self {
        Self::with_max(FAULTS_MAX)
    }
}

impl Faults {
    /// Creates an empty list that keeps up to `max` faults and drops all further faults.
    pub fn with_max(max: usize) -> Self {
        Self {
            kept: Vec::new(),
            is_full: false,
            max,
        }
    }

    pub fn push(&mut self, fault: Fault) {
        if !self.is_full {
            self.kept.push(fault);
            self.is_full = self.kept.len() >= self.max;
        }
    }

    /// Adds a suggestion to the fault of the missing field `path`: the unknown field `sent` was probably meant for it.
    pub fn add_misspelling_hint(&mut self, path: &str, sent: &str) {
        let found = self.kept.iter_mut().find(|fault| {
            let is_missing = matches!(
                fault.problem,
                Problem::Field(FieldRule::Required | FieldRule::Other { id: "required", .. })
            );
            is_missing && fault.path == path
        });
        if let Some(fault) = found {
            let rule = FieldRule::Misspelt {
                sent: sent.to_owned(),
            };
            fault.problem = Problem::Field(rule);
        }
    }

    /// True if a kept fault says no more than that the field at this path is required.
    pub fn is_required_only(&self, path: &str) -> bool {
        let required = Problem::Field(FieldRule::Required);
        self.iter()
            .any(|fault| fault.path == path && fault.problem == required)
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns the value that was read. If reading failed, adds the fault to the list and returns `None`.
    pub fn keep<T>(&mut self, read: Result<Option<T>, Fault>) -> Option<T> {
        read.unwrap_or_else(|fault| {
            self.push(fault);
            None
        })
    }

    /// True if the list is full. Further faults are then dropped, so the caller can stop validating a long list.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Iterates over the kept faults, in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.kept.iter()
    }

    /// Returns the faults with paths changed by `rename`. If two faults of one rule get the same path, only one is
    /// kept.
    #[must_use]
    pub fn rename_fields(self, rename: impl Fn(&str) -> String) -> Self {
        let mut kept: Vec<Fault> = Vec::new();
        for fault in self.kept {
            let fault = Fault {
                path: rename(&fault.path),
                ..fault
            };
            if !kept.contains(&fault) {
                kept.push(fault);
            }
        }
        Self { kept, ..self }
    }

    /// Returns the faults, each changed by `change`.
    #[must_use]
    pub fn map(self, change: impl FnMut(Fault) -> Fault) -> Self {
        let kept = self.kept.into_iter().map(change).collect();
        Self { kept, ..self }
    }

    /// Returns the message of the first fault and the number of further faults, such as `(and 2 more errors)`. A full
    /// list says `at least`, because callers stop to look for faults then.
    pub fn summary(&self) -> String {
        let first = self
            .kept
            .first()
            .map_or_else(|| "The request is invalid.".to_owned(), Fault::to_string);
        match self.kept.len().saturating_sub(1) {
            0 => first,
            more if self.is_full => format!("{first} (and at least {more} more errors)"),
            1 => format!("{first} (and 1 more error)"),
            more => format!("{first} (and {more} more errors)"),
        }
    }

    /// Returns the messages of the kept faults, keyed by field path, as the body of a 422 response shows them.
    pub fn by_path(&self) -> BTreeMap<&str, Vec<String>> {
        let mut paths: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for fault in &self.kept {
            paths
                .entry(&fault.path)
                .or_default()
                .push(fault.to_string());
        }
        paths
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self {
            kept: vec![fault],
            ..Self::default()
        }
    }
}

impl FromIterator<Fault> for Faults {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        let mut all = Self::default();
        for fault in faults {
            all.push(fault);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(count: usize) -> Faults {
        (0..count)
            .map(|n| Fault::new(format!("f{n}"), "required", format!("Fault {n}.")))
            .collect()
    }

    #[test]
    fn a_pointer_escapes_its_special_characters() {
        assert_eq!(
            json_pointer("invoice_lines.0.quantity"),
            "/invoice_lines/0/quantity"
        );
        let body = serde_json::json!({ "a/b": { "~": { "c~1": 7 } } });
        assert_eq!(json_pointer("a/b.~.c~1"), "/a~1b/~0/c~01");
        assert_eq!(
            body.pointer(&json_pointer("a/b.~.c~1")),
            Some(&serde_json::json!(7))
        );
    }

    #[test]
    fn the_summary_counts_the_faults_after_the_first() {
        assert_eq!(faults(1).summary(), "Fault 0.");
        assert_eq!(faults(2).summary(), "Fault 0. (and 1 more error)");
        assert_eq!(faults(4).summary(), "Fault 0. (and 3 more errors)");
    }

    #[test]
    fn a_full_list_says_that_there_may_be_more_faults() {
        for (found, is_full, summary) in [
            (FAULTS_MAX - 1, false, "Fault 0. (and 998 more errors)"),
            (FAULTS_MAX, true, "Fault 0. (and at least 999 more errors)"),
            (
                FAULTS_MAX + 7,
                true,
                "Fault 0. (and at least 999 more errors)",
            ),
        ] {
            let many = faults(found);
            assert_eq!(many.iter().count(), found.min(FAULTS_MAX));
            assert_eq!(
                (many.is_full(), many.summary().as_str()),
                (is_full, summary)
            );
        }
        let one_path = faults(FAULTS_MAX).map(|fault| Fault::new(fault.path, "odd", "Odd."));
        let renamed = one_path.rename_fields(|path| path[..2].to_owned());
        assert_eq!(renamed.summary(), "Odd. (and at least 9 more errors)");
    }

    #[test]
    fn several_faults_of_one_field_share_its_path() {
        let faults: Faults = [
            Fault::field("a", FieldRule::MaxChars(3)),
            Fault::new("a", "format", "Odd."),
        ]
        .into_iter()
        .collect();
        assert_eq!(
            faults.by_path()["a"],
            ["The a field must not be greater than 3 characters.", "Odd."]
        );
    }

    #[test]
    fn a_page_calls_a_field_by_its_label() {
        let label = |name: &str| match name {
            "date_from" => Some("Issued from"),
            "date_to" => Some("Issued until"),
            _ => None,
        };
        let own = Fault::new("date_to", "odd", "This date is odd.");
        for (fault, rule, sentence) in [
            (
                Fault::field("date_from", FieldRule::Required),
                "required",
                "The Issued from field is required.",
            ),
            (
                Fault::field("date_to", FieldRule::NotBefore("date_from")),
                "after_or_equal",
                "The Issued until field must not be before Issued from.",
            ),
            (
                Fault::field("cursor", FieldRule::NotBefore("page")),
                "after_or_equal",
                "The cursor field must not be before page.",
            ),
            (own, "odd", "This date is odd."),
        ] {
            let path = fault.path.clone();
            let labelled = fault.with_labels(label);
            assert_eq!(labelled.to_string(), sentence);
            assert_eq!((labelled.path.as_str(), labelled.rule()), (&*path, rule));
        }
    }

    #[test]
    fn a_label_may_be_made_for_its_field() {
        let label = |name: &str| {
            let line = name.strip_prefix("lines.0.")?;
            Some(format!("Line 1, {line}"))
        };
        let fault = Fault::field("lines.0.quantity", FieldRule::Required).with_labels(label);
        assert_eq!(fault.to_string(), "The Line 1, quantity field is required.");
        assert_eq!(fault.path, "lines.0.quantity");
    }

    #[test]
    fn the_rule_of_a_field_names_the_expected_value() {
        let required = Fault::field("customer.no", FieldRule::Required);
        assert_eq!(
            (required.rule(), required.expected_value()),
            ("required", Some("a value".to_owned()))
        );
        let taken = Fault::new("email", "unique", "The email has already been taken.");
        assert_eq!((taken.rule(), taken.expected_value()), ("unique", None));
    }
}
