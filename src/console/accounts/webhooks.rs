//! The page of a webhook endpoint: its URL, its events, its health, and the outcomes of its deliveries in the last day.
//! The page of the default endpoint also lists the others.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;
use database::page::Page;
use serde_json::{Map, Value};

use crate::actors::taxpayer::commands::{ChangeEndpoint, IfUnchanged, SeenSettings, SetWebhook};
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::webhook_form::{
    EventChoice, event_choices, form_values, requested_settings,
};
use crate::console::accounts::webhook_health::WebhookHealth;
use crate::console::accounts::webhook_target::{EndpointLine, WebhookTarget, added_endpoints};
use crate::console::badges::Badge;
use crate::console::chart::Chart;
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show_with_status};
use crate::console::session::accounts::{AccountSession, Owner, Reader};
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::replay::Replay;
use crate::domain::party::settings::SettingChange;
use crate::http::forms::reader::Reader as BodyReader;
use crate::http::forms::{reader, webhook, webhook_endpoint};
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::webhooks;
use crate::store::webhooks::delivery_log::{self, UndeliveredCounts};
use crate::store::webhooks::delivery_stats::{self, ATTEMPTS_COUNTED_MAX, HourStats};
use crate::store::webhooks::replays;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/webhooks")
            .page(show_webhook)
            .form(save_webhook),
        path("/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}")
            .page(show_webhook)
            .form(save_webhook),
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
    target: WebhookTarget,
    endpoint: Option<Endpoint>,
    health: WebhookHealth,
    undelivered: UndeliveredCounts,
    /// The outcomes of the deliveries of the last day by hour; empty if nothing was attempted.
    charts: Vec<Chart>,
    /// The maximum number of attempts that the charts count, if it was reached; `None` if the charts count all.
    counted_max: Option<i64>,
    events: Vec<EventChoice>,
    replays: Vec<ReplayLine>,
    /// The form of the settings.
    form: FormState,
    forms: ActionForms,
    /// The faults of the forms, each as its field and its message.
    faults: Vec<(String, String)>,
    /// The endpoints other than the default one; empty on their own pages.
    others: Vec<EndpointLine>,
}

impl WebhookPage {
    /// False for a disabled endpoint, for which a replay is refused. A refused form is shown again all the same.
    fn shows_replay_form(&self) -> bool {
        let endpoint = self.endpoint.as_ref();
        self.forms.replay.is_refused() || endpoint.is_some_and(|endpoint| endpoint.is_active)
    }
}

/// The forms of the acts on the endpoint: empty, or with the values and faults of a refused attempt.
#[derive(Default)]
pub(super) struct ActionForms {
    pub(super) secret: FormState,
    pub(super) enable: FormState,
    pub(super) replay: FormState,
}

struct ReplayLine {
    replay: Replay,
    badge: Badge,
}

async fn show_webhook(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    request: HttpRequest,
) -> Answer {
    let target = WebhookTarget::find(&state, &session, &request).await?;
    render(&state, &session, target, None, ActionForms::default()).await
}

/// POST of the form: sets URL, events and schedule, like the API calls.
async fn save_webhook(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let target = WebhookTarget::find(&state, &session, &request).await?;
    let found = webhooks::find_by_key(state.store.reader(), target.key).await?;
    let stored = form_values(found.as_ref(), target.url_field());
    let seen = SeenSettings::Endpoint(target.key, found.map(Box::new));
    let saved = if target.is_default() {
        let body = requested_settings(&form.0, &["webhook_url"], &stored);
        set_webhook(&state, &session, seen, &body).await
    } else {
        let body = requested_settings(&form.0, &["url", "description"], &stored);
        change_endpoint(&state, &session, &target, seen, &body).await
    };
    match saved {
        Ok(has_events) => Ok(go_to(&target.path, saved_notice(has_events))),
        Err(error) => {
            let settings = FormState::from_refusal(error, form.0)?;
            let others = ActionForms::default();
            render(&state, &session, target, Some(settings), others).await
        }
    }
}

/// Returns the notice after the form was saved. Without a ticked event, it warns that nothing is sent.
fn saved_notice(has_events: bool) -> &'static str {
    if has_events {
        "The webhook was saved. Test it now."
    } else {
        "The webhook was saved, but nothing is sent to it: no event is ticked."
    }
}

