//! Deliveries to webhooks: the endpoints by their health, and the dead letters with their replay.

use actix_web::web;
use askama::Template;
use serde::Deserialize;

use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::reason::ReasonForm;
use crate::console::page::{Answer, Form, Pages, go_to, show};
use crate::console::session::operators::{Operator, Viewer};
use crate::domain::events::endpoint_health::{CircuitState, EndpointHealth};
use crate::domain::invoice::invoice_view::plain_time;
use crate::http::api::ops::dead_letters;
use crate::http::endpoint::{Path, path};
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::state::ApiState;
use crate::http::views::guidance::Guidance;
use crate::store::webhooks::delivery_log::LoggedDelivery;
use crate::store::webhooks::endpoint_list::{EndpointFilter, ListedEndpoint};
use crate::store::webhooks::{delivery_log, endpoint_list};

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/console/deliveries").page(list_endpoints),
        path("/console/deliveries/dead-letters").page(list_dead_letters),
        path("/console/deliveries/dead-letters/replay").form(replay_all),
        path("/console/deliveries/dead-letters/{id}/replay").form(replay),
    ]
}

#[derive(Template)]
#[template(path = "operators/endpoints.html")]
struct EndpointsPage {
    frame: Frame,
    list: ListQuery,
    rows: Vec<EndpointLine>,
    pages: Pages,
}

struct EndpointLine {
    listed: ListedEndpoint,
    url: String,
    badge: Badge,
    why: String,
}

#[derive(Template)]
#[template(path = "operators/dead_letters.html")]
struct DeadLettersPage {
    frame: Frame,
    list: ListQuery,
    rows: Vec<DeadLetterLine>,
    pages: Pages,
}

struct DeadLetterLine {
    logged: LoggedDelivery,
    guidance: Guidance,
}

/// The form that replays the dead letters of a taxpayer.
#[derive(Debug, Deserialize)]
struct ReplayForm {
    taxpayer_id: String,
    reason: String,
}

/// GET /console/deliveries: lists the webhook endpoints of all taxpayers.
async fn list_endpoints(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let list = ListQuery::new(&query);
    let now = state.now();
    let health = list
        .0
        .word("health", EndpointHealth::parse, EndpointHealth::allowed)?;
    let filter = EndpointFilter {
        health,
        taxpayer_id: list.0.taxpayer_id("taxpayer_id"),
    };
    let (found, total) = endpoint_list::page(&state.store, filter, list.page()).await?;
    let rows = found.into_iter().map(|listed| {
        let circuit = listed
            .streak
            .as_ref()
            .map(|streak| streak.circuit_state(now));
        EndpointLine {
            badge: listed.health.into(),
            url: url_without_query(&listed.endpoint.url),
            why: explain_health(&listed, circuit),
            listed,
        }
    });
    let page = EndpointsPage {
        frame: Frame::for_operator(&session, "Deliveries"),
        pages: list.pages("/console/deliveries", total),
        rows: rows.collect(),
        list,
    };
    show(&page)
}

/// GET /console/deliveries/dead-letters: lists the deliveries that were given up.
async fn list_dead_letters(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let list = ListQuery::new(&query);
    let taxpayer = list.0.taxpayer_id("taxpayer_id");
    let (found, total) = delivery_log::dead_page(&state.store, taxpayer, list.page()).await?;
    let page = DeadLettersPage {
        frame: Frame::for_operator(&session, "Deliveries"),
        pages: list.pages("/console/deliveries/dead-letters", total),
        rows: found.into_iter().map(DeadLetterLine::from).collect(),
        list,
    };
    show(&page)
}

/// POST /console/deliveries/dead-letters/{id}/replay: queues a dead letter for delivery again.
async fn replay(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    id: web::Path<String>,
    form: Form<ReasonForm>,
) -> Answer {
    let by = form.0.request(&state, &session)?;
    dead_letters::replay_one(&state, &id, by).await?;
    Ok(go_to(
        "/console/deliveries/dead-letters",
        "The notification is sent again.",
    ))
}

/// POST /console/deliveries/dead-letters/replay: queues all dead letters of a taxpayer for delivery again.
async fn replay_all(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    form: Form<ReplayForm>,
) -> Answer {
    let ReplayForm {
        taxpayer_id,
        reason,
    } = form.0;
    let by = ReasonForm { reason }.request(&state, &session)?;
    let taxpayer = path_ids::existing_taxpayer_id(&state, taxpayer_id.trim()).await?;
    dead_letters::replay_all(&state, taxpayer, None, by).await?;
    Ok(go_to(
        "/console/deliveries/dead-letters",
        "The dead letters of the taxpayer are sent again.",
    ))
}

impl From<EndpointHealth> for Badge {
    fn from(health: EndpointHealth) -> Self {
        let (class, text) = match health {
            EndpointHealth::Working => ("ok", "Working"),
            EndpointHealth::Failing => ("warn", "Failing"),
            EndpointHealth::Parked => ("bad", "Parked"),
            EndpointHealth::Disabled => ("idle", "Disabled"),
        };
        Self { class, text }
    }
}

/// Returns a URL without its query, which may contain a secret.
pub(super) fn url_without_query(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Says in one sentence what the deliveries of an endpoint wait for.
fn explain_health(listed: &ListedEndpoint, circuit: Option<CircuitState>) -> String {
    let since = listed.streak.as_ref().map_or_else(String::new, |streak| {
        format!("{} UTC", plain_time(streak.since))
    });
    match (listed.health, circuit) {
        (EndpointHealth::Disabled, _) => {
            let reason = listed
                .endpoint
                .disabled_reason
                .as_deref()
                .unwrap_or("It was disabled.");
            format!("{reason} Nothing is sent until the taxpayer enables it again.")
        }
        (_, Some(CircuitState::Parked(until))) => format!(
            "It has only failed since {since}. One notification is sent as a probe at {} UTC; a success lets the others follow.",
            plain_time(until)
        ),
        (_, Some(CircuitState::Probe)) => {
            format!("It has only failed since {since}. The next notification is sent as a probe.")
        }
        (EndpointHealth::Failing | EndpointHealth::Parked, _) => {
            format!(
                "It has failed since {since}. Each notification is tried again by its schedule."
            )
        }
        (EndpointHealth::Working, _) if listed.pending > 0 => {
            "Its notifications are being sent.".to_owned()
        }
        (EndpointHealth::Working, _) => "Nothing waits.".to_owned(),
    }
}

impl From<LoggedDelivery> for DeadLetterLine {
    fn from(logged: LoggedDelivery) -> Self {
        let last = logged.attempts.last();
        let failure = last.and_then(|attempt| attempt.failure.as_deref());
        let guidance = Guidance::for_failure(failure, last.and_then(|attempt| attempt.status));
        Self { logged, guidance }
    }
}
