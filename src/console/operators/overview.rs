//! The operators' start page: items that need attention, waiting work, throughput, and the state of the authority.

use std::fmt::Display;

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use jiff::{SignedDuration, Timestamp};

use crate::actors::pipeline::run_holds::HeldRuns;
use crate::console::badges::Badge;
use crate::console::chart::{Chart, MICROSECONDS};
use crate::console::filters;
use crate::console::frame::{Frame, OVERVIEW_TITLE};
use crate::console::live::LiveParts;
use crate::console::operators::incident_lines::IncidentLine;
use crate::console::operators::past_overviews::{FoundOverview, PastOverviews};
use crate::console::page::{Answer, show};
use crate::console::session::operators::Viewer;
use crate::domain::breaker::BreakerFigures;
use crate::domain::events::endpoint_health::EndpointHealth;
use crate::domain::incident::Incident;
use crate::domain::invoice::invoice_view::plain_time;
use crate::domain::kernel::upstream::UpstreamCause;
use crate::domain::pipeline::RunState;
use crate::domain::replica::{ReplicaFigures, ReplicaList};
use crate::http::forms::query::Query;
use crate::http::incidents;
use crate::http::metrics::database_counts::{DatabaseCounts, gauge_value};
use crate::http::metrics::history::RequestStatistics;
use crate::http::paths::{Path, path};
use crate::http::replicas;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console").page(show_overview),
        path("/console/live/overview").page(live_overview),
    ]
}

/// If the counts are older than this, the overview says how old they are.
const STALE_AFTER: SignedDuration = SignedDuration::from_secs(15);

#[derive(Template)]
#[template(path = "operators/overview.html")]
struct OverviewPage {
    frame: Frame,
    /// The address from which the page updates this part; `None` for a past overview.
    live_address: Option<&'static str>,
    live_html: String,
    /// The past overview that is shown; `None` if the current one is shown.
    past: Option<FoundOverview>,
    /// The times within the last hour from which a past overview can be shown.
    minutes: Vec<Timestamp>,
}

#[derive(Template)]
#[template(path = "operators/overview_live.html")]
struct OverviewPart {
    /// The sentence that says how old the counts are; `None` if they are fresh.
    stale_sentence: Option<String>,
    incidents: Vec<IncidentLine>,
    cards: Vec<Card>,
    /// The sentence that says whose requests the charts show; `None` if there is only one replica.
    charts_sentence: Option<String>,
    charts: Vec<Chart>,
    /// The breakers whose calls wait or fail.
    breakers: Vec<BreakerLine>,
    /// The number of operations whose calls neither wait nor fail.
    calm_operation_count: usize,
}

struct Card {
    title: &'static str,
    figure: String,
    note: String,
    path: &'static str,
}

struct BreakerLine {
    figures: BreakerFigures,
    badge: Badge,
    /// A sentence about the fault of ours that the calls meet; empty if they meet none.
    fault: &'static str,
}

/// GET `/console?at=`: shows the overview of this moment, or of a time within the last hour.
async fn show_overview(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    past: web::Data<PastOverviews>,
    query: Query,
) -> Answer {
    let requested_time = query.moment("at").map_err(ApiError::from)?;
    let found = requested_time.and_then(|at| past.find(at));
    let live_html = match &found {
        Some(found) => found.overview.html.to_string(),
        None => render(&state).await?,
    };
    show(&OverviewPage {
        frame: Frame::for_operator(&session, OVERVIEW_TITLE),
        live_address: found.is_none().then_some("/console/live/overview"),
        live_html,
        past: found,
        minutes: past.first_time_in_each_minute(),
    })
}

/// GET /console/live/overview: streams the overview.
async fn live_overview(
    state: web::Data<ApiState>,
    request: HttpRequest,
    _: Viewer,
    parts: web::Data<LiveParts>,
) -> HttpResponse {
    let stream = parts.stream_to_operator("overview".to_owned(), &request, &state, |state| {
        Box::pin(async move { render(&state).await })
    });
    std::future::ready(stream).await
}

pub(super) async fn render(state: &ApiState) -> Result<String, ApiError> {
    let now = state.now();
    let report = incidents::current_report(state).await;
    let counts = state.database_counts.last_counts();
    let seconds = state.traffic.history().requests_by_second();
    let mut cards = counts
        .as_ref()
        .map(|counts| {
            let held = state.pipeline.backlog.holds().count(&counts.due_runs);
            let has_fault_of_ours = report.incidents.iter().any(Incident::is_fault_of_ours);
            work_cards(counts, held, waiting_note(held, has_fault_of_ours))
        })
        .unwrap_or_default();
    cards.extend(replica_cards(&state.replicas.last_list()));
    let (calm, breakers): (Vec<_>, Vec<_>) = replicas::shared_breakers(state)
        .into_iter()
        .map(|shared| shared.figures)
        .partition(BreakerFigures::needs_no_attention);
    let part = OverviewPart {
        stale_sentence: stale_sentence(counts.map(|counts| counts.counted_at), now),
        incidents: incidents::incidents_for_operators(state, &report)
            .iter()
            .map(|incident| IncidentLine::new(incident, now))
            .collect(),
        cards,
        charts_sentence: charts_sentence(state),
        charts: charts(&seconds),
        breakers: breakers.into_iter().map(BreakerLine::from).collect(),
        calm_operation_count: calm.len(),
    };
    part.render().map_err(ApiError::internal)
}

