//! The contact persons of any taxpayer: list them; disable, enable or remove one; and change the role of one.

use actix_web::web;

use crate::domain::access::caller::{OpsAdmin, OpsViewer};
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::{ContactId, TaxpayerId};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::{reader, roles};
use crate::http::openapi::{OperationDoc, doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::account::ChangedContact;
use crate::http::views::contact_access::ContactAccessView;
use crate::store::accounts::contacts::{self, ContactChange, ContactChangeResult};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/ops/taxpayers/{id}/contacts").get(list_contacts, || {
            doc(
                "list_contacts",
                "Contact persons of a taxpayer, with their roles",
            )
            .with_list_response::<ContactAccessView>("Contacts retrieved successfully")
            .with_errors(&[ErrorCode::TaxpayerNotFound])
        }),
        path("/ops/taxpayers/{id}/contacts/{contact_id}/disable").post(disable_contact, || {
            contact_change_doc(
                "disable_contact",
                "Disable a contact person",
                "Contact disabled successfully",
            )
        }),
        path("/ops/taxpayers/{id}/contacts/{contact_id}/enable").post(enable_contact, || {
            contact_change_doc(
                "enable_contact",
                "Enable a disabled contact person",
                "Contact enabled successfully",
            )
        }),
        path("/ops/taxpayers/{id}/contacts/{contact_id}/remove").post(remove_contact, || {
            contact_change_doc(
                "remove_contact",
                "Remove a contact person",
                "Contact removed successfully",
            )
        }),
        path("/ops/taxpayers/{id}/contacts/{contact_id}/role").post(set_contact_role, || {
            contact_change_doc(
                "set_contact_role",
                "Give a contact person another role",
                "Contact role changed successfully",
            )
            .with_body(roles::read_contact_role, example!("set_contact_role"))
        }),
    ]
}

fn contact_change_doc(
    name: &'static str,
    summary: &'static str,
    message: &'static str,
) -> OperationDoc {
    doc(name, summary)
        .with_note("What the person had opened ends at once. A taxpayer keeps an enabled owner.")
        .with_response::<ChangedContact>(200, message)
        .with_errors(&[
            ErrorCode::TaxpayerNotFound,
            ErrorCode::ContactNotFound,
            ErrorCode::InvalidTransition,
        ])
}

/// GET /ops/taxpayers/{id}/contacts: lists the contact persons of a taxpayer.
async fn list_contacts(
    state: web::Data<ApiState>,
    _: OpsViewer,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::existing_taxpayer_id(&state, &id).await?;
    let people = contacts::owned_by(&state.store, taxpayer).await?;
    let views: Vec<_> = people.iter().map(ContactAccessView::from).collect();
    Ok(ApiResponse::ok("Contacts retrieved successfully", views))
}

/// The id of the contact person to change, and the facts about the change: the taxpayer of the person, the operator who
/// makes the change, and the time.
struct ContactTarget {
    change: ContactChange,
    id: ContactId,
}

async fn find_contact_target(
    state: &ApiState,
    operator: i64,
    ids: &(String, String),
) -> Result<ContactTarget, ApiError> {
    let taxpayer = path_ids::existing_taxpayer_id(state, &ids.0).await?;
    let id = path_ids::parse_contact_id(&ids.1)?;
    Ok(ContactTarget {
        change: ContactChange {
            taxpayer,
            by: Actor::Operator(operator),
            now: state.now(),
        },
        id,
    })
}

/// Declares the handlers of POST `/ops/taxpayers/{id}/contacts/{contact_id}/disable`, `enable` and `remove`.
macro_rules! contact_change_handlers {
    ($($handler:ident = $change:path, $message:literal;)+) => {$(
        async fn $handler(
            state: web::Data<ApiState>,
            OpsAdmin(operator): OpsAdmin,
            ids: web::Path<(String, String)>,
        ) -> Result<ApiResponse, ApiError> {
            let ContactTarget { change, id } = find_contact_target(&state, operator, &ids).await?;
            let result = $change(&state.store, change, id).await?;
            Ok(ApiResponse::ok($message, changed_contact_or_refusal(change.taxpayer, id, result)?))
        }
    )+};
}

contact_change_handlers! {
    disable_contact = contacts::disable, "Contact disabled successfully";
    enable_contact = contacts::enable, "Contact enabled successfully";
    remove_contact = contacts::remove, "Contact removed successfully";
}

/// POST `/ops/taxpayers/{id}/contacts/{contact_id}/role`: gives a contact person another role.
async fn set_contact_role(
    state: web::Data<ApiState>,
    OpsAdmin(operator): OpsAdmin,
    ids: web::Path<(String, String)>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        roles::read_contact_role,
    )?;
    let ContactTarget { change, id } = find_contact_target(&state, operator, &ids).await?;
    let result = contacts::set_role(&state.store, change, id, form.value).await?;
    let data = changed_contact_or_refusal(change.taxpayer, id, result)?;
    Ok(ApiResponse::ok("Contact role changed successfully", data).warn(&form.warnings))
}

fn changed_contact_or_refusal(
    taxpayer_id: TaxpayerId,
    id: ContactId,
    result: ContactChangeResult,
) -> Result<ChangedContact, ApiError> {
    match result {
        ContactChangeResult::Done { ended_sessions } => Ok(ChangedContact {
            taxpayer_id,
            id,
            ended_sessions,
        }),
        ContactChangeResult::Unknown => Err(ApiError::contact_not_found()),
        ContactChangeResult::LastOwner => {
            let message = "This would leave the taxpayer without an enabled owner. Make somebody else one first.";
            Err(ApiError::new(ErrorCode::InvalidTransition, message))
        }
    }
}
