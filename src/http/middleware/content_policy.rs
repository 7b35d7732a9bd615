//! Headers that forbid a browser to guess the type of an answer, and to run or load anything for an answer that is not
//! a page of this service. So a file that somebody has sent cannot act in the name of the person who opens it.

use actix_web::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};

const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");
/// The policy of an answer that is neither a page nor a PDF. A picture that is opened by itself may have styles.
const DATA_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
/// The policy of a PDF. Browsers show no PDF in a sandbox, and their viewers need an inline style.
const PDF_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");

/// Adds the headers to an answer. Only a page of HTML keeps a policy that its handler has set.
pub(super) fn add_content_policy(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
    if has_media_type(headers, "text/html") && headers.contains_key(CONTENT_SECURITY_POLICY) {
        return;
    }
    let policy = if has_media_type(headers, "application/pdf") {
        PDF_POLICY
    } else {
        DATA_POLICY
    };
    headers.insert(CONTENT_SECURITY_POLICY, policy);
}

fn has_media_type(headers: &HeaderMap, media_type: &str) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::to_str);
    let essence = content_type.and_then(|content_type| content_type.ok()?.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(media_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_page_brings_a_policy_of_its_own() {
        let own = "default-src 'self'";
        let policies = [DATA_POLICY, PDF_POLICY];
        let [data, pdf] = policies.each_ref().map(|policy| policy.to_str().unwrap());
        for (kind, set, expected) in [
            (Some("text/html; charset=utf-8"), Some(own), own),
            (Some("Text/HTML"), Some(own), own),
            (Some("text/html"), None, data),
            (Some("application/pdf"), None, pdf),
            (Some("application/pdf"), Some(own), pdf),
            (Some("application/xml"), Some(own), data),
            (Some("application/xhtml+xml"), Some(own), data),
            (Some("image/svg+xml"), None, data),
            (Some("text/htmlx"), Some(own), data),
            (None, Some(own), data),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [(CONTENT_TYPE, kind), (CONTENT_SECURITY_POLICY, set)] {
                if let Some(value) = value {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            add_content_policy(&mut headers);
            let policy = headers.get(CONTENT_SECURITY_POLICY).unwrap();
            assert_eq!(policy, expected, "{kind:?}");
            let guesses = headers.get(X_CONTENT_TYPE_OPTIONS).unwrap();
            assert_eq!(guesses, "nosniff", "{kind:?}");
        }
    }
}
