//! The acts of an owner on a webhook endpoint: replace its signing secret, send a test message, grade the receiver
//! (send valid and invalid messages and judge the answers), enable the endpoint again, start and cancel replays, and
//! remove the endpoint.

use actix_web::{HttpRequest, web};
use askama::Template;
use secrecy::ExposeSecret;
use webhook_client::{AttemptResult, GradeReport, SigningSecret};

use crate::actors::delivery::GradingOutcome;
use crate::actors::taxpayer::commands::{
    CancelReplay, EnableEndpoint, RemoveEndpoint, RotateSecret, StartReplay,
};
use crate::console::accounts::webhook_target::WebhookTarget;
use crate::console::accounts::webhooks::{self, ActionForms};
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show};
use crate::console::session::accounts::{AccountSession, Owner};
use crate::domain::events::replay::{Replay, ReplayRange, ReplayState};
use crate::domain::kernel::refusal::Refusal;
use crate::http::extract::path_ids;
use crate::http::forms::{reader, replay, webhook};
use crate::http::key_generation;
use crate::http::limits::{self, SensitiveOperation};
use crate::http::paths::{Path, path};
use crate::http::respond::error::{ApiError, capitalize};
use crate::http::state::ApiState;
use crate::http::views::guidance::Guidance;
use crate::store::events;
use crate::store::webhooks::replays;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/webhooks/secret").form(rotate_secret),
        path("/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}/secret").form(rotate_secret),
        path("/dashboard/{taxpayer}/webhooks/test")
            .form(send_test)
            .allows_form_repeat(),
        path("/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}/test")
            .form(send_test)
            .allows_form_repeat(),
        path("/dashboard/{taxpayer}/webhooks/grade")
            .form(grade_receiver)
            .allows_form_repeat(),
        path("/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}/grade")
            .form(grade_receiver)
            .allows_form_repeat(),
        path("/dashboard/{taxpayer}/webhooks/enable").form(handle_enable_form),
        path("/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}/enable").form(handle_enable_form),
        path("/dashboard/{taxpayer}/webhooks/replay").form(start_replay),
        path("/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}/replay").form(start_replay),
        path("/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}/remove").form(remove_endpoint),
        path("/dashboard/{taxpayer}/webhooks/replays/{replay}/cancel").form(cancel_replay),
    ]
}

/// The only page that shows a new signing secret.
#[derive(Template)]
#[template(path = "accounts/new_secret.html")]
pub(super) struct NewSecretPage {
    pub(super) frame: Frame,
    /// The address of the endpoint's page.
    pub(super) endpoint_page: String,
    pub(super) text: String,
    /// True if the text is a public key, which is no secret.
    pub(super) is_public: bool,
}

#[derive(Template)]
#[template(path = "accounts/webhook_test.html")]
struct TestPage {
    frame: Frame,
    endpoint_page: String,
    is_delivered: bool,
    status: Option<u16>,
    duration_ms: u128,
    /// Why the message did not arrive, and advice; empty if it arrived.
    why: String,
    what_to_do: &'static str,
    response: String,
}

#[derive(Template)]
#[template(path = "accounts/webhook_grade.html")]
struct GradePage {
    frame: Frame,
    endpoint_page: String,
    graded: GradeReport,
}

async fn rotate_secret(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let target = WebhookTarget::find(&state, &session, &request).await?;
    let secret = match replace_secret(&state, &session, &target, &form.0).await {
        Ok(secret) => secret,
        Err(error) => {
            let forms = ActionForms {
                secret: FormState::from_refusal(error, form.0)?,
                ..ActionForms::default()
            };
            return webhooks::render(&state, &session, target, None, forms).await;
        }
    };
    let public_key = secret.public_key();
    show(&NewSecretPage {
        frame: Frame::for_account(&session, "Your new signing secret").with_section("Webhooks"),
        endpoint_page: target.path,
        is_public: public_key.is_some(),
        text: public_key.unwrap_or_else(|| secret.text().expose_secret().to_owned()),
    })
}

async fn replace_secret(
    state: &ApiState,
    session: &AccountSession,
    target: &WebhookTarget,
    form: &FormValues,
) -> Result<SigningSecret, ApiError> {
    let body = form.to_object(&["type"]);
    let kind = reader::read(&body, &state.catalog.get(), webhook::read_secret_type)?.value;
    let secret = key_generation::generate_webhook_secret(kind);
    let command = RotateSecret {
        endpoint: target.key,
        secret: secret.clone(),
        by: session.by,
    };
    session.send(state, command).await?;
    Ok(secret)
}

/// Counts a test towards the limit that the API has too, because each test sends a request to the receiver.
fn count_test_towards_limit(state: &ApiState, session: &AccountSession) -> Result<(), ApiError> {
    let test = SensitiveOperation::WebhookTest;
    let counted = state
        .limits
        .count_sensitive_operation(test, session.taxpayer, state.now());
    counted.map(drop).map_err(limits::limit_error)
}

