//! Creates a link with which support can see one delivery. Only an owner can create it.

use actix_web::{HttpRequest, web};
use askama::Template;
use jiff::Timestamp;

use crate::console::accounts::deliveries::find;
use crate::console::accounts::navigation::base_path;
use crate::console::filters;
use crate::console::form_values::FormValues;
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, show};
use crate::console::session::accounts::Owner;
use crate::http::delivery_links::{
    NewDeliveryLink, VALID_FOR_S_DEFAULT, VALID_FOR_S_MAX, make_link,
};
use crate::http::paths::{Path, path};
use crate::http::state::ApiState;

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/dashboard/{taxpayer}/webhooks/deliveries/{delivery}/link").form(create_link)]
}

/// The only page that shows the link.
#[derive(Template)]
#[template(path = "accounts/delivery_link.html")]
struct LinkPage {
    frame: Frame,
    url: String,
    expires_at: Timestamp,
    /// The address of the delivery's page.
    delivery_address: String,
}

async fn create_link(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let delivery = find(&state, &session, &ids.1).await?.delivery;
    let asked = form.0.text("valid_for_s").parse().ok();
    let valid_for_s = asked.unwrap_or(VALID_FOR_S_DEFAULT).min(VALID_FOR_S_MAX);
    let NewDeliveryLink { link, record } =
        make_link(&state, &delivery, valid_for_s, session.by).await?;
    state.taxpayers.send(delivery.taxpayer_id, record).await?;
    let origin = state.origin(&request).unwrap_or_default();
    show(&LinkPage {
        frame: Frame::for_account(&session, "Link to a delivery").with_section("Deliveries"),
        url: format!("{origin}{}", link.path),
        expires_at: link.expires_at,
        delivery_address: format!(
            "{}/webhooks/deliveries/{}",
            base_path(&session),
            delivery.id
        ),
    })
}
