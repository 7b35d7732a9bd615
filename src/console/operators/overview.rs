//! The first page of operators: what needs them, what waits, how much is done, and the state of the authority.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use supervision::TreeSnapshot;

use crate::authority::BreakerState;
use crate::console::chart::Chart;
use crate::console::frame::Frame;
use crate::console::live::LiveParts;
use crate::console::page::{Answer, show};
use crate::console::session::operators::Viewer;
use crate::domain::events::endpoint_health::EndpointHealth;
use crate::domain::pipeline::RunState;
use crate::http::endpoint::{Path, path};
use crate::http::metrics::database_counts::DatabaseCounts;
use crate::http::metrics::history::RequestsInSecond;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/console").page(show_overview),
        path("/console/live/overview").page(live_overview),
    ]
}

#[derive(Template)]
#[template(path = "operators/overview.html")]
struct OverviewPage {
    frame: Frame,
    live: String,
}

#[derive(Template)]
#[template(path = "operators/overview_live.html")]
struct OverviewPart {
    alerts: Vec<Alert>,
    cards: Vec<Card>,
    charts: Vec<Chart>,
    breakers: Vec<BreakerLine>,
}

/// Something that needs an operator.
struct Alert {
    kind: &'static str,
    text: String,
    path: &'static str,
}

struct Card {
    title: &'static str,
    figure: i64,
    note: String,
    path: &'static str,
}

struct BreakerLine {
    operation: &'static str,
    state: &'static str,
    kind: &'static str,
    limit: u32,
    in_flight: u32,
    waiting: usize,
    calls: u32,
    failures: u32,
}

/// GET /console: shows the overview.
async fn show_overview(state: web::Data<ApiState>, Viewer(session): Viewer) -> Answer {
    let live = render(&state).await?;
    show(&OverviewPage {
        frame: Frame::for_operator(&session, "Overview"),
        live,
    })
}

/// GET /console/live/overview: streams the overview.
async fn live_overview(
    state: web::Data<ApiState>,
    request: HttpRequest,
    _: Viewer,
    parts: web::Data<LiveParts>,
) -> HttpResponse {
    let render = |state: web::Data<ApiState>| -> futures_util::future::LocalBoxFuture<'static, _> {
        Box::pin(async move { render(&state).await })
    };
    std::future::ready(parts.stream("overview", &request, &state, render)).await
}

async fn render(state: &ApiState) -> Result<String, ApiError> {
    let counts = state
        .database_counts
        .current_counts(&state.store, state.now())
        .await;
    let counts = counts.ok_or_else(|| ApiError::internal("the database gave no counts"))?;
    let tree = state.tree.snapshot(0);
    let report = state
        .health
        .report(&state.store, &state.tree, &state.authority)
        .await;
    let mut alerts = Vec::new();
    if !report.is_ready() {
        let text = "This process is not ready: its database or too many of its actors are down."
            .to_owned();
        alerts.push(Alert {
            kind: "bad",
            text,
            path: "/health/ready",
        });
    }
    if counts.is_outage_open {
        let text =
            "The authority is out. Runs wait and go on by themselves when it answers.".to_owned();
        alerts.push(Alert {
            kind: "warn",
            text,
            path: "/console/breakers",
        });
    }
    let quarantined: Vec<_> = counts
        .quarantined
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{count} × {kind}"))
        .collect();
    if !quarantined.is_empty() {
        let text = format!(
            "In quarantine, because it panicked twice or processes crashed on it: {}.",
            quarantined.join(", ")
        );
        alerts.push(Alert {
            kind: "bad",
            text,
            path: "/console/quarantine?state=kept",
        });
    }
    let differences: i64 = counts.findings.iter().map(|(_, count)| count).sum();
    if differences > 0 {
        let text =
            format!("{differences} differences from the authority's ledger wait for a decision.");
        alerts.push(Alert {
            kind: "warn",
            text,
            path: "/console/reconciliations",
        });
    }
    let seconds = state.traffic.history().seconds();
    let part = OverviewPart {
        alerts,
        cards: cards(&counts, &tree),
        charts: charts(&seconds),
        breakers: breakers(state),
    };
    part.render().map_err(ApiError::internal)
}

