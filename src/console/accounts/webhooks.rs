//! The webhook of a taxpayer: its address, its events and its health.

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use database::page::Page;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::actors::taxpayer::commands::SetWebhook;
use crate::console::accounts::base;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show_with_status};
use crate::console::session::accounts::{AccountSession, Owner, Reader};
use crate::domain::events::delivery::Endpoint;
use crate::domain::events::endpoint_health::FailureStreak;
use crate::domain::events::event::EventKind;
use crate::domain::events::replay::Replay;
use crate::domain::kernel::fault::Faults;
use crate::http::endpoint::{Path, path};
use crate::http::forms::reader::Reader as BodyReader;
use crate::http::forms::{report, webhook};
use crate::http::state::ApiState;
use crate::store::webhooks;
use crate::store::webhooks::delivery_log::{self, OpenDeliveries};
use crate::store::webhooks::replays;

pub(crate) fn endpoints() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/webhooks")
            .page(show_webhook)
            .form(save),
    ]
}

/// The number of replays that the page shows.
const NEWEST_REPLAYS: Page = Page {
    number: 1,
    per_page: 5,
};

#[derive(Template)]
#[template(path = "accounts/webhooks.html")]
struct WebhookPage {
    frame: Frame,
    base: String,
    endpoint: Option<Endpoint>,
    health: Health,
    open: OpenDeliveries,
    events: Vec<EventChoice>,
    replays: Vec<ReplayLine>,
    form: FormState,
}

/// The health of the endpoint, in words.
pub(super) struct Health {
    pub(super) badge: Badge,
    pub(super) note: String,
    /// The time of the next attempt, if the endpoint is parked because its attempts only fail.
    pub(super) until: Option<Timestamp>,
}

impl Health {
    pub(super) fn from_endpoint(
        endpoint: Option<&Endpoint>,
        failing: Option<&FailureStreak>,
    ) -> Self {
        let health = |class, text, note: &str| Self {
            badge: Badge { class, text },
            note: note.to_owned(),
            until: None,
        };
        let Some(endpoint) = endpoint else {
            return health(
                "idle",
                "Not set up",
                "Nothing is sent before there is an address.",
            );
        };
        if !endpoint.is_active {
            let reason = endpoint
                .disabled_reason
                .as_deref()
                .unwrap_or("It was disabled.");
            return health("bad", "Disabled", reason);
        }
        let Some(failing) = failing else {
            return health(
                "ok",
                "Healthy",
                "The last attempt succeeded, or none was made yet.",
            );
        };
        let failures = format!("{} attempts in a row failed.", failing.failures);
        match failing.parked_until {
            None => health("warn", "Failing", &failures),
            Some(until) => {
                let note = format!(
                    "{failures} Deliveries wait until one succeeds; the next one is tried at"
                );
                Self {
                    until: Some(until),
                    ..health("bad", "Paused", &note)
                }
            }
        }
    }
}

/// An event that the endpoint can subscribe to.
pub(super) struct EventChoice {
    pub(super) name: String,
    pub(super) words: &'static str,
    pub(super) is_on: bool,
}

struct ReplayLine {
    replay: Replay,
    badge: Badge,
}

async fn show_webhook(state: web::Data<ApiState>, Reader(session): Reader) -> Answer {
    render(&state, &session, None).await
}

/// POST of the form: sets address, events and schedule, as the API call Update Webhook does.
async fn save(state: web::Data<ApiState>, Owner(session): Owner, form: Form<FormValues>) -> Answer {
    let policy = state.webhook_address_policy(session.taxpayer).await?;
    let read = |reader: &mut BodyReader<'_>| webhook::read(reader, &policy);
    let asked = match report::read(&to_api_body(&form.0), &state.catalog.get(), read) {
        Ok(asked) => asked.value,
        Err(faults) => return render(&state, &session, Some((form.0, faults))).await,
    };
    let webhook::Webhook {
        url,
        enabled_events,
        retry_schedule,
    } = asked;
    let change = SetWebhook {
        url,
        enabled_events,
        retry_schedule,
        by: session.by,
    };
    session.send(&state, change).await?;
    Ok(go_to(
        &format!("{}/webhooks", base(&session)),
        "The webhook was saved. Test it now.",
    ))
}

