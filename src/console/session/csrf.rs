//! Refuses forms that other sites send. A form must carry a token that only pages of the same session contain. If the
//! browser says which site the form comes from, that must be this service.

use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::http::header::{HOST, HeaderName, ORIGIN};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::console::session::{Refusal, session_token};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FOREIGN_FORM_TEXT: &str = "This form was not sent from a page of this service, or you have signed in anew since the page was opened. Go back, reload the page and send it again.";

/// Returns the token for the forms of a session. It does not reveal the session's own token.
pub(crate) fn csrf_token(session: &SecretString) -> String {
    let digest = Sha256::new()
        .chain_update("form:")
        .chain_update(session.expose_secret())
        .finalize();
    URL_SAFE_NO_PAD.encode(digest)
}

/// Refuses a form from another site, or without the token of the session.
pub(crate) fn check_csrf(request: &HttpRequest, tokens: &[Cow<'_, str>]) -> Result<(), Refusal> {
    check_origin(request)?;
    let session = session_token(request).ok_or(Refusal::NotSignedIn)?;
    match tokens {
        [token] if bool::from(token.as_bytes().ct_eq(csrf_token(&session).as_bytes())) => Ok(()),
        _ => Err(Refusal::NotAllowed(FOREIGN_FORM_TEXT)),
    }
}

/// Refuses a form if the browser says that it comes from another site. Browsers say so in `Sec-Fetch-Site` (W3C Fetch
/// Metadata). Over plain HTTP they only send `Origin`, which must name the host that the request was sent to.
pub(crate) fn check_origin(request: &HttpRequest) -> Result<(), Refusal> {
    let header = |name: HeaderName| {
        request
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let is_ours = match (header(FETCH_SITE), header(ORIGIN)) {
        (Some(site), _) => ["same-origin", "none"].contains(&site),
        (None, Some(origin)) => origin
            .split_once("://")
            .is_some_and(|(_, host)| Some(host) == header(HOST)),
        (None, None) => true,
    };
    if is_ours {
        Ok(())
    } else {
        Err(Refusal::NotAllowed(FOREIGN_FORM_TEXT))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_form_of_another_site_is_refused() {
        let check = |origin: &str| {
            let request = TestRequest::default().insert_header((HOST, "einvoice.example"));
            check_origin(&request.insert_header((ORIGIN, origin)).to_http_request())
        };
        assert!(check("https://einvoice.example").is_ok());
        for origin in [
            "https://evil.example",
            "null",
            "https://einvoice.example.evil.example",
            "",
        ] {
            assert!(check(origin).is_err(), "{origin}");
        }
        assert!(
            check_origin(&TestRequest::default().to_http_request()).is_ok(),
            "an old browser sends neither header"
        );
    }

    #[test]
    fn behind_a_proxy_that_asks_for_another_host_the_browser_is_believed() {
        let check = |site: &str| {
            let request = TestRequest::default().insert_header((HOST, "10.0.0.7:8080"));
            let request = request.insert_header((ORIGIN, "https://einvoice.example"));
            check_origin(&request.insert_header((FETCH_SITE, site)).to_http_request())
        };
        assert!(check("same-origin").is_ok());
        for site in ["cross-site", "same-site", ""] {
            assert!(check(site).is_err(), "{site}");
        }
    }
}
