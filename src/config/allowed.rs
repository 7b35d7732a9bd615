//! The values that a setting may have: a flag, a number in a range, one of some words, or text that passes a check.
//! Settings are checked against these values, and error messages describe the values.

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
            (Self::Text(is_allowed, _), Value::String(text)) => is_allowed(text),
            (Self::Numbers(range), Value::Array(values)) => {
                !values.is_empty()
                    && values.iter().all(|value| {
                        value
                            .as_integer()
                            .is_some_and(|number| range.contains(&number))
                    })
            }
            (Self::Texts(is_allowed, _), Value::Array(values)) => values
                .iter()
                .all(|value| value.as_str().is_some_and(is_allowed)),
            _ => false,
        }
    }

    /// Returns true if an environment variable for this setting is text. For other settings, it is parsed as TOML.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Word(_) | Self::Text(..))
    }

    /// Describes the allowed values, as the text that follows "must be" in an error message.
    pub(super) fn describe(&self) -> String {
        let range_text =
            |range: &RangeInclusive<i64>| format!("from {} to {}", range.start(), range.end());
        match self {
            Self::Flag => "true or false".to_owned(),
            Self::Number(range) => format!("a whole number {}", range_text(range)),
            Self::Numbers(range) => {
                format!(
                    "a list of one or more whole numbers {}, such as [0, 5, 300]",
                    range_text(range)
                )
            }
            Self::Word(words) => format!("one of {}", words.join(", ")),
            Self::Text(_, description) => (*description).to_owned(),
            Self::Texts(_, description) => format!("a list, in brackets, of {description}"),
        }
    }
}