/// Returns the form as the body of the API call Update Webhook. A blank schedule stands for the one of the deployment.
fn to_api_body(values: &FormValues) -> Map<String, Value> {
    let mut body = values.object(&["webhook_url"]);
    let events: Vec<_> = values
        .checked_values("enabled_events")
        .map(Value::from)
        .collect();
    body.insert("enabled_events".to_owned(), events.into());
    let schedule = match values.text("retry_schedule_s") {
        "" => Value::Null,
        text => text
            .split(',')
            .map(|delay| delay_value(delay.trim()))
            .collect(),
    };
    body.insert("retry_schedule_s".to_owned(), schedule);
    body
}

/// Returns a delay as a JSON number. A text that is no number stays a text, so that the API's check refuses it.
fn delay_value(text: &str) -> Value {
    text.parse::<u32>()
        .map_or_else(|_| Value::from(text), Value::from)
}

async fn render(
    state: &ApiState,
    session: &AccountSession,
    refused: Option<(FormValues, Faults)>,
) -> Answer {
    let store = &state.store;
    let id = session.taxpayer;
    let (endpoint, failing) = webhooks::with_failure_streak(store.reader(), id)
        .await?
        .unzip();
    let (replays, _) = replays::page_owned_by(store, id, NEWEST_REPLAYS).await?;
    let open = delivery_log::open_owned_by(store, id).await?;
    let status = if refused.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let form = match refused {
        Some((values, faults)) => FormState::with_faults(values, faults),
        None => FormState::new(form_values(endpoint.as_ref())),
    };
    let page = WebhookPage {
        frame: Frame::for_account(session, "Webhooks"),
        base: base(session),
        health: Health::from_endpoint(endpoint.as_ref(), failing.flatten().as_ref()),
        events: event_choices(endpoint.as_ref(), &form),
        replays: replays.into_iter().map(ReplayLine::from).collect(),
        open,
        endpoint,
        form,
    };
    show_with_status(status, &page)
}

fn form_values(endpoint: Option<&Endpoint>) -> FormValues {
    let Some(endpoint) = endpoint else {
        return FormValues::default();
    };
    let delays = endpoint
        .retry_schedule
        .iter()
        .flatten()
        .map(ToString::to_string);
    let schedule = delays.collect::<Vec<_>>().join(", ");
    let events = endpoint
        .enabled_events
        .iter()
        .map(|name| ("enabled_events", name.as_str()));
    let fields = [
        ("webhook_url", endpoint.url.as_str()),
        ("retry_schedule_s", &schedule),
    ];
    fields.into_iter().chain(events).collect()
}

/// Returns all events, and the unknown names that the endpoint has, so that saving keeps them.
pub(super) fn event_choices(endpoint: Option<&Endpoint>, form: &FormState) -> Vec<EventChoice> {
    let kinds = EventKind::ALL
        .iter()
        .copied()
        .filter(|kind| *kind != EventKind::WebhookTest);
    let known = kinds.map(|kind| (kind.to_string(), describe_event(kind)));
    let names = endpoint
        .map(|endpoint| endpoint.enabled_events.as_slice())
        .unwrap_or_default();
    let unknown = names
        .iter()
        .filter(|name| !EventKind::ALL.iter().any(|kind| kind.as_str() == **name))
        .map(|name| (name.clone(), "Not an event of this service"));
    known
        .chain(unknown)
        .map(|(name, words)| EventChoice {
            is_on: form.has("enabled_events", &name),
            name,
            words,
        })
        .collect()
}

