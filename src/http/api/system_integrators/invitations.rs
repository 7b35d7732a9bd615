//! One-time links for the contact persons of an integrator's taxpayers.

use actix_web::{HttpRequest, web};

use crate::domain::access::caller::IntegratorCaller;
use crate::domain::access::session::SessionOwner;
use crate::domain::kernel::audit::Actor;
use crate::http::extract::path_ids;
use crate::http::idempotency::IdempotentRequest;
use crate::http::invitations::{self, InvitationRequest};
use crate::http::openapi::doc;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::invitation::InvitationView;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/v1/system-integrators/taxpayers/{id}/contacts/{contact_id}/invitation").post(
            invite_contact,
            || {
                doc(
                    "invite_contact",
                    "Invite a contact person, or let it choose another password",
                )
                .with_note(
                    "The link is shown only here; hand it over in private. It \
                     is valid for 72 hours and once, and ends an earlier one. \
                     The present password stays until the link is used.",
                )
                .with_response::<InvitationView<'_>>(200, "Invitation created successfully")
                .with_idempotency_key()
                .with_errors(&[ErrorCode::TaxpayerNotFound, ErrorCode::ContactNotFound])
            },
        ),
    ]
}

/// POST …/invitation: creates a link with which the contact person chooses a password.
async fn invite_contact(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    request: HttpRequest,
    ids: web::Path<(String, String)>,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &ids.0)
        .await?
        .id;
    let owner = SessionOwner::Contact {
        taxpayer,
        id: path_ids::parse_contact_id(&ids.1)?,
    };
    let invitation_request = InvitationRequest {
        owner,
        by: Actor::Integrator(integrator),
        reason: None,
        claim: idempotent.into_claim(),
    };
    let invitation = invitations::make_invitation(&state, &request, invitation_request)
        .await?
        .ok_or_else(ApiError::contact_not_found)?;
    Ok(ApiResponse::ok(
        "Invitation created successfully",
        InvitationView::from(&invitation),
    )
    .forbid_storing())
}
