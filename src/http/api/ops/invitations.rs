//! One-time links for operators, integrators and contact persons who have no password or forgot it. An admin creates a
//! link.

use actix_web::{HttpRequest, web};

use crate::domain::access::caller::OpsAdmin;
use crate::domain::access::session::SessionOwner;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::{IntegratorId, parse_id};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::{reader, reason};
use crate::http::invitations::{self, InvitationRequest};
use crate::http::openapi::{OperationDoc, doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::invitation::InvitationView;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/ops/operators/{id}/invitation").post(invite_operator, || {
            invitation_doc("invite_operator", "Let an operator choose a password")
                .with_errors(&[ErrorCode::OperatorNotFound])
        }),
        path("/ops/integrators/{id}/invitation").post(invite_integrator, || {
            invitation_doc("invite_integrator", "Let an integrator choose a password")
                .with_errors(&[ErrorCode::IntegratorNotFound])
        }),
        path("/ops/taxpayers/{id}/contacts/{contact_id}/invitation").post(invite_contact, || {
            invitation_doc(
                "invite_taxpayer_contact",
                "Let a contact person choose a password",
            )
            .with_errors(&[ErrorCode::TaxpayerNotFound, ErrorCode::ContactNotFound])
        }),
    ]
}

fn invitation_doc(name: &'static str, summary: &'static str) -> OperationDoc {
    doc(name, summary)
        .with_note("The link is shown only here; hand it over in private. It is valid for 72 hours and once, and ends an earlier one. The present password stays until the link is used, and a second factor beyond it.")
        .with_optional_body(reason::read, example!("reason"))
        .with_response::<InvitationView<'_>>(200, "Invitation created successfully")
        .with_errors(&[ErrorCode::InvalidTransition])
}

async fn invite_operator(
    state: web::Data<ApiState>,
    caller: OpsAdmin,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let not_found = || ApiError::new(ErrorCode::OperatorNotFound, "Operator not found");
    let owner = SessionOwner::Operator(parse_id(&id).ok_or_else(not_found)?);
    invite(&state, &request, caller, owner, body)
        .await?
        .ok_or_else(not_found)
}

async fn invite_integrator(
    state: web::Data<ApiState>,
    caller: OpsAdmin,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let not_found = || ApiError::new(ErrorCode::IntegratorNotFound, "Integrator not found");
    let owner = SessionOwner::Integrator(IntegratorId(parse_id(&id).ok_or_else(not_found)?));
    invite(&state, &request, caller, owner, body)
        .await?
        .ok_or_else(not_found)
}

async fn invite_contact(
    state: web::Data<ApiState>,
    caller: OpsAdmin,
    request: HttpRequest,
    ids: web::Path<(String, String)>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::existing_taxpayer_id(&state, &ids.0).await?;
    let owner = SessionOwner::Contact {
        taxpayer,
        id: path_ids::parse_contact_id(&ids.1)?,
    };
    invite(&state, &request, caller, owner, body)
        .await?
        .ok_or_else(ApiError::contact_not_found)
}

async fn invite(
    state: &ApiState,
    request: &HttpRequest,
    OpsAdmin(operator): OpsAdmin,
    owner: SessionOwner,
    body: Body,
) -> Result<Option<ApiResponse>, ApiError> {
    let form = reader::read(
        &*body.object_or_empty().await?,
        &state.catalog.get(),
        reason::read,
    )?;
    let invitation_request = InvitationRequest {
        owner,
        by: Actor::Operator(operator),
        reason: form.value.0,
        claim: None,
    };
    let invitation = invitations::make_invitation(state, request, invitation_request).await?;
    Ok(invitation.map(|invitation| {
        ApiResponse::ok(
            "Invitation created successfully",
            InvitationView::from(&invitation),
        )
        .warn(&form.warnings)
        .forbid_storing()
    }))
}
