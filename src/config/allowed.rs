//! The values that a setting may have: a flag, a number in a range, one of some words, or text that passes a check.
//! The settings are checked against these, and error messages describe them.

use std::ops::RangeInclusive;

use toml::Value;

#[derive(Debug, Clone)]
pub(super) enum AllowedValues {
    Flag,
    Number(RangeInclusive<i64>),
    /// A list of at least one number in this range.
    Numbers(RangeInclusive<i64>),
    Word(&'static [&'static str]),
    /// Text for which the function returns true. The second value describes the allowed text in error messages.
    Text(fn(&str) -> bool, &'static str),
    /// A list of texts. The function checks each text; the second value describes the allowed texts in errors.
    Texts(fn(&str) -> bool, &'static str),
}

impl AllowedValues {
    pub(super) fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Flag, Value::Boolean(_)) => true,
            (Self::Number(range), Value::Integer(number)) => range.contains(number),
            (Self::Word(words), Value::String(text)) => words.contains(&text.as_str()),
            (Self::Text(passes, _), Value::String(text)) => passes(text),
            (Self::Numbers(range), Value::Array(values)) => {
                !values.is_empty()
                    && values
                        .iter()
                        .all(|value| value.as_integer().is_some_and(|one| range.contains(&one)))
            }
            (Self::Texts(passes, _), Value::Array(values)) => values
                .iter()
                .all(|value| value.as_str().is_some_and(passes)),
            _ => false,
        }
    }

    /// True if the value of an environment variable for this setting is taken as text. Other values are parsed as
    /// TOML.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Word(_) | Self::Text(..))
    }

    /// Describes the allowed values, as the text that follows "must be" in an error message.
    pub(super) fn describe(&self) -> String {
        let ends =
            |range: &RangeInclusive<i64>| format!("from {} to {}", range.start(), range.end());
        match self {
            Self::Flag => "true or false".to_owned(),
            Self::Number(range) => format!("a whole number {}", ends(range)),
            Self::Numbers(range) => {
                format!(
                    "a list of one or more whole numbers {}, such as [0, 5, 300]",
                    ends(range)
                )
            }
            Self::Word(words) => format!("one of {}", words.join(", ")),
            Self::Text(_, what) => (*what).to_owned(),
            Self::Texts(_, what) => format!("a list, in brackets, of {what}"),
        }
    }
}
