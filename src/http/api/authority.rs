//! `/authority`: notices that the authority sends about invoices. The token in the path authorizes a notice. The
//! content of a notice is not trusted: it only makes this service ask the authority. The authority repeats a notice
//! until it gets a 200, so all effects of the notice are stored before the 200 is sent.

use actix_web::web;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::http::extract::body::Body;
use crate::http::forms::notice;
use crate::http::forms::reader;
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::inbox::NoticeView;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/authority/notifications/{token}").post(receive_notification, || {
            doc("notifications", "The authority's notice of an invoice")
                .with_note(
                    "The authority calls this when a document has reached \
                     or reaches a taxpayer.",
                )
                .with_body(notice::read, example!("notification"))
                .with_response::<NoticeView>(200, "Notification received successfully")
                .with_errors(&[
                    ErrorCode::RouteNotFound,
                    ErrorCode::InvoiceNotFound,
                    ErrorCode::IrnMalformed,
                ])
                .with_errors_at(503, &[ErrorCode::AuthorityUnavailable])
        }),
    ]
}

/// POST /authority/notifications/{token}: receives a notice of the authority about an invoice.
async fn receive_notification(
    state: web::Data<ApiState>,
    token: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    check_token(&token, &state.settings.notification_token)?;
    let body = body.with_bytes_max(notice::BYTES_MAX);
    let form = reader::read(&*body.object().await?, &state.catalog.get(), notice::read)?;
    state
        .inbound
        .handle_notice(&form.value.irn, form.value.message)
        .await?;
    let view = NoticeView::from(&form.value);
    Ok(ApiResponse::ok("Notification received successfully", view).warn(&form.warnings))
}

/// Refuses every token except the configured one. A caller with a wrong token learns nothing: it gets the 404 of an
/// unknown path, and the comparison takes the same time for every token.
fn check_token(received_token: &str, token: &SecretString) -> Result<(), ApiError> {
    let token = token.expose_secret();
    let is_equal = Sha256::digest(received_token)
        .as_slice()
        .ct_eq(Sha256::digest(token).as_slice());
    let is_accepted = bool::from(is_equal) && !token.is_empty();
    is_accepted
        .then_some(())
        .ok_or_else(ApiError::route_not_found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_configured_token_is_accepted() {
        let configured = SecretString::from("a-token-of-16-letters");
        assert!(check_token("a-token-of-16-letters", &configured).is_ok());
        for wrong in [
            "",
            "a-token-of-16-letter",
            "A-token-of-16-letters",
            "a-token-of-16-letters ",
        ] {
            let refused = check_token(wrong, &configured).unwrap_err();
            assert_eq!(
                (refused.status.as_u16(), refused.code.as_str()),
                (404, "ROUTE_NOT_FOUND"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn without_a_configured_token_every_token_is_refused() {
        assert!(check_token("", &SecretString::from("")).is_err());
    }
}
