//! Finds the file in a body of the type multipart/form-data (RFC 7578): the field `file`. Nothing is copied.

use std::ops::Range;

use crate::domain::import::source::file_fault;
use crate::http::respond::error::ApiError;

pub(super) const MULTIPART_TYPE: &str = "multipart/form-data";
const FIELD: &str = "file";
/// The longest boundary (RFC 2046, section 5.1.1).
const BOUNDARY_CHARS_MAX: usize = 70;
/// The maximum size of the headers of one field, in bytes, and the maximum number of fields.
const HEADER_BYTES_MAX: usize = 8 << 10;
const FIELDS_MAX: usize = 50;

/// The field with the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileField {
    pub(super) bytes: Range<usize>,
    pub(super) content_type: Option<String>,
    pub(super) file_name: Option<String>,
}

/// Returns the boundary between the fields; `None` if the body is no form.
pub(super) fn boundary(content_type: &str) -> Option<String> {
    let (essence, parameters) = content_type.split_once(';')?;
    let boundary = find_parameter(parameters, "boundary")?;
    let is_form = essence.trim().eq_ignore_ascii_case(MULTIPART_TYPE);
    let is_boundary = !boundary.is_empty() && boundary.len() <= BOUNDARY_CHARS_MAX;
    (is_form && is_boundary).then_some(boundary)
}

/// Returns the value of a parameter, which may be quoted.
fn find_parameter(text: &str, wanted: &str) -> Option<String> {
    let mut rest = text;
    loop {
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(';').unwrap_or((after, "")),
        };
        let name = name.trim_matches(|letter: char| letter == ';' || letter.is_whitespace());
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value.trim().to_owned());
        }
        rest = next;
    }
}

/// Finds the field with the file. Fails if the form has none, or more than one.
pub(super) fn find_file(body: &[u8], boundary: &str) -> Result<FileField, ApiError> {
    let delimiter = format!("\r\n--{boundary}");
    let first = delimiter.trim_start().as_bytes();
    let mut position = if body.starts_with(first) {
        first.len()
    } else {
        find_bytes(body, delimiter.as_bytes(), 0).ok_or_else(malformed_error)? + delimiter.len()
    };
    let mut file = None;
    for _ in 0..FIELDS_MAX {
        if body
            .get(position..)
            .is_some_and(|rest| rest.starts_with(b"--"))
        {
            let message = "The form must have a field with the name `file`.";
            return file.ok_or_else(|| file_fault("required", message).into());
        }
        let headers_start = find_bytes(body, b"\r\n", position).ok_or_else(malformed_error)?;
        let headers_end =
            find_bytes(body, b"\r\n\r\n", headers_start).ok_or_else(malformed_error)?;
        if headers_end - headers_start > HEADER_BYTES_MAX {
            return Err(malformed_error());
        }
        let start = headers_end + 4;
        // The content may be empty, and its delimiter then begins with the last line break of the headers.
        let end = find_bytes(body, delimiter.as_bytes(), start - 2).ok_or_else(malformed_error)?;
        let headers = String::from_utf8_lossy(&body[headers_start..headers_end]);
        let bytes = start.min(end)..end;
        let field = file_field(&headers, bytes);
        if file.is_some() && field.is_some() {
            let message = "The form has more than one field with the name `file`: send each file in a request of its own.";
            return Err(file_fault("duplicate", message).into());
        }
        file = file.or(field);
        position = end + delimiter.len();
    }
    Err(malformed_error())
}

fn file_field(headers: &str, bytes: Range<usize>) -> Option<FileField> {
    let header = |wanted: &str| {
        let lines = headers
            .split("\r\n")
            .filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(name, _)| name.trim().eq_ignore_ascii_case(wanted));
        values.next().map(|(_, value)| value.trim().to_owned())
    };
    let disposition = header("content-disposition")?;
    let (_, parameters) = disposition.split_once(';')?;
    let is_file = find_parameter(parameters, "name").as_deref() == Some(FIELD);
    is_file.then(|| FileField {
        bytes,
        content_type: header("content-type"),
        file_name: find_parameter(parameters, "filename"),
    })
}

