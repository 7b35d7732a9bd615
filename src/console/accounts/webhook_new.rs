//! Adds a webhook endpoint beside the default one: the form, and the page that shows the new signing secret once.

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use secrecy::ExposeSecret;

use crate::actors::taxpayer::commands::AddEndpoint;
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::webhook_actions::NewSecretPage;
use crate::console::accounts::webhook_form::{EventChoice, event_choices, to_api_body};
use crate::console::accounts::webhook_target::WebhookTarget;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, show, show_with_status};
use crate::console::session::accounts::{AccountSession, Owner};
use crate::domain::events::endpoint::SecretType;
use crate::http::forms::reader::Reader as BodyReader;
use crate::http::forms::{reader, webhook_endpoint};
use crate::http::key_generation;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/webhooks/endpoints/new")
            .page(show_form)
            .form(handle_new_endpoint_form),
    ]
}

#[derive(Template)]
#[template(path = "accounts/webhook_new.html")]
struct NewEndpointPage {
    frame: Frame,
    base: String,
    events: Vec<EventChoice>,
    form: FormState,
}

async fn show_form(Owner(session): Owner) -> Answer {
    show(&new_page(&session, FormState::default()))
}

fn new_page(session: &AccountSession, form: FormState) -> NewEndpointPage {
    NewEndpointPage {
        frame: Frame::for_account(session, "New endpoint").with_section("Webhooks"),
        base: base_path(session),
        events: event_choices(None, &form),
        form,
    }
}

async fn handle_new_endpoint_form(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    form: Form<FormValues>,
) -> Answer {
    match add_endpoint(&state, &session, &form.0).await {
        Ok(page) => show(&page),
        Err(error) => {
            let form = FormState::from_refusal(error, form.0)?;
            show_with_status(StatusCode::UNPROCESSABLE_ENTITY, &new_page(&session, form))
        }
    }
}

/// Adds the endpoint that the form describes. Returns the page with its signing secret.
async fn add_endpoint(
    state: &ApiState,
    session: &AccountSession,
    form: &FormValues,
) -> Result<NewSecretPage, ApiError> {
    let read =
        |reader: &mut BodyReader<'_>| webhook_endpoint::read_new(reader, &state.webhook_urls);
    let body = to_api_body(form, &["url", "description"]);
    let asked = reader::read(&body, &state.catalog.get(), read)?.value;
    let secret = key_generation::generate_webhook_secret(SecretType::Hmac);
    let command = AddEndpoint {
        url: asked.url,
        enabled_events: asked.enabled_events,
        description: asked.description,
        retry_schedule: asked.retry_schedule,
        secret: secret.clone(),
        by: session.by,
    };
    let endpoint = session.send(state, command).await?;
    Ok(NewSecretPage {
        frame: Frame::for_account(session, "Your new signing secret").with_section("Webhooks"),
        endpoint_page: WebhookTarget::new(session, endpoint.key).path,
        is_public: false,
        text: secret.text().expose_secret().to_owned(),
    })
}
