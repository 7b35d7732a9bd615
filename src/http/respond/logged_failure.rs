//! The part of a failure that the access log shows. It travels in the extensions of the response.

use crate::domain::kernel::fault::Faults;
use crate::http::respond::error::ApiError;

const FIELDS_MAX: usize = 10;
const FIELD_CHARS_MAX: usize = 64;

/// The error code, and the paths of the faulty fields.
#[derive(Debug, Clone)]
pub(crate) struct LoggedFailure {
    pub(crate) code: &'static str,
    pub(crate) fields: Option<String>,
}

impl From<&ApiError> for LoggedFailure {
    fn from(error: &ApiError) -> Self {
        Self {
            code: error.code.as_str(),
            fields: field_paths(&error.faults),
        }
    }
}

/// Returns the paths of the faulty fields, separated by commas; `None` if no field is faulty.
fn field_paths(faults: &Faults) -> Option<String> {
    let named: Vec<_> = faults
        .iter()
        .take(FIELDS_MAX)
        .map(|fault| to_printable(&fault.path, FIELD_CHARS_MAX))
        .collect();
    (!named.is_empty()).then(|| named.join(","))
}

/// Returns the first `chars_max` characters of a text. Each character that a log line cannot hold is replaced by `?`.
pub(crate) fn to_printable(text: &str, chars_max: usize) -> String {
    let letters = text.chars().take(chars_max);
    letters
        .map(|letter| {
            if letter == ' ' || letter.is_ascii_graphic() {
                letter
            } else {
                '?'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::fault::Fault;

    #[test]
    fn the_fields_of_faults_are_named_without_their_values() {
        let faults: Faults = (0..12)
            .map(|n| Fault::new(format!("lines.{n}\n"), "required", "its value is 42"))
            .collect();
        let named = field_paths(&faults).unwrap();
        assert!(
            named.starts_with("lines.0?,lines.1?,") && named.ends_with("lines.9?"),
            "{named}"
        );
        assert_eq!(field_paths(&Faults::default()), None);
    }
}