fn find_bytes(body: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let rest = body.get(from..)?;
    let position = rest
        .windows(wanted.len())
        .position(|window| window == wanted);
    position.map(|position| from + position)
}

fn malformed_error() -> ApiError {
    file_fault(
        "multipart",
        "The form cannot be read as multipart/form-data.",
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "--B\r\ncontent-disposition: form-data; name=\"note\"\r\n\r\nfile\r\n--B\r\nContent-Disposition: \
        form-data; name=\"file\"; filename=\"a;b.csv\"\r\nContent-Type: text/csv\r\n\r\na,b\r\n--not\r\n\r\n--B--\r\n";

    fn find_content(body: &str) -> Option<(String, Option<String>, Option<String>)> {
        let field = find_file(body.as_bytes(), "B").ok()?;
        let content = body[field.bytes].to_owned();
        Some((content, field.content_type, field.file_name))
    }

    #[test]
    fn the_field_with_the_file_is_found() {
        let file = Some("a;b.csv".to_owned());
        let content_type = Some("text/csv".to_owned());
        let expected = Some(("a,b\r\n--not\r\n".to_owned(), content_type, file));
        assert_eq!(find_content(FORM), expected);
        assert_eq!(find_content(&format!("preamble\r\n{FORM}")), expected);
        let empty = "--B\r\nContent-Disposition: form-data; name=file\r\n\r\n\r\n--B--";
        assert_eq!(find_content(empty), Some((String::new(), None, None)));
    }

    #[test]
    fn a_form_with_two_files_is_refused() {
        let part = |name: &str, text: &str| {
            format!("--B\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
        };
        for (names, is_refused) in [
            (&["file", "file"][..], true),
            (&["file", "note", "file"], true),
            (&["note", "file", "note"], false),
            (&["file"], false),
        ] {
            let parts = names.iter().zip(["x", "y", "z"]);
            let parts: String = parts.map(|(name, text)| part(name, text)).collect();
            let found = find_file(format!("{parts}--B--").as_bytes(), "B");
            assert_eq!(found.is_err(), is_refused, "{names:?}");
            let message = found.err().map(|error| format!("{error:?}"));
            assert_eq!(
                message.is_some_and(|message| message.contains("more than one field")),
                is_refused
            );
        }
    }

    #[test]
    fn incomplete_forms_and_forms_without_a_file_are_refused() {
        for end in 0..FORM.len() - "--\r\n".len() {
            assert_eq!(find_content(&FORM[..end]), None, "{}", &FORM[..end]);
        }
        for body in [
            "",
            "--B",
            "--B--",
            "--B\r\n\r\nx\r\n--B--",
            "--B\r\ncontent-disposition: form-data; name=\"files\"\r\n\r\nx\r\n--B--",
        ] {
            assert_eq!(find_content(body), None, "{body}");
        }
        let long = format!(
            "--B\r\nx: {}\r\n\r\ny\r\n--B--",
            "x".repeat(HEADER_BYTES_MAX)
        );
        assert_eq!(find_content(&long), None);
    }

    #[test]
    fn a_boundary_may_be_quoted() {
        for (text, expected) in [
            ("multipart/form-data; boundary=B", Some("B")),
            (
                "Multipart/Form-Data; charset=\"utf-8\"; boundary=\"a b;c\"",
                Some("a b;c"),
            ),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
            ("multipart/mixed; boundary=B", None),
            ("text/csv; boundary=B", None),
        ] {
            assert_eq!(boundary(text).as_deref(), expected, "{text}");
        }
        let long = format!("multipart/form-data; boundary={}", "b".repeat(71));
        assert_eq!(boundary(&long), None);
    }
}
