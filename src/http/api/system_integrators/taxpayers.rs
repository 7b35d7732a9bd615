//! An integrator's taxpayers: list them, create one, change the profile of one, rotate the API key of one.

use std::collections::HashMap;
use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::{Method, StatusCode};
use actix_web::{FromRequest, HttpRequest, web};
use secrecy::ExposeSecret;

use crate::actors::taxpayer::commands::{ChangeProfile, RotateKey};
use crate::domain::access::api_key::NewKey;
use crate::domain::access::caller::{IntegratorCaller, KeyKind};
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::{Contact, Taxpayer};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::extract::role::NeedsRole;
use crate::http::forms::query::Query;
use crate::http::forms::{key_terms, profile, reader, taxpayer};
use crate::http::idempotency::IdempotentRequest;
use crate::http::invoice_files;
use crate::http::key_generation;
use crate::http::limits::{self, SensitiveOperation};
use crate::http::onboarding;
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::paginator::Paginator;
use crate::http::views::secret::RotatedKey;
use crate::http::views::taxpayer::{CreatedTaxpayer, ProfileView, TaxpayerView};
use crate::store::accounts::taxpayers;
use crate::store::ids::IdKind;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/v1/system-integrators/taxpayers")
            .get(list_taxpayers, || {
                doc("list_taxpayers", "List Taxpayers")
                    .with_note("The taxpayers of the integrator, newest first.")
                    .query("search", "part of a name, TIN or email")
                    .with_paging("15 by default, 100 at most")
                    .with_page_response::<TaxpayerView<'_>>("Taxpayers retrieved successfully")
            })
            .post(create_taxpayer, || {
                doc("create_taxpayer", "Create Taxpayer")
                    .with_note(
                        "Creates the account of a taxpayer with its first \
                         owner. Its key comes from Rotate API Key.",
                    )
                    .with_body(taxpayer::read, example!("create_taxpayer"))
                    .with_response::<CreatedTaxpayer<'_>>(201, "Taxpayer created successfully")
                    .with_errors(&[ErrorCode::TaxpayerLimitReached])
                    .with_idempotency_key()
            }),
        path("/v1/system-integrators/taxpayers/{id}").get(get_taxpayer, || {
            doc("get_taxpayer", "Get Taxpayer")
                .with_note("The taxpayer with the people who may sign in for it.")
                .with_response::<TaxpayerView<'_>>(200, "Taxpayer retrieved successfully")
                .with_errors(&[ErrorCode::TaxpayerNotFound])
        }),
        path("/v1/system-integrators/taxpayers/{id}/integration/setup").get(
            get_integration_setup,
            || {
                doc(
                    "get_integration_setup",
                    "The taxpayer, for setting its integration up",
                )
                .with_note(
                    "The taxpayer as in Get Taxpayer, under the path that \
                     set-up assistants call.",
                )
                .with_response::<TaxpayerView<'_>>(200, "Taxpayer retrieved successfully")
                .with_errors(&[ErrorCode::TaxpayerNotFound])
            },
        ),
        profile_path(),
        key_rotation_path(),
    ]
}

fn profile_path() -> Path {
    path("/v1/system-integrators/taxpayers/{id}/profile")
        .get(get_profile, || {
            doc("get_profile", "The business profile and the settings")
                .with_note(
                    "The business profile, and the settings that decide how \
                     documents are handled and look.",
                )
                .with_response::<ProfileView<'_>>(200, "Taxpayer profile retrieved successfully")
                .with_errors(&[ErrorCode::TaxpayerNotFound])
        })
        .patch(update_profile, || {
            doc(
                "update_profile",
                "Complete the business profile, or change the settings",
            )
            .with_note(
                "What is left out stays. `null` unsets \
                 registration_number, template, colours and logo.",
            )
            .with_body(profile::read, example!("update_profile"))
            .with_response::<ProfileView<'_>>(200, "Taxpayer profile updated successfully")
            .with_idempotency_key()
            .with_errors(&[ErrorCode::TaxpayerNotFound])
        })
}

fn key_rotation_path() -> Path {
    let methods = [Method::POST, Method::PUT, Method::PATCH];
    path("/v1/system-integrators/taxpayers/{id}/api-key/rotate").on_methods(
        methods,
        rotate_api_key,
        || {
            doc("rotate_api_key", "Rotate Taxpayer API Key")
                .with_note(
                    "The old key is refused at once, or after `overlap_s`; a \
                     key that is replaced again keeps its end. The terms are query \
                     parameters: in a body they are refused.",
                )
                .query(
                    "name",
                    "what people call the new key, 60 characters at most",
                )
                .query(
                    "overlap_s",
                    "how long the old key stays valid, in seconds: 604800 at \
                     most, 0 by default",
                )
                .query("scope", "full or read_only; by default that of the old key")
                .query(
                    "expires_at",
                    "when the new key ends, as RFC 3339 writes it; never by \
                     default",
                )
                .with_response::<RotatedKey<'_>>(200, "API key rotated successfully")
                .with_errors(&[ErrorCode::ValidationFailed, ErrorCode::TaxpayerNotFound])
                .with_errors(&[ErrorCode::MalformedJson, ErrorCode::UnsupportedMediaType])
                .with_errors(&[ErrorCode::PayloadTooLarge, ErrorCode::RequestTimeout])
                .with_idempotency_key()
        },
    )
}

const PER_PAGE_DEFAULT: u64 = 15;

