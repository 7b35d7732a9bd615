//! The options of a request with a file: the form that reads the documents, the format, and whether it is a preview.

use std::future::{Ready, ready};
use std::ops::Range;

use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap};
use actix_web::{FromRequest, HttpRequest};

use crate::domain::import::source::{FileFormat, ImportForm};
use crate::http::extract::body::header_excerpt;
use crate::http::extract::role::NeedsRole;
use crate::http::forms::query::Query;
use crate::http::import_files::multipart::{self, MULTIPART_TYPE};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

const XML_TYPE: &str = "application/xml";
pub(crate) const CSV_TYPE: &str = "text/csv";
const XLSX_TYPE: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const NDJSON_TYPE: &str = "application/x-ndjson";
/// The media types that are read in addition to JSON.
pub(crate) const FILE_TYPES: &[&str] =
    &[XML_TYPE, CSV_TYPE, XLSX_TYPE, NDJSON_TYPE, MULTIPART_TYPE];
/// The endings of file names, with the format that each stands for.
const ENDINGS: [(&str, FileFormat); 6] = [
    ("xml", FileFormat::Ubl),
    ("csv", FileFormat::Csv),
    ("xlsx", FileFormat::Xlsx),
    ("ndjson", FileFormat::Ndjson),
    ("jsonl", FileFormat::Ndjson),
    ("json", FileFormat::Json),
];

#[derive(Debug, Clone)]
pub(crate) struct FileRequest {
    location: FileLocation,
    pub(super) form: ImportForm,
    pub(crate) is_preview: bool,
    /// True if the invoices of the file replace cancelled ones that have their numbers.
    pub(super) replaces_cancelled: bool,
}

/// Says where in the body the file is: the whole body, or one field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FileLocation {
    Whole(FileFormat),
    /// A field of a form with this boundary.
    Field(String),
}

impl NeedsRole for FileRequest {}

impl FromRequest for FileRequest {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::new(request))
    }
}

impl FileRequest {
    /// Reads the format from the header `Content-Type`, and the other options from the query string.
    pub(crate) fn new(request: &HttpRequest) -> Result<Self, ApiError> {
        let query = Query::from_text(request.query_string());
        let form = query.word("form", ImportForm::parse, ImportForm::allowed_words)?;
        Ok(Self {
            location: find_file_location(request.headers())?,
            form: form.unwrap_or(ImportForm::Standard),
            is_preview: query.flag("preview")?,
            replaces_cancelled: query.flag("replace_cancelled")?,
        })
    }

    /// Finds the file in the body.
    pub(super) fn find_file(&self, body: &[u8]) -> Result<(FileFormat, Range<usize>), ApiError> {
        let boundary = match &self.location {
            FileLocation::Whole(format) => return Ok((*format, 0..body.len())),
            FileLocation::Field(boundary) => boundary,
        };
        let field = multipart::find_file(body, boundary)?;
        let by_name = field.file_name.as_deref().and_then(format_for_file_name);
        let by_type = field
            .content_type
            .as_deref()
            .and_then(format_for_content_type);
        let format = by_type.or(by_name).ok_or_else(|| {
            let sent = field.content_type.as_deref().map_or_else(
                || "a name without a known ending".to_owned(),
                |content_type| header_excerpt("content-type", &content_type.replace('\0', "?")),
            );
            unsupported_error(&format!("a field with {sent}"))
        })?;
        Ok((format, field.bytes))
    }
}

fn find_file_location(headers: &HeaderMap) -> Result<FileLocation, ApiError> {
    let text = headers
        .get(CONTENT_TYPE)
        .map_or("", |value| value.to_str().unwrap_or("?"));
    if let Some(boundary) = multipart::boundary(text) {
        return Ok(FileLocation::Field(boundary));
    }
    // A body without a type is JSON, as in all other requests.
    let format = match text.trim() {
        "" => Some(FileFormat::Json),
        text => format_for_content_type(text),
    };
    format
        .map(FileLocation::Whole)
        .ok_or_else(|| unsupported_error(&header_excerpt("content-type", text)))
}

/// Returns the format that a content type names.
fn format_for_content_type(text: &str) -> Option<FileFormat> {
    let mut parts = text.split(';');
    let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_utf8 = parts.all(|part| {
        part.split_once('=').is_none_or(|(name, value)| {
            !name.trim().eq_ignore_ascii_case("charset")
                || value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
        })
    });
    match essence.as_str() {
        XML_TYPE | "text/xml" => Some(FileFormat::Ubl),
        XLSX_TYPE => Some(FileFormat::Xlsx),
        _ if !is_utf8 => None,
        CSV_TYPE => Some(FileFormat::Csv),
        NDJSON_TYPE | "application/jsonl" => Some(FileFormat::Ndjson),
        "application/json" => Some(FileFormat::Json),
        _ => None,
    }
}

fn format_for_file_name(name: &str) -> Option<FileFormat> {
    let (_, ending) = name.rsplit_once('.')?;
    let known = ENDINGS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(ending));
    known.map(|(_, format)| *format)
}

/// Returns the error for a file of another type. `sent` says which type was sent.
fn unsupported_error(sent: &str) -> ApiError {
    let message = format!(
        "The file must be application/json, {}, in UTF-8, as the raw body or as the field `file` of a form; you sent {sent}",
        FILE_TYPES.join(", ")
    );
    ApiError::new(ErrorCode::UnsupportedMediaType, message)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_refusal_says_what_was_sent() {
        let form = "multipart/form-data; boundary=x";
        let field = |headers: &str| {
            format!(
                "--x\r\ncontent-disposition: form-data; name=\"file\"{headers}\r\n\r\ny\r\n--x--\r\n"
            )
        };
        for (content_type, body, sent) in [
            ("text/plain", String::new(), "content-type: text/plain"),
            (
                "text/csv; charset=latin1",
                String::new(),
                "content-type: text/csv; charset=latin1",
            ),
            (
                form,
                field("; filename=\"a.exe\"\r\ncontent-type: text/html"),
                "a field with content-type: text/html",
            ),
            (
                form,
                field("; filename=\"a.exe\""),
                "a field with a name without a known ending",
            ),
        ] {
            let request = TestRequest::default()
                .insert_header((CONTENT_TYPE, content_type))
                .to_http_request();
            let format = FileRequest::new(&request)
                .and_then(|request| request.find_file(body.as_bytes()).map(|(format, _)| format));
            let refused = format.unwrap_err();
            assert_eq!(refused.code, ErrorCode::UnsupportedMediaType);
            let expected_end = format!("; you sent {sent}");
            assert!(
                refused.message.ends_with(&expected_end),
                "{}",
                refused.message
            );
        }
    }

    #[test]
    fn a_format_is_known_by_the_type_or_by_the_ending_of_a_name() {
        for (text, format) in [
            ("text/csv; charset=UTF-8", Some(FileFormat::Csv)),
            ("Text/XML", Some(FileFormat::Ubl)),
            ("text/csv; charset=latin1", None),
            ("application/octet-stream", None),
        ] {
            assert_eq!(format_for_content_type(text), format, "{text}");
        }
        for (name, format) in [
            ("July.CSV", Some(FileFormat::Csv)),
            ("a.b.xlsx", Some(FileFormat::Xlsx)),
            ("csv", None),
            ("a.exe", None),
        ] {
            assert_eq!(format_for_file_name(name), format, "{name}");
        }
    }
}
