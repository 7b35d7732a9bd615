//! The first page of an account: what is to be done next, what needs attention, and how its invoices and its webhook
//! fare.

use actix_web::web;
use askama::Template;
use url::form_urlencoded::Serializer;

use crate::console::accounts::base;
use crate::console::accounts::keys::load_keys;
use crate::console::accounts::profile::{Completeness, taxpayer};
use crate::console::accounts::timeline::operation_name;
use crate::console::accounts::webhooks::Health;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::page::{Answer, show};
use crate::console::session::accounts::Reader;
use crate::domain::kernel::codes::{Subscription, WorkflowStatus};
use crate::domain::party::Taxpayer;
use crate::domain::pipeline::Run;
use crate::http::endpoint::{Path, path};
use crate::http::state::ApiState;
use crate::store::invoices::list;
use crate::store::runs;
use crate::store::webhooks;
use crate::store::webhooks::delivery_log::{self, OpenDeliveries};

pub(crate) fn endpoints() -> Vec<Path> {
    vec![path("/dashboard/{taxpayer}").page(show_overview)]
}

/// The invoices of each status are counted up to this number, so that the page of a large account is as fast as any
/// other.
const COUNTED_MAX: u64 = 10_000;
/// The number of runs that the page shows.
const RUNS_MAX: u64 = 10;

#[derive(Template)]
#[template(path = "accounts/overview.html")]
struct OverviewPage {
    frame: Frame,
    base: String,
    taxpayer: Taxpayer,
    /// The reasons why no invoice can be created; empty if invoices can be created.
    obstacles: Vec<&'static str>,
    /// True until all steps are done.
    is_new: bool,
    steps: Vec<NextStep>,
    has_invoices: bool,
    counts: Vec<StatusCount>,
    runs: Vec<RunLine>,
    health: Health,
    open: OpenDeliveries,
}

/// A step that a new account has to take.
struct NextStep {
    is_done: bool,
    label: &'static str,
    path: &'static str,
}

struct StatusCount {
    status: &'static str,
    badge: Badge,
    count: u64,
    /// True if there are more invoices than were counted.
    is_more: bool,
}

struct RunLine {
    run: Run,
    name: &'static str,
    badge: Badge,
    /// The query with which the list of invoices searches for the IRN.
    search: String,
}

async fn show_overview(state: web::Data<ApiState>, Reader(session): Reader) -> Answer {
    let store = &state.store;
    let id = session.taxpayer;
    let taxpayer = taxpayer(&state, &session).await?;
    let counts = list::count_by_status(store, id, COUNTED_MAX + 1).await?;
    let runs = runs::stopped_owned_by(store, id, RUNS_MAX).await?;
    let (endpoint, failing) = webhooks::with_failure_streak(store.reader(), id)
        .await?
        .unzip();
    let open = delivery_log::open_owned_by(store, id).await?;
    let keys = load_keys(&state, id).await?;
    let is_complete = Completeness::from_taxpayer(&taxpayer).is_complete();
    let has_invoices = counts.iter().any(|(_, count)| *count > 0);
    let steps = vec![
        NextStep {
            is_done: is_complete,
            label: "Complete the business profile",
            path: "/profile",
        },
        NextStep {
            is_done: !keys.is_empty(),
            label: "Make an API key for your system",
            path: "/keys",
        },
        NextStep {
            is_done: has_invoices,
            label: "Create the first invoice with it",
            path: "/invoices",
        },
        NextStep {
            is_done: counts
                .iter()
                .any(|(status, count)| status.stage().is_some() && *count > 0),
            label: "Submit it to the authority",
            path: "/invoices",
        },
        NextStep {
            is_done: endpoint.is_some(),
            label: "Set up a webhook to be told of changes",
            path: "/webhooks",
        },
    ];
    show(&OverviewPage {
        frame: Frame::for_account(&session, "Overview"),
        base: base(&session),
        obstacles: obstacles(&state, &taxpayer),
        is_new: steps.iter().any(|step| !step.is_done),
        steps,
        has_invoices,
        counts: counts
            .into_iter()
            .map(|(status, count)| StatusCount::new(status, count))
            .collect(),
        runs: runs.into_iter().map(RunLine::from).collect(),
        health: Health::from_endpoint(endpoint.as_ref(), failing.flatten().as_ref()),
        open,
        taxpayer,
    })
}

fn obstacles(state: &ApiState, taxpayer: &Taxpayer) -> Vec<&'static str> {
    let is_verified = taxpayer.verification.satisfies(state.settings.verification);
    [
        (
            taxpayer.subscription != Subscription::Active,
            "The subscription is not active. Ask your integrator.",
        ),
        (
            !taxpayer.missing_profile_fields().is_empty(),
            "The business profile is not complete.",
        ),
        (
            !is_verified,
            "The authority has not confirmed this business yet.",
        ),
    ]
    .into_iter()
    .filter_map(|(is_one, text)| is_one.then_some(text))
    .collect()
}

impl StatusCount {
    fn new(status: WorkflowStatus, count: u64) -> Self {
        let is_more = count > COUNTED_MAX;
        Self {
            status: status.as_str(),
            badge: status.into(),
            count: count.min(COUNTED_MAX),
            is_more,
        }
    }
}

impl From<Run> for RunLine {
    fn from(run: Run) -> Self {
        let search = Serializer::new(String::new())
            .append_pair("q", run.irn.as_str())
            .finish();
        Self {
            name: operation_name(run.operation()),
            badge: run.state().into(),
            search,
            run,
        }
    }
}
