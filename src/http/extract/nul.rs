//! Replaces NUL in the address and the form of a request, where NUL may be encoded as `%00`. PostgreSQL accepts no text
//! with a NUL, so a query with such a text fails. Each NUL becomes SUB (U+001A), the control character that stands for
//! an invalid character, before anything reads the text. A search for a text with a SUB finds nothing, and a field that
//! refuses control characters refuses the SUB.

use actix_web::dev::ServiceRequest;
use actix_web::http::Uri;
use actix_web::http::uri::PathAndQuery;

const ENCODED_NUL: &str = "%00";
const ENCODED_SUB: &str = "%1A";
const SUB: u8 = 0x1A;

/// Replaces each NUL in the path and the query of a request. Must run before the request is routed.
pub(crate) fn replace_nul_in_address(request: &mut ServiceRequest) {
    if let Some(uri) = address_without_nul(request.uri()) {
        request.match_info_mut().get_mut().update(&uri);
        request.head_mut().uri = uri;
    }
}

/// Returns the address with each NUL replaced; `None` if it has none.
fn address_without_nul(uri: &Uri) -> Option<Uri> {
    let address = uri.path_and_query()?.as_str();
    if !address.contains(ENCODED_NUL) {
        return None;
    }
    let replaced: PathAndQuery = address.replace(ENCODED_NUL, ENCODED_SUB).parse().ok()?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(replaced);
    Uri::from_parts(parts).ok()
}

/// Replaces each NUL in the encoded text of a form, whose length stays the same.
pub(crate) fn replace_nul_in_form(form: &mut [u8]) {
    for start in 0..form.len() {
        let rest = &mut form[start..];
        if rest.starts_with(ENCODED_NUL.as_bytes()) {
            rest[..ENCODED_SUB.len()].copy_from_slice(ENCODED_SUB.as_bytes());
        } else if let Some(byte) = rest.first_mut().filter(|byte| **byte == 0) {
            *byte = SUB;
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_form_keeps_its_length_and_has_no_nul() {
        for (sent, kept) in [
            ("", ""),
            ("a=%0", "a=%0"),
            ("email=a%00@b.c&x=%00%00", "email=a%1A@b.c&x=%1A%1A"),
            ("a\0=\0", "a\u{1a}=\u{1a}"),
            ("a=%%00", "a=%%1A"),
            ("a=%2500&b=%0a00&c=100%25", "a=%2500&b=%0a00&c=100%25"),
        ] {
            let mut form = sent.as_bytes().to_vec();
            replace_nul_in_form(&mut form);
            assert_eq!(form, kept.as_bytes(), "{sent:?}");
            let mut fields = url::form_urlencoded::parse(&form);
            assert!(!fields.any(|(name, value)| name.contains('\0') || value.contains('\0')));
        }
    }

    #[test]
    fn an_address_is_routed_and_read_without_nul() {
        for (sent, path, query) in [
            ("/a/b?q=c", "/a/b", "q=c"),
            ("/a%00/%2500?q=%00", "/a\u{1a}/%2500", "q=%1A"),
            ("http://host/a?q=%00%00", "/a", "q=%1A%1A"),
        ] {
            let mut request = TestRequest::with_uri(sent).to_srv_request();
            replace_nul_in_address(&mut request);
            let routed = request.match_info().get_ref().path().to_owned();
            assert_eq!((routed.as_str(), request.query_string()), (path, query));
            assert!(!request.uri().to_string().contains(ENCODED_NUL), "{sent}");
        }
    }
}