fn cards(counts: &DatabaseCounts, tree: &TreeSnapshot) -> Vec<Card> {
    let runs = |state| {
        let groups = counts.runs.iter().filter(move |group| group.state == state);
        groups.map(|group| group.runs).sum::<i64>()
    };
    let endpoints = |healths: &[EndpointHealth]| {
        let groups = counts
            .endpoints
            .iter()
            .filter(|(health, _)| healths.contains(health));
        groups.map(|(_, count)| count).sum::<i64>()
    };
    let actors: usize = tree
        .groups
        .iter()
        .flat_map(|group| group.states.values())
        .sum();
    let card = |title, figure: i64, note: &str, path| Card {
        title,
        figure,
        note: note.to_owned(),
        path,
    };
    vec![
        card(
            "Runs waiting",
            runs(RunState::Waiting),
            "They go on by themselves.",
            "/console/runs?state=waiting",
        ),
        card(
            "Runs paused",
            runs(RunState::Paused),
            "An operator has to move them.",
            "/console/runs?state=paused",
        ),
        card(
            "Runs at work",
            runs(RunState::Running),
            "Steps with the authority.",
            "/console/runs?state=running",
        ),
        card(
            "Deadlines missed",
            counts.overdue_runs(),
            "Runs that the law wanted earlier.",
            "/console/runs?deadline=overdue",
        ),
        card(
            "Deadlines within an hour",
            counts.runs_due_soon(),
            "Runs that have not ended.",
            "/console/runs?deadline=soon",
        ),
        card(
            "Deliveries to send",
            counts.deliveries_pending,
            "Notifications not yet taken.",
            "/console/deliveries",
        ),
        card(
            "Dead letters",
            counts.deliveries_dead,
            "No attempt is left.",
            "/console/deliveries/dead-letters",
        ),
        card(
            "Endpoints in trouble",
            endpoints(&[
                EndpointHealth::Failing,
                EndpointHealth::Parked,
                EndpointHealth::Disabled,
            ]),
            "Failing, parked or disabled.",
            "/console/deliveries",
        ),
        card(
            "Actors",
            i64::try_from(actors).unwrap_or(i64::MAX),
            &format!("{} restarts since the start.", tree.counters.restarts),
            "/console/supervision",
        ),
    ]
}

fn charts(seconds: &[RequestsInSecond]) -> Vec<Chart> {
    vec![
        Chart::new(
            "Requests a second",
            "/s",
            seconds.iter().map(|second| second.requests).collect(),
        ),
        Chart::new(
            "Mean time to the answer",
            "µs",
            seconds.iter().map(mean_us).collect(),
        ),
        Chart::new(
            "Answers with status 500 or more",
            "/s",
            seconds.iter().map(|second| second.failures).collect(),
        ),
    ]
}

fn mean_us(second: &RequestsInSecond) -> u64 {
    u64::try_from(second.took.as_micros()).unwrap_or(u64::MAX) / second.requests.max(1)
}

fn breakers(state: &ApiState) -> Vec<BreakerLine> {
    let breakers = state.authority.breakers();
    let limits = state.authority.limits();
    let lines = breakers
        .iter()
        .zip(&limits)
        .map(|(breaker, limit)| BreakerLine {
            operation: breaker.operation.name(),
            state: breaker.state.name(),
            kind: match breaker.state {
                BreakerState::Closed => "ok",
                BreakerState::HalfOpen => "warn",
                BreakerState::Open => "bad",
            },
            limit: limit.limit,
            in_flight: limit.in_flight,
            waiting: limit.waiting,
            calls: breaker.calls,
            failures: breaker.failures,
        });
    lines.collect()
}
