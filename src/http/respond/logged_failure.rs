//! The part of a failure that the access log shows. The extensions of the response carry it to the middleware that
//! writes the log.

use serde_json::Value;

use crate::domain::kernel::fault::Faults;
use crate::domain::request_log::redact;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// The maximum number of faulty fields that a log line names.
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

impl LoggedFailure {
    /// Reads the failure from the body of an answer that was stored; `None` if the body has no known error code.
    pub(crate) fn from_stored_body(body: &str) -> Option<Self> {
        let body: Value = strict_json::from_trusted(body).ok()?;
        let code_text = body.get("error_code")?.as_str()?;
        let code = ErrorCode::ALL
            .iter()
            .find(|code| code.as_str() == code_text)?;
        Some(Self {
            code: code.as_str(),
            fields: None,
        })
    }
}

/// Returns the paths of the faulty fields, separated by commas; `None` if no field is faulty. An unknown field name may
/// be an API key that the caller has pasted by mistake, so API keys are hidden.
fn field_paths(faults: &Faults) -> Option<String> {
    let paths: Vec<_> = faults
        .iter()
        .take(FIELDS_MAX)
        .map(|fault| to_printable(&redact(&fault.path).text, FIELD_CHARS_MAX))
        .collect();
    (!paths.is_empty()).then(|| paths.join(","))
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
    fn the_code_of_a_stored_failure_is_read() {
        let locked = r#"{"success":false,"message":"Locked.","error_code":"INVOICE_LOCKED"}"#;
        for (body, code) in [
            (locked, Some("INVOICE_LOCKED")),
            (
                r#"{"title":"Locked","error_code":"INVOICE_LOCKED"}"#,
                Some("INVOICE_LOCKED"),
            ),
            (r#"{"error_code":"NO_SUCH_CODE"}"#, None),
            (r#"{"error_code":7}"#, None),
            (r#"{"success":true}"#, None),
            ("[]", None),
            ("no JSON", None),
            ("", None),
        ] {
            let failure = LoggedFailure::from_stored_body(body);
            assert_eq!(failure.map(|failure| failure.code), code, "{body}");
        }
    }

    #[test]
    fn the_fields_of_faults_are_named_without_their_values() {
        let faults: Faults = (0..12)
            .map(|n| Fault::new(format!("lines.{n}\n"), "required", "its value is 42"))
            .collect();
        let paths = field_paths(&faults).unwrap();
        assert!(
            paths.starts_with("lines.0?,lines.1?,") && paths.ends_with("lines.9?"),
            "{paths}"
        );
        assert_eq!(field_paths(&Faults::default()), None);
    }
}
