//! The public page that a link to one delivery leads to. It needs no session, and shows nothing else of the account.

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue, REFERRER_POLICY};
use actix_web::web;
use askama::Template;
use jiff::Timestamp;

use crate::console::accounts::{DeliveryLine, event_text};
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::hidden_path::hide_path;
use crate::console::page::{Answer, show_with_status};
use crate::domain::integration::origin::Origin;
use crate::http::delivery_links;
use crate::http::paths::{Path, path};
use crate::http::state::ApiState;

/// Tells search engines not to list the page.
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

pub(super) fn paths() -> Vec<Path> {
    vec![path("/shared/deliveries/{token}").page(show_shared)]
}

#[derive(Template)]
#[template(path = "shared_delivery.html")]
struct SharedDeliveryPage {
    frame: Frame,
    /// `None` if the link is not valid.
    shared: Option<SharedLine>,
}

struct SharedLine {
    line: DeliveryLine,
    /// Scheme and host of the endpoint. The path is not shown, because it may contain a secret.
    origin: String,
    /// The event as the webhook gets it.
    body: String,
    expires_at: Timestamp,
}

/// GET /shared/deliveries/{token}. All invalid tokens get the same answer.
async fn show_shared(state: web::Data<ApiState>, token: web::Path<String>) -> Answer {
    let (status, shared) = match delivery_links::open_link(&state, &token).await? {
        Some(mut shared) => {
            hide_path(&mut shared.logged.attempts, &shared.endpoint.url);
            let delivery = &shared.logged.delivery;
            let body = event_text(&state, delivery.taxpayer_id, delivery.sequence).await?;
            let origin = Origin::from_url(&shared.endpoint.url);
            let shown = SharedLine {
                origin: origin.map(|origin| origin.to_string()).unwrap_or_default(),
                body,
                expires_at: shared.expires_at,
                line: DeliveryLine::from(shared.logged),
            };
            (StatusCode::OK, Some(shown))
        }
        None => (StatusCode::NOT_FOUND, None),
    };
    let frame = Frame::for_visitor("Delivery");
    let mut answer = show_with_status(status, &SharedDeliveryPage { frame, shared })?;
    let headers = answer.headers_mut();
    headers.insert(ROBOTS, HeaderValue::from_static("noindex, nofollow"));
    // The address of the page is a secret, so it must not be sent to other sites as the referrer.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(answer)
}