/// Sets the default endpoint. Returns true if it gets any events.
async fn set_webhook(
    state: &ApiState,
    session: &AccountSession,
    seen: SeenSettings,
    body: &Map<String, Value>,
) -> Result<bool, ApiError> {
    let policy = state.webhook_address_policy(session.taxpayer).await?;
    let read = |reader: &mut BodyReader<'_>| webhook::read(reader, &policy);
    let asked = reader::read(body, &state.catalog.get(), read)?.value;
    let command = SetWebhook {
        url: asked.url,
        enabled_events: asked.enabled_events,
        retry_schedule: asked.retry_schedule,
        by: session.by,
    };
    let change = IfUnchanged {
        seen: Some(seen),
        command,
    };
    let endpoint = session.send(state, change).await?;
    Ok(!endpoint.enabled_events.is_empty())
}

/// Changes an added endpoint. Returns true if it gets any events.
async fn change_endpoint(
    state: &ApiState,
    session: &AccountSession,
    target: &WebhookTarget,
    seen: SeenSettings,
    body: &Map<String, Value>,
) -> Result<bool, ApiError> {
    let read =
        |reader: &mut BodyReader<'_>| webhook_endpoint::read_new(reader, &state.webhook_urls);
    let asked = reader::read(body, &state.catalog.get(), read)?.value;
    let command = ChangeEndpoint {
        endpoint: target.key,
        url: Some(asked.url),
        enabled_events: Some(asked.enabled_events),
        description: asked
            .description
            .map_or(SettingChange::Unset, SettingChange::Set),
        retry_schedule: asked.retry_schedule,
        by: session.by,
    };
    let change = IfUnchanged {
        seen: Some(seen),
        command,
    };
    let endpoint = session.send(state, change).await?;
    Ok(!endpoint.enabled_events.is_empty())
}

/// Shows the page with a refused form, if there is one. `settings` is `None` if the form shows the stored settings.
pub(super) async fn render(
    state: &ApiState,
    session: &AccountSession,
    target: WebhookTarget,
    settings: Option<FormState>,
    forms: ActionForms,
) -> Answer {
    let store = &state.store;
    let (endpoint, streak) = webhooks::find_by_key_with_streak(store.reader(), target.key)
        .await?
        .unzip();
    let (replays, _) = replays::page_for_endpoint(store, target.key, NEWEST_REPLAYS).await?;
    let day = delivery_stats::count_last_day_by_hour(store, target.key, state.now()).await?;
    let form = settings.unwrap_or_else(|| {
        let stored = form_values(endpoint.as_ref(), target.url_field());
        FormState::new(stored.with_original_values())
    });
    let all_forms = [&form, &forms.secret, &forms.enable, &forms.replay];
    let faults: Vec<_> = all_forms.iter().flat_map(|form| form.summary()).collect();
    let status = if faults.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    let charts = charts(&day.hours);
    let health = WebhookHealth::from_endpoint(endpoint.as_ref(), streak.flatten().as_ref());
    let undelivered = delivery_log::count_undelivered_by_endpoint(store, session.taxpayer).await?;
    let (frame, others) = if target.is_default() {
        let others = added_endpoints(state, session, &undelivered).await?;
        (Frame::for_account(session, "Webhooks"), others)
    } else {
        let frame = Frame::for_account(session, "Webhook endpoint").with_section("Webhooks");
        (frame, Vec::new())
    };
    let page = WebhookPage {
        frame,
        base: base_path(session),
        undelivered: undelivered.get(&target.key).copied().unwrap_or_default(),
        health: health
            .with_last_day(!charts.is_empty())
            .without_past_time(state.now()),
        charts,
        counted_max: day.is_partial.then_some(ATTEMPTS_COUNTED_MAX),
        events: event_choices(endpoint.as_ref(), &form),
        replays: replays.into_iter().map(ReplayLine::from).collect(),
        target,
        endpoint,
        form,
        forms,
        faults,
        others,
    };
    show_with_status(status, &page)
}

fn charts(hours: &[HourStats]) -> Vec<Chart> {
    let values = |value: fn(&HourStats) -> u64| hours.iter().map(value).collect::<Vec<_>>();
    if hours.iter().all(|hour| hour.delivered + hour.failed == 0) {
        return Vec::new();
    }
    vec![
        Chart::new("Delivered", "deliveries", values(|hour| hour.delivered)),
        Chart::new("Failed attempts", "attempts", values(|hour| hour.failed)),
        Chart::new(
            "Average response time",
            "ms",
            values(|hour| hour.average_ms),
        ),
    ]
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
    use super::*;

    #[test]
    fn a_day_without_an_attempt_has_no_chart() {
        let hour = |delivered, failed| HourStats {
            delivered,
            failed,
            average_ms: 7,
        };
        assert!(charts(&[hour(0, 0), hour(0, 0)]).is_empty());
        let drawn = charts(&[hour(0, 0), hour(3, 1)]);
        let highest: Vec<_> = drawn.iter().map(|chart| chart.highest).collect();
        assert_eq!(highest, [3, 1, 7]);
    }
}
