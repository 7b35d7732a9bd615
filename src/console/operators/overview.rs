//! The first page of operators: what needs them, what waits, how much is done, and the state of the authority.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use authority_client::BreakerState;
use jiff::{SignedDuration, Timestamp};
use supervision::TreeSnapshot;

use crate::console::chart::Chart;
use crate::console::frame::{Frame, OVERVIEW};
use crate::console::live::LiveParts;
use crate::console::operators::incident_lines::IncidentLine;
use crate::console::page::{Answer, show};
use crate::console::session::operators::Viewer;
use crate::domain::events::endpoint_health::EndpointHealth;
use crate::domain::invoice::invoice_view::plain_time;
use crate::domain::pipeline::RunState;
use crate::http::endpoint::{Path, path};
use crate::http::incidents;
use crate::http::metrics::database_counts::{DatabaseCounts, signed};
use crate::http::metrics::history::RequestsInSecond;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/console").page(show_overview),
        path("/console/live/overview").page(live_overview),
    ]
}

/// Counts that are older than this are told to be old.
const STALE_AFTER: SignedDuration = SignedDuration::from_secs(15);

#[derive(Template)]
#[template(path = "operators/overview.html")]
struct OverviewPage {
    frame: Frame,
    live: String,
}

#[derive(Template)]
#[template(path = "operators/overview_live.html")]
struct OverviewPart {
    /// Says that the counts are old, if they are.
    stale: Option<String>,
    incidents: Vec<IncidentLine>,
    cards: Vec<Card>,
    charts: Vec<Chart>,
    breakers: Vec<BreakerLine>,
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
        frame: Frame::for_operator(&session, OVERVIEW),
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
    let now = state.now();
    let report = incidents::current_report(state).await;
    let counts = state.database_counts.last_counts();
    let seconds = state.traffic.history().seconds();
    let mut cards = counts
        .as_ref()
        .map(|counts| work_cards(counts))
        .unwrap_or_default();
    cards.push(actor_card(&state.tree.snapshot(0)));
    let part = OverviewPart {
        stale: stale_words(counts.map(|counts| counts.counted_at), now),
        incidents: report
            .incidents
            .iter()
            .map(|incident| IncidentLine::new(incident, now))
            .collect(),
        cards,
        charts: charts(&seconds),
        breakers: breakers(state),
    };
    part.render().map_err(ApiError::internal)
}

/// Returns the sentence that says how old the counts are, if they are not of this moment.
fn stale_words(counted_at: Option<Timestamp>, now: Timestamp) -> Option<String> {
    match counted_at {
        None => Some(
            "The database has not answered this process yet, so nothing is known of the work."
                .to_owned(),
        ),
        Some(at) if now.duration_since(at) > STALE_AFTER => Some(format!(
            "The database does not answer. The counts below are of {} UTC.",
            plain_time(at)
        )),
        Some(_) => None,
    }
}

fn card(title: &'static str, figure: i64, note: &str, path: &'static str) -> Card {
    Card {
        title,
        figure,
        note: note.to_owned(),
        path,
    }
}

fn work_cards(counts: &DatabaseCounts) -> Vec<Card> {
    let runs = |state| counts.runs_in(state).0;
    let endpoints = counts.endpoints.iter();
    let troubled = endpoints.filter(|(health, _)| *health != EndpointHealth::Working);
    let overdue = signed(counts.work.overdue.count);
    let due_soon = signed(counts.work.due_soon);
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
            "A step is made or due.",
            "/console/runs?state=running",
        ),
        card(
            "Deadlines missed",
            overdue,
            "Runs that the law wanted earlier.",
            "/console/runs?deadline=overdue",
        ),
        card(
            "Deadlines within an hour",
            due_soon,
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
            troubled.map(|(_, count)| count).sum(),
            "Failing, parked or disabled.",
            "/console/deliveries",
        ),
    ]
}

fn actor_card(tree: &TreeSnapshot) -> Card {
    let actors: usize = tree
        .groups
        .iter()
        .flat_map(|group| group.states.values())
        .sum();
    card(
        "Actors",
        i64::try_from(actors).unwrap_or(i64::MAX),
        &format!("{} restarts since the start.", tree.counters.restarts),
        "/console/supervision",
    )
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