async fn send_test(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    request: HttpRequest,
    _: Form<FormValues>,
) -> Answer {
    let target = WebhookTarget::find(&state, &session, &request).await?;
    count_test_towards_limit(&state, &session)?;
    let attempt = state.delivery.send_test_delivery(target.key).await?;
    show(&test_page(&session, target, attempt))
}

fn test_page(session: &AccountSession, target: WebhookTarget, attempt: AttemptResult) -> TestPage {
    let is_delivered = attempt.is_delivered();
    let failure = attempt
        .outcome
        .failure_sentence()
        .map(|failure| capitalize(&failure));
    let guidance = Guidance::for_failure(Some(attempt.outcome.name()), attempt.status);
    TestPage {
        frame: Frame::for_account(session, "Test of the webhook").with_section("Webhooks"),
        endpoint_page: target.path,
        is_delivered,
        status: attempt.status,
        duration_ms: attempt.duration.as_millis(),
        why: failure.unwrap_or_default(),
        what_to_do: if is_delivered {
            ""
        } else {
            guidance.what_to_do
        },
        response: attempt.response_head,
    }
}

async fn grade_receiver(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    request: HttpRequest,
    _: Form<FormValues>,
) -> Answer {
    let target = WebhookTarget::find(&state, &session, &request).await?;
    count_test_towards_limit(&state, &session)?;
    match state.delivery.grade(target.key).await? {
        GradingOutcome::Unanswered(attempt) => show(&test_page(&session, target, attempt)),
        GradingOutcome::Graded(graded) => show(&GradePage {
            frame: Frame::for_account(&session, "Grade of the webhook").with_section("Webhooks"),
            endpoint_page: target.path,
            graded,
        }),
    }
}

async fn handle_enable_form(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let target = WebhookTarget::find(&state, &session, &request).await?;
    match enable_endpoint(&state, &session, &target, &form.0).await {
        Ok(()) => Ok(go_to(&target.path, "The webhook is in service again.")),
        Err(error) => {
            let forms = ActionForms {
                enable: FormState::from_refusal(error, form.0)?,
                ..ActionForms::default()
            };
            webhooks::render(&state, &session, target, None, forms).await
        }
    }
}

async fn enable_endpoint(
    state: &ApiState,
    session: &AccountSession,
    target: &WebhookTarget,
    form: &FormValues,
) -> Result<(), ApiError> {
    let body = form.to_object(&["replay"]);
    let wanted = reader::read(&body, &state.catalog.get(), replay::read_enable_request)?.value;
    let command = EnableEndpoint {
        endpoint: target.key,
        replay: wanted.scope(),
        reason: None,
    };
    session.send(state, command).await?;
    Ok(())
}

async fn start_replay(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let target = WebhookTarget::find(&state, &session, &request).await?;
    match replay_events(&state, &session, &target, &form.0).await {
        Ok(replay) if replay.is_empty() => {
            let notice = "There is nothing to deliver again from there on.";
            Ok(go_to(&target.path, notice))
        }
        Ok(_) => {
            let notice = "The replay began. It shows below how far it is.";
            Ok(go_to(&target.path, notice))
        }
        Err(error) => {
            let forms = ActionForms {
                replay: FormState::from_refusal(error, form.0)?,
                ..ActionForms::default()
            };
            webhooks::render(&state, &session, target, None, forms).await
        }
    }
}

async fn replay_events(
    state: &ApiState,
    session: &AccountSession,
    target: &WebhookTarget,
    form: &FormValues,
) -> Result<Replay, ApiError> {
    let mut body = form.to_object(&["since", "only"]);
    if form.text("since").parse::<jiff::civil::Date>().is_ok() {
        body.insert(
            "since".to_owned(),
            format!("{}T00:00:00Z", form.text("since")).into(),
        );
    }
    let wanted = reader::read(&body, &state.catalog.get(), replay::read)?.value;
    let first = events::sequence_at_position(&state.store, session.taxpayer, wanted.since).await?;
    let command = StartReplay {
        endpoint: target.key,
        range: ReplayRange::from_sequence(wanted.scope, first),
        by: None,
    };
    Ok(session.send(state, command).await?)
}

async fn cancel_replay(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    let id = path_ids::parse_uuid(&ids.1).ok_or(Refusal::ReplayNotFound)?;
    let found = replays::find_owned_by_id(&state.store, session.taxpayer, id).await?;
    let replay = found.ok_or(Refusal::ReplayNotFound)?;
    if replay.state != ReplayState::Cancelled {
        session.send(&state, CancelReplay(replay.id)).await?;
    }
    Ok(go_to(
        &WebhookTarget::new(&session, replay.endpoint).path,
        "The replay was ended. What it had queued is still delivered.",
    ))
}

/// POST …/remove: deletes an added endpoint together with its undelivered events.
async fn remove_endpoint(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    request: HttpRequest,
    _: Form<FormValues>,
) -> Answer {
    let target = WebhookTarget::find(&state, &session, &request).await?;
    let command = RemoveEndpoint {
        endpoint: target.key,
        by: session.by,
    };
    session.send(&state, command).await?;
    Ok(go_to(
        &WebhookTarget::new(&session, session.taxpayer.into()).path,
        "The endpoint was deleted. Its undelivered deliveries ended.",
    ))
}
