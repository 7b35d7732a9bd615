//! The rules that a field can break. Each has a stable id, a sentence for the caller, and an expected value.

use std::borrow::Cow;
use std::fmt;

use crate::domain::money::Amount;

/// A rule that a field can break. `Display` writes the words after the field's name, such as `is required`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldRule {
    Required,
    /// The required field is missing, but a similarly named field was sent that the form does not know.
    Misspelt {
        sent: String,
    },
    /// The JSON type that the field must have, such as `a number`.
    Type(&'static str),
    MinChars(usize),
    MaxChars(usize),
    MinItems(usize),
    MaxItems(usize),
    NoControlCharacters,
    /// The field identifies something, so every character of it must be visible.
    NoInvisibleCharacters,
    /// The code must be in the reference list `list`. `meant` is the code that was probably meant by a misspelt one.
    Listed {
        list: &'static str,
        meant: Option<String>,
    },
    /// The allowed words, separated by commas.
    OneOf(String),
    Above(Amount),
    AtLeast(Amount),
    AtMost(Amount),
    /// The day must not be before the day in the field with this name.
    NotBefore(&'static str),
    /// The field must be written in this format.
    Written {
        id: &'static str,
        format: &'static str,
    },
    /// The field must be what `value` describes, such as `a valid absolute URL`.
    MustBe {
        id: &'static str,
        value: Cow<'static, str>,
    },
    /// Any other rule. `sentence` is its message, and `expected` describes a correct value.
    Other {
        id: &'static str,
        sentence: Cow<'static, str>,
        expected: Option<&'static str>,
    },
}

impl FieldRule {
    pub const DATE: Self = Self::MustBe {
        id: "date",
        value: Cow::Borrowed("a date written YYYY-MM-DD"),
    };
    pub const MOMENT: Self = Self::MustBe {
        id: "date_time",
        value: Cow::Borrowed("an RFC 3339 time"),
    };
    pub const NOT_IN_FUTURE: Self = Self::Other {
        id: "before_or_equal",
        sentence: Cow::Borrowed("must not be in the future"),
        expected: Some("today or an earlier day"),
    };

    pub fn must_be(id: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        Self::MustBe {
            id,
            value: value.into(),
        }
    }

    /// Creates a rule with its own sentence and without an expected value.
    pub fn other(id: &'static str, sentence: impl Into<Cow<'static, str>>) -> Self {
        Self::Other {
            id,
            sentence: sentence.into(),
            expected: None,
        }
    }

    /// Creates a rule with this error message and this description of the values that are allowed.
    pub fn with_expected(id: &'static str, sentence: &'static str, expected: &'static str) -> Self {
        Self::Other {
            id,
            sentence: sentence.into(),
            expected: Some(expected),
        }
    }

    pub fn id(&self) -> &'static str {
        match self {
            Self::Required | Self::Misspelt { .. } => "required",
            Self::Type(_) => "type",
            Self::MinChars(_) | Self::MinItems(_) | Self::AtLeast(_) => "min",
            Self::MaxChars(_) | Self::MaxItems(_) | Self::AtMost(_) => "max",
            Self::NoControlCharacters => "control_characters",
            Self::NoInvisibleCharacters => "invisible_characters",
            Self::Listed { .. } => "exists",
            Self::OneOf(_) => "one_of",
            Self::Above(_) => "greater_than",
            Self::NotBefore(_) => "after_or_equal",
            Self::Written { id, .. } | Self::MustBe { id, .. } | Self::Other { id, .. } => id,
        }
    }

    /// Returns the expected value; `None` if the rule only excludes values.
    pub fn expected_value(&self) -> Option<String> {
        Some(match self {
            Self::Required | Self::Misspelt { .. } => "a value".to_owned(),
            Self::Type(name) => (*name).to_owned(),
            Self::MinChars(min) => format!("at least {min} characters"),
            Self::MaxChars(max) => format!("at most {max} characters"),
            Self::MinItems(min) => format!("at least {min} items"),
            Self::MaxItems(max) => format!("at most {max} items"),
            Self::NoControlCharacters => "a text without control characters".to_owned(),
            Self::NoInvisibleCharacters => {
                "a text without invisible characters and direction controls".to_owned()
            }
            Self::Listed { list, .. } => format!("a code of {list}"),
            Self::OneOf(words) => format!("one of {words}"),
            Self::Above(min) => format!("more than {min}"),
            Self::AtLeast(min) => format!("at least {min}"),
            Self::AtMost(max) => format!("at most {max}"),
            Self::NotBefore(field) => format!("the day of {field} or a later one"),
            Self::Written { format, .. } => (*format).to_owned(),
            Self::MustBe { value, .. } => value.clone().into_owned(),
            Self::Other { expected, .. } => return expected.map(str::to_owned),
        })
    }
}

