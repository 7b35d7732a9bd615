//! The first page of an account. Most of the page updates itself (`overview_part`). It also guides a new account to
//! its first invoice.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use crate::console::accounts::keys::load_keys;
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::overview_part::{self, COUNTED_MAX};
use crate::console::accounts::profile::{ProfileCompleteness, load_taxpayer};
use crate::console::frame::Frame;
use crate::console::live;
use crate::console::page::{Answer, show};
use crate::console::session::accounts::Reader;
use crate::domain::access::session::ContactRole;
use crate::domain::kernel::codes::{Subscription, WorkflowStatus};
use crate::domain::party::Taxpayer;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::list;
use crate::store::webhooks;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}").page(show_overview),
        path("/dashboard/{taxpayer}/live/overview").page(live_overview),
    ]
}

#[derive(Template)]
#[template(path = "accounts/overview.html")]
struct OverviewPage {
    frame: Frame,
    base: String,
    taxpayer: Taxpayer,
    /// The reasons why the account cannot create invoices; empty if it can.
    obstacles: Vec<Obstacle>,
    /// True until all steps are done.
    is_new: bool,
    steps: Vec<NextStep>,
    live_html: String,
}

/// A reason why the account cannot create invoices.
pub(super) struct Obstacle {
    pub(super) text: &'static str,
    /// True if the page of the profile shows what is missing.
    pub(super) is_in_profile: bool,
}

/// A step that a new account has to take.
struct NextStep {
    is_done: bool,
    label: &'static str,
    /// The path of the page for it, below that of the account; `None` if the person may not open that page.
    path: Option<&'static str>,
}

async fn show_overview(state: web::Data<ApiState>, Reader(session): Reader) -> Answer {
    let store = &state.store;
    let id = session.taxpayer;
    let taxpayer = load_taxpayer(&state, &session).await?;
    let counts = list::count_by_status(store, id, COUNTED_MAX).await?;
    let endpoints = webhooks::owned_by_with_streaks(store.reader(), id).await?;
    let has_webhook = !endpoints.is_empty();
    let mut steps = next_steps(&state, &taxpayer, &counts, has_webhook).await?;
    if session.role < ContactRole::Owner {
        for step in &mut steps {
            step.path = step.path.filter(|path| !OWNER_PATHS.contains(path));
        }
    }
    show(&OverviewPage {
        frame: Frame::for_account(&session, "Overview"),
        base: base_path(&session),
        obstacles: submission_obstacles(&state, &taxpayer),
        is_new: steps.iter().any(|step| !step.is_done),
        steps,
        live_html: overview_part::render(&state, id, session.role).await?,
        taxpayer,
    })
}

/// GET …/live/overview: streams the part that updates itself.
async fn live_overview(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    request: HttpRequest,
) -> HttpResponse {
    let id = session.taxpayer;
    let role = session.role;
    let render =
        move |state: web::Data<ApiState>| -> futures_util::future::LocalBoxFuture<'static, _> {
            Box::pin(async move { overview_part::render(&state, id, role).await })
        };
    std::future::ready(live::stream_to_account(&request, &state, id, render)).await
}

/// The pages of steps that only an owner may open.
const OWNER_PATHS: [&str; 2] = ["/keys", "/webhooks"];

async fn next_steps(
    state: &ApiState,
    taxpayer: &Taxpayer,
    counts: &[(WorkflowStatus, u64)],
    has_webhook: bool,
) -> Result<Vec<NextStep>, ApiError> {
    let has_keys = !load_keys(state, taxpayer.id).await?.is_empty();
    let mut used_statuses = counts.iter().filter(|(_, count)| *count > 0);
    let has_invoices = used_statuses.clone().next().is_some();
    let has_submitted = used_statuses.any(|(status, _)| status.stage().is_some());
    let is_complete = ProfileCompleteness::from_taxpayer(taxpayer).is_complete();
    let step = |is_done, label, path| NextStep {
        is_done,
        label,
        path: Some(path),
    };
    Ok(vec![
        step(is_complete, "Complete the business profile", "/profile"),
        step(has_keys, "Create an API key for your system", "/keys"),
        step(
            has_invoices,
            "Create the first invoice with it",
            "/invoices",
        ),
        step(has_submitted, "Submit it to the authority", "/invoices"),
        step(
            has_webhook,
            "Set up a webhook to be told of changes",
            "/webhooks",
        ),
    ])
}

/// Returns the reasons why the account cannot create invoices.
pub(super) fn submission_obstacles(state: &ApiState, taxpayer: &Taxpayer) -> Vec<Obstacle> {
    let is_verified = taxpayer.verification.satisfies(state.settings.verification);
    [
        (
            taxpayer.subscription != Subscription::Active,
            "The subscription is not active. Ask your integrator.",
            false,
        ),
        (
            !taxpayer.missing_profile_fields().is_empty(),
            "The business profile is not complete.",
            true,
        ),
        (
            !is_verified,
            "The authority has not confirmed this business yet.",
            true,
        ),
    ]
    .into_iter()
    .filter_map(|(is_obstacle, text, is_in_profile)| {
        is_obstacle.then_some(Obstacle {
            text,
            is_in_profile,
        })
    })
    .collect()
}
