//! A link with which somebody without a key, such as a support engineer, sees one delivery.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};

use crate::domain::access::caller::IntegratorCaller;
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::audit::Actor;
use crate::http::delivery_links::{
    NewDeliveryLink, VALID_FOR_S_DEFAULT, VALID_FOR_S_MAX, make_link,
};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::reader::Reader;
use crate::http::forms::{delivery_link, reader};
use crate::http::idempotency::IdempotentRequest;
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::delivery::DeliveryLinkView;

const CREATED_MESSAGE: &str = "Link to the delivery created successfully";

pub(crate) fn paths() -> Vec<Path> {
    let link_path = "/v1/system-integrators/taxpayers/{id}/webhook/deliveries/{delivery_id}/link";
    vec![path(link_path).post(share_delivery, || {
        doc(
            "share_delivery",
            "A link with which support sees this delivery, without an account",
        )
        .with_note(
            "The page shows the event, the attempts with their headers, and nothing else of the account. The link ends after \
             `valid_for_s` (7 days by default, 30 at most), and earlier if the endpoint gets a new signing secret or is deleted, \
             or if the integrator is disabled, its keys are revoked or replaced, or its password is changed.",
        )
        .with_optional_body(read_lifetime_s, example!("share_delivery"))
        .with_response::<DeliveryLinkView>(201, CREATED_MESSAGE)
        .with_idempotency_key()
        .with_errors(&[ErrorCode::DeliveryNotFound, ErrorCode::TaxpayerNotFound])
        .with_errors(&[ErrorCode::EndpointNotFound, ErrorCode::WebhookNotConfigured])
    })]
}

fn read_lifetime_s(reader: &mut Reader<'_>) -> Option<u32> {
    delivery_link::read_lifetime_s(reader, VALID_FOR_S_MAX, VALID_FOR_S_DEFAULT)
}

/// POST `…/webhook/deliveries/{delivery_id}/link`: creates a link to a delivery to any endpoint of the taxpayer. Only
/// this response shows the link.
async fn share_delivery(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let delivery = path_ids::find_delivery(&state, integrator, &ids).await?;
    let form = reader::read(
        &*body.object_or_empty().await?,
        &state.catalog.get(),
        read_lifetime_s,
    )?;
    let by = Actor::Integrator(integrator);
    let NewDeliveryLink { link, record } = make_link(&state, &delivery, form.value, by).await?;
    IdempotentRequest::from_extensions(&request)
        .send(&state.taxpayers, delivery.taxpayer_id, record)
        .await?;
    let origin = state.origin(&request).unwrap_or_default();
    let view = DeliveryLinkView {
        url: format!("{origin}{}", link.path),
        expires_at: precise_time(link.expires_at),
    };
    Ok(
        ApiResponse::with_status(StatusCode::CREATED, CREATED_MESSAGE, view)
            .warn(&form.warnings)
            .forbid_storing(),
    )
}