impl fmt::Display for FieldRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required => f.write_str("is required"),
            Self::Misspelt { sent } => {
                write!(f, "is required (you sent {sent}, which is no field)")
            }
            Self::Type(name) => write!(f, "must be {name}"),
            Self::MinChars(min) => write!(f, "must be at least {min} characters"),
            Self::MaxChars(max) => write!(f, "must not be greater than {max} characters"),
            Self::MinItems(min) => write!(f, "must have at least {min} items"),
            Self::MaxItems(max) => write!(f, "must not have more than {max} items"),
            Self::NoControlCharacters => {
                f.write_str("must not contain control characters or noncharacters")
            }
            Self::NoInvisibleCharacters => {
                f.write_str("must not contain invisible characters or direction controls")
            }
            Self::Listed { list, meant: None } => write!(f, "must exist in {list}"),
            Self::Listed {
                list,
                meant: Some(code),
            } => {
                write!(f, "must exist in {list} (did you mean {code}?)")
            }
            Self::OneOf(words) => write!(f, "must be one of {words}"),
            Self::Above(min) => write!(f, "must be greater than {min}"),
            Self::AtLeast(min) => write!(f, "must be at least {min}"),
            Self::AtMost(max) => write!(f, "must not be greater than {max}"),
            Self::NotBefore(field) => write!(f, "must not be before {field}"),
            Self::Written { format, .. } => write!(f, "must be written {format}"),
            Self::MustBe { value, .. } => write!(f, "must be {value}"),
            Self::Other { sentence, .. } => f.write_str(sentence),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the id, the sentence and the expected value of each rule.
    fn check<const N: usize>(cases: [(FieldRule, &str, &str, &str); N]) {
        for (rule, id, sentence, expected) in cases {
            let found = (rule.id(), rule.to_string(), rule.expected_value());
            assert_eq!(found, (id, sentence.to_owned(), Some(expected.to_owned())));
        }
    }

    #[test]
    fn a_rule_about_the_shape_of_a_value_has_an_id_a_sentence_and_an_expected_value() {
        let irn = FieldRule::Written {
            id: "irn_malformed",
            format: "{no}-{id}",
        };
        check([
            (FieldRule::Required, "required", "is required", "a value"),
            (
                FieldRule::Misspelt {
                    sent: "custmer".to_owned(),
                },
                "required",
                "is required (you sent custmer, which is no field)",
                "a value",
            ),
            (
                FieldRule::Type("a number"),
                "type",
                "must be a number",
                "a number",
            ),
            (
                FieldRule::MinChars(3),
                "min",
                "must be at least 3 characters",
                "at least 3 characters",
            ),
            (
                FieldRule::MaxChars(3),
                "max",
                "must not be greater than 3 characters",
                "at most 3 characters",
            ),
            (
                FieldRule::MinItems(1),
                "min",
                "must have at least 1 items",
                "at least 1 items",
            ),
            (
                FieldRule::MaxItems(9),
                "max",
                "must not have more than 9 items",
                "at most 9 items",
            ),
            (
                FieldRule::NoControlCharacters,
                "control_characters",
                "must not contain control characters or noncharacters",
                "a text without control characters",
            ),
            (
                FieldRule::NoInvisibleCharacters,
                "invisible_characters",
                "must not contain invisible characters or direction controls",
                "a text without invisible characters and direction controls",
            ),
            (
                irn,
                "irn_malformed",
                "must be written {no}-{id}",
                "{no}-{id}",
            ),
            (
                FieldRule::DATE,
                "date",
                "must be a date written YYYY-MM-DD",
                "a date written YYYY-MM-DD",
            ),
        ]);
    }

    #[test]
    fn a_rule_about_the_allowed_values_has_an_id_a_sentence_and_an_expected_value() {
        let hundred = Amount::ONE_HUNDRED;
        let listed = |meant: Option<&str>| FieldRule::Listed {
            list: "currencies",
            meant: meant.map(str::to_owned),
        };
        let words = FieldRule::OneOf("B2B, B2C".to_owned());
        check([
            (
                listed(None),
                "exists",
                "must exist in currencies",
                "a code of currencies",
            ),
            (
                listed(Some("NGN")),
                "exists",
                "must exist in currencies (did you mean NGN?)",
                "a code of currencies",
            ),
            (
                words,
                "one_of",
                "must be one of B2B, B2C",
                "one of B2B, B2C",
            ),
            (
                FieldRule::Above(Amount::ZERO),
                "greater_than",
                "must be greater than 0",
                "more than 0",
            ),
            (
                FieldRule::AtLeast(Amount::ZERO),
                "min",
                "must be at least 0",
                "at least 0",
            ),
            (
                FieldRule::AtMost(hundred),
                "max",
                "must not be greater than 100",
                "at most 100",
            ),
            (
                FieldRule::NotBefore("issue_date"),
                "after_or_equal",
                "must not be before issue_date",
                "the day of issue_date or a later one",
            ),
        ]);
    }

    #[test]
    fn a_rule_with_its_own_sentence_may_have_an_expected_value() {
        check([(
            FieldRule::with_expected("sum", "must add up", "equal sums"),
            "sum",
            "must add up",
            "equal sums",
        )]);
        assert_eq!(
            FieldRule::other("own", "must not be another's").expected_value(),
            None
        );
    }
}