fn describe_event(kind: EventKind) -> &'static str {
    match kind {
        EventKind::InvoiceCreated => "An invoice was created",
        EventKind::InvoiceUpdated => "An invoice was changed",
        EventKind::InvoiceStatusUpdated => "The status of an invoice changed",
        EventKind::InvoiceValidated => "The authority found an invoice valid",
        EventKind::InvoiceSubmitted => "The authority signed an invoice",
        EventKind::InvoiceTransmitted => "An invoice was transmitted to the customer",
        EventKind::InvoiceAcknowledged => "The customer's receipt was confirmed",
        EventKind::InvoiceReported => "An invoice was reported for VAT",
        EventKind::InvoiceRejected => "The authority refused an invoice",
        EventKind::InvoiceFailed => "The service gave an invoice up",
        EventKind::InvoiceBatchCompleted => "A batch was stored",
        EventKind::PaymentStatusUpdated => "A payment was recorded",
        EventKind::SupplierInvoiceReceived => "A supplier's invoice arrived",
        EventKind::SupplierInvoiceAcknowledged => "A supplier's invoice was acknowledged",
        EventKind::ApiKeyRotated => "The API key was replaced",
        EventKind::TaxpayerVerified => "The authority confirmed this business",
        EventKind::TaxpayerUnverified => "The authority could not confirm this business",
        EventKind::AuthorityOutageStarted => "The authority stopped answering",
        EventKind::AuthorityOutageEnded => "The authority answers again",
        EventKind::WebhookUpdated => "The webhook was changed",
        EventKind::WebhookTest => "A test",
    }
}

impl From<Replay> for ReplayLine {
    fn from(replay: Replay) -> Self {
        Self {
            badge: replay.state.into(),
            replay,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_says_what_the_api_asks_for() {
        let fields = [
            ("webhook_url", "https://example.com/hook"),
            ("enabled_events", "invoice.created"),
            ("enabled_events", "invoice.updated"),
            ("retry_schedule_s", "0, 60,x"),
        ];
        let expected = json!({
            "webhook_url": "https://example.com/hook",
            "enabled_events": ["invoice.created", "invoice.updated"],
            "retry_schedule_s": [0, 60, "x"],
        });
        assert_eq!(
            Value::Object(to_api_body(&FormValues::from(fields))),
            expected
        );
        let blank = json!({ "enabled_events": [], "retry_schedule_s": null });
        assert_eq!(Value::Object(to_api_body(&FormValues::default())), blank);
    }

    #[test]
    fn an_endpoint_that_only_fails_says_until_when() {
        let at = Timestamp::UNIX_EPOCH;
        let failing = FailureStreak {
            since: at,
            last: at,
            failures: 7,
            probes: 1,
            parked_until: Some(at),
            last_failure: None,
            last_status: None,
        };
        let endpoint = Endpoint {
            id: 1,
            taxpayer_id: crate::domain::kernel::ids::TaxpayerId(1),
            url: "https://example.com".into(),
            enabled_events: Vec::new(),
            is_active: true,
            disabled_reason: None,
            disabled_after: None,
            public_key: None,
            retry_schedule: None,
            created_at: at,
            updated_at: at,
        };
        let parked = Health::from_endpoint(Some(&endpoint), Some(&failing));
        assert_eq!((parked.badge.text, parked.until), ("Paused", Some(at)));
        assert!(
            parked.note.starts_with("7 attempts in a row failed."),
            "{}",
            parked.note
        );
        assert_eq!(
            Health::from_endpoint(Some(&endpoint), None).badge.text,
            "Healthy"
        );
        assert_eq!(Health::from_endpoint(None, None).badge.text, "Not set up");
        let disabled = Endpoint {
            is_active: false,
            disabled_reason: Some("410".into()),
            ..endpoint
        };
        assert_eq!(Health::from_endpoint(Some(&disabled), None).note, "410");
    }
}
