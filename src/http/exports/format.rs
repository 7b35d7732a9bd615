//! The formats of files, and the choice of the format that a caller accepts.

use actix_web::http::header::{ACCEPT, Accept, Header as _, HeaderValue, Quality, VARY};
use actix_web::{HttpRequest, HttpResponse};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableFormat {
    Csv,
    Ndjson,
    Xlsx,
}

impl TableFormat {
    const ALL: [Self; 3] = [Self::Csv, Self::Ndjson, Self::Xlsx];

    /// The media types of all formats, as `Accept` names them.
    pub(crate) const MEDIA_TYPES: [&'static str; 3] = [
        "text/csv",
        "application/x-ndjson",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ];

    /// Returns the format whose files have this extension.
    pub(crate) fn from_extension(extension: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|format| format.extension() == extension)
    }

    /// Returns the format that the request prefers to JSON (RFC 9110, section 12.5.1); `None` if it does not name
    /// one.
    pub(crate) fn from_accept_header(request: &HttpRequest) -> Option<Self> {
        if !request.headers().contains_key(ACCEPT) {
            return None;
        }
        let accept = Accept::parse(request).ok()?;
        let quality = |range: &str| {
            let named = accept
                .iter()
                .filter(|item| item.item.essence_str() == range);
            named.map(|item| item.quality).max()
        };
        let json = quality("application/json").unwrap_or(Quality::ZERO);
        let any = quality("application/*").max(quality("*/*"));
        let mut best = (json, None);
        for format in Self::ALL {
            let named = quality(format.media_type()).unwrap_or(Quality::ZERO);
            if named > best.0 {
                best = (named, Some(format));
            }
        }
        best.1.filter(|_| any.is_none_or(|any| best.0 >= any))
    }

    fn media_type(self) -> &'static str {
        let [csv, ndjson, xlsx] = Self::MEDIA_TYPES;
        match self {
            Self::Csv => csv,
            Self::Ndjson => ndjson,
            Self::Xlsx => xlsx,
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Ndjson | Self::Xlsx => self.media_type(),
        }
    }

    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
            Self::Xlsx => "xlsx",
        }
    }
}

/// Tells caches that the answer of this path depends on what the caller accepts.
pub(crate) fn vary_by_accept(mut answer: HttpResponse) -> HttpResponse {
    answer
        .headers_mut()
        .insert(VARY, HeaderValue::from_static("accept"));
    answer
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_file_is_sent_only_if_it_is_asked_for() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8";
        let sheet = TableFormat::MEDIA_TYPES[2];
        for (accept, expected) in [
            ("text/csv", Some(TableFormat::Csv)),
            ("Text/CSV; charset=utf-8", Some(TableFormat::Csv)),
            ("application/x-ndjson", Some(TableFormat::Ndjson)),
            (sheet, Some(TableFormat::Xlsx)),
            ("text/csv, */*", Some(TableFormat::Csv)),
            ("text/csv, */*;q=0.1", Some(TableFormat::Csv)),
            ("application/json;q=0.5, text/csv", Some(TableFormat::Csv)),
            (
                "text/csv;q=0.4, application/x-ndjson;q=0.5",
                Some(TableFormat::Ndjson),
            ),
            ("odd, text/csv", Some(TableFormat::Csv)),
            ("", None),
            ("*/*", None),
            (browser, None),
            ("text/*", None),
            ("text/csv;q=0", None),
            ("application/json, text/csv", None),
            ("text/csv;q=0.4, */*", None),
            ("application/pdf", None),
            ("text/csvx", None),
        ] {
            let request = TestRequest::default().insert_header((ACCEPT, accept));
            assert_eq!(
                TableFormat::from_accept_header(&request.to_http_request()),
                expected,
                "{accept}"
            );
        }
        assert_eq!(
            TableFormat::from_accept_header(&TestRequest::default().to_http_request()),
            None
        );
    }

    #[test]
    fn the_end_of_a_name_tells_the_format() {
        for format in TableFormat::ALL {
            assert_eq!(
                TableFormat::from_extension(format.extension()),
                Some(format)
            );
        }
        assert_eq!(TableFormat::from_extension("pdf"), None);
    }
}