/// Returns the sentence that says how old the counts are; `None` if they are fresh.
fn stale_sentence(counted_at: Option<Timestamp>, now: Timestamp) -> Option<String> {
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

fn card(title: &'static str, figure: impl Display, note: &str, path: &'static str) -> Card {
    Card {
        title,
        figure: figure.to_string(),
        note: note.to_owned(),
        path,
    }
}

/// Says whether the waiting runs go on by themselves. `has_fault_of_ours` is true if no invoice reaches the authority
/// because of a fault that somebody has to mend.
fn waiting_note(held: HeldRuns, has_fault_of_ours: bool) -> &'static str {
    if has_fault_of_ours {
        "They go on when somebody has mended the fault of ours above."
    } else if held.held_by_operators() == 0 {
        "They go on by themselves."
    } else {
        "They go on by themselves, but for those held back by operators."
    }
}

fn work_cards(counts: &DatabaseCounts, held: HeldRuns, waiting_note: &str) -> Vec<Card> {
    let runs = |state| counts.count_runs_and_oldest(state).0;
    let endpoints = counts.endpoints.iter();
    let troubled = endpoints.filter(|(health, _)| *health != EndpointHealth::Working);
    let overdue = gauge_value(counts.work.overdue.count);
    let due_soon = gauge_value(counts.work.due_soon);
    vec![
        card(
            "Runs waiting",
            runs(RunState::Waiting),
            waiting_note,
            "/console/runs?state=waiting",
        ),
        card(
            "Runs held back",
            held.held_by_operators(),
            "Due, but operators paused their taxpayers or stopped their calls.",
            "/console/lanes",
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
            "A step is made, due or held back.",
            "/console/runs?state=running",
        ),
        card(
            "Deadlines missed",
            overdue,
            "Unfinished submissions that the law wanted earlier.",
            "/console/runs?deadline=overdue",
        ),
        card(
            "Deadlines within an hour",
            due_soon,
            "Submissions that have not ended.",
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
            troubled.map(|(_, count)| count).sum::<i64>(),
            "Failing, parked or disabled.",
            "/console/deliveries",
        ),
    ]
}

/// Returns cards with the sums over all replicas.
fn replica_cards(list: &ReplicaList) -> Vec<Card> {
    let figures = || list.present_replicas().map(|replica| &replica.figures);
    let sum = |number: fn(&ReplicaFigures) -> u64| figures().map(number).sum::<u64>();
    let slowest = figures().map(|figures| figures.p99_us).max().unwrap_or(0);
    vec![
        card(
            "Replicas",
            figures().count(),
            &format!("{} missing.", list.missing_replicas().count()),
            "/console/replicas",
        ),
        card(
            "Requests a second",
            per_second(sum(|figures| figures.requests)),
            &format!(
                "Of the last 10 s, on all replicas. On the slowest, 99 of 100 took {}.",
                upper_bound_words(slowest)
            ),
            "/console/replicas",
        ),
        card(
            "Runs ended a second",
            per_second(sum(|figures| figures.runs_ended)),
            "Of the last 10 s, on all replicas.",
            "/console/runs",
        ),
        card(
            "Deliveries a second",
            per_second(sum(|figures| figures.delivery_attempts)),
            "Attempts of the last 10 s, on all replicas.",
            "/console/deliveries",
        ),
        card(
            "Actors",
            sum(|figures| figures.actors.actors),
            &match sum(|figures| figures.actors.restarts) {
                1 => "1 restart since the start.".to_owned(),
                restarts => format!("{restarts} restarts since the start."),
            },
            "/console/supervision",
        ),
    ]
}

fn upper_bound_words(us: u64) -> String {
    if us < 1_000 {
        "less than 1 ms".to_owned()
    } else {
        format!("up to {}", filters::duration_words(us))
    }
}

/// Returns a rate per second, with one decimal digit, from a count within ten seconds.
pub(super) fn per_second(in_10_s: u64) -> String {
    format!("{}.{}", in_10_s / 10, in_10_s % 10)
}

/// Returns the sentence that says whose requests the charts show; `None` if there is only one replica.
fn charts_sentence(state: &ApiState) -> Option<String> {
    let is_alone = state.replicas.last_list().present_replicas().count() < 2;
    let name = &state.replicas.identity().name;
    (!is_alone).then(|| format!("The charts show the requests of {name}, which made this page."))
}

fn charts(seconds: &[RequestStatistics]) -> Vec<Chart> {
    vec![
        Chart::new(
            "Requests a second",
            "/s",
            seconds.iter().map(|second| second.requests).collect(),
        ),
        Chart::new(
            "99 of 100 answers within",
            MICROSECONDS,
            seconds.iter().map(|second| second.p99_us).collect(),
        ),
        Chart::new(
            "Answers with status 500 or more",
            "/s",
            seconds.iter().map(|second| second.failures).collect(),
        ),
    ]
}

impl From<BreakerFigures> for BreakerLine {
    fn from(figures: BreakerFigures) -> Self {
        Self {
            badge: figures.state.into(),
            fault: figures
                .own_fault()
                .and_then(UpstreamCause::own_fault_sentence)
                .unwrap_or_default(),
            figures,
        }
    }
}