/// GET /v1/system-integrators/taxpayers: lists the integrator's taxpayers, newest first.
async fn list_taxpayers(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let search = query.trimmed_text("search");
    let store = &state.store;
    let (taxpayers, total) =
        taxpayers::page_owned_by(store, integrator, search.as_deref(), page).await?;
    let ids: Vec<_> = taxpayers.iter().map(|taxpayer| taxpayer.id).collect();
    let contacts = taxpayers::contacts_owned_by_each(store, &ids).await?;
    let items = taxpayers
        .iter()
        .map(|taxpayer| taxpayer_view(taxpayer, &contacts))
        .collect();
    Ok(ApiResponse::ok(
        "Taxpayers retrieved successfully",
        Paginator::new(page, total, items),
    ))
}

fn taxpayer_view<'a>(
    taxpayer: &'a Taxpayer,
    contacts: &'a HashMap<TaxpayerId, Vec<Contact>>,
) -> TaxpayerView<'a> {
    TaxpayerView::new(
        taxpayer,
        contacts.get(&taxpayer.id).map_or(&[], Vec::as_slice),
    )
}

/// POST /v1/system-integrators/taxpayers (Create Taxpayer in spec.md): adds a taxpayer with its first contact person.
async fn create_taxpayer(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(&*body.object().await?, &state.catalog.get(), taxpayer::read)?;
    let id = TaxpayerId(state.store.ids().next(IdKind::Taxpayer).await?);
    let onboarding = onboarding::build_onboarding(&state, integrator, id, form.value).await?;
    idempotent
        .answer_once(&state.taxpayers, id, onboarding, move |taxpayer| {
            let view = CreatedTaxpayer::from(taxpayer);
            let answer = ApiResponse::with_status(
                StatusCode::CREATED,
                "Taxpayer created successfully",
                view,
            );
            answer.warn(&form.warnings)
        })
        .await
}

/// GET /v1/system-integrators/taxpayers/{id}: returns a taxpayer.
async fn get_taxpayer(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &id).await?;
    let contacts = taxpayers::contacts_owned_by(&state.store, taxpayer.id).await?;
    Ok(ApiResponse::ok(
        "Taxpayer retrieved successfully",
        TaxpayerView::new(&taxpayer, &contacts),
    ))
}

/// GET /v1/system-integrators/taxpayers/{id}/integration/setup: returns the taxpayer. No ERP is called.
async fn get_integration_setup(
    state: web::Data<ApiState>,
    caller: IntegratorCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    get_taxpayer(state, caller, id).await
}

/// GET /v1/system-integrators/taxpayers/{id}/profile: returns the business profile and the settings.
async fn get_profile(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &id).await?;
    let contacts = taxpayers::contacts_owned_by(&state.store, taxpayer.id).await?;
    Ok(ApiResponse::ok(
        "Taxpayer profile retrieved successfully",
        ProfileView::new(&taxpayer, &contacts),
    ))
}

/// PATCH /v1/system-integrators/taxpayers/{id}/profile: completes the business profile, or changes the settings.
async fn update_profile(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &id).await?;
    let form = reader::read(&*body.object().await?, &state.catalog.get(), profile::read)?;
    let change = form.value;
    let warnings = form.warnings;
    invoice_files::check_logo(&state, taxpayer.id, &change.settings.logo).await?;
    let contacts = taxpayers::contacts_owned_by(&state.store, taxpayer.id).await?;
    let by = Actor::Integrator(integrator);
    let limited_integrator = onboarding::integrator_with_email_limit(&taxpayer, &change);
    let response = idempotent.answer_once(
        &state.taxpayers,
        taxpayer.id,
        ChangeProfile { change, by },
        move |taxpayer| {
            let view = ProfileView::new(taxpayer, &contacts);
            ApiResponse::ok("Taxpayer profile updated successfully", view).warn(&warnings)
        },
    );
    onboarding::change_counting_taken_email(&state, limited_integrator, response).await
}

/// A request to rotate a key. The query has the terms of the new key. The body is read only to refuse terms in it.
struct KeyRotationRequest {
    query: Query,
    body: Body,
    /// The whole request. The handler stores the remaining allowance in it, for the headers of the response.
    request: HttpRequest,
}

impl NeedsRole for KeyRotationRequest {}

impl FromRequest for KeyRotationRequest {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let query = Query::from_text(request.query_string());
        let body = Body::from_request(request, payload).into_inner();
        let request = request.clone();
        ready(body.map(|body| Self {
            query,
            body,
            request,
        }))
    }
}

/// POST /v1/system-integrators/taxpayers/{id}/api-key/rotate (also PUT and PATCH): creates a new API key, which only
/// this response shows. The old key becomes invalid at once, or after the requested overlap.
async fn rotate_api_key(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    id: web::Path<String>,
    key_rotation: KeyRotationRequest,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &id).await?;
    let rotation = SensitiveOperation::Rotation;
    let allowance = state
        .limits
        .count_sensitive_operation(rotation, taxpayer.id, state.now());
    limits::store_allowance(&key_rotation.request, allowance)?;
    let KeyRotationRequest { query, body, .. } = key_rotation;
    let body = body.object_or_empty().await?;
    let warnings = key_terms::refuse_terms_in_body(&body, &state.catalog.get())?;
    let terms = key_terms::read_key_terms(&query)?;
    let name = key_terms::read_key_name(&query)?;
    key_terms::check_expiry(&terms, state.now())?;
    let key = key_generation::generate_key(KeyKind::Taxpayer)?;
    let by = Actor::Integrator(integrator);
    let command = RotateKey {
        key: NewKey::new(key.clone(), terms).with_name(name),
        keys_max: None,
        by,
    };
    idempotent
        .send(&state.taxpayers, taxpayer.id, command)
        .await?;
    let data = RotatedKey {
        taxpayer_id: taxpayer.id,
        api_key: key.expose_secret(),
    };
    Ok(ApiResponse::ok("API key rotated successfully", data)
        .warn(&warnings)
        .forbid_storing())
}
