//! The circuit breakers of the calls to the authority, with the forms that trip and reset one, and the outages.

use actix_web::web;
use askama::Template;
use authority_client::{BreakerState, BreakerView, HeldCallers, LimitView, Operation};
use database::StoreError;
use database::page::Page;
use jiff::Timestamp;

use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::reason::ReasonForm;
use crate::console::page::{Answer, Form, Pages, go_to, show};
use crate::console::session::operators::{Operator, Viewer};
use crate::domain::invoice::invoice_view::plain_time;
use crate::domain::kernel::audit::{AuditAction, AuditEntry};
use crate::domain::outage::{Outage, OutageEdge};
use crate::http::endpoint::{Path, path};
use crate::http::forms::query::Query;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::Store;
use crate::store::operations::outages::{NotifiedCounts, OutageEvent};
use crate::store::operations::{audit, outages};

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/console/breakers").page(show_breakers),
        path("/console/breakers/{operation}/trip").form(trip),
        path("/console/breakers/{operation}/reset").form(reset),
    ]
}

#[derive(Template)]
#[template(path = "operators/breakers.html")]
struct BreakersPage {
    frame: Frame,
    is_database_silent: bool,
    breakers: Vec<BreakerLine>,
    outages: Vec<OutageLine>,
    pages: Pages,
}

struct BreakerLine {
    view: BreakerView,
    limit: LimitView,
    badge: Badge,
    why: String,
    is_open: bool,
}

struct OutageLine {
    outage: Outage,
    operations: String,
    duration: String,
    start_notified_count: u64,
    end_notified_count: u64,
}

/// GET /console/breakers: shows the breakers of this process, and the outages that all processes saw.
async fn show_breakers(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let list = ListQuery::new(&query);
    let now = state.now();
    let stored = load_outages(&state.store, list.page()).await;
    let is_database_silent = stored.is_err();
    let (found, total, notified) = stored.unwrap_or_default();
    let views = state.authority.breakers();
    let limits = state.authority.limits();
    let page = BreakersPage {
        frame: Frame::for_operator(&session, "Breakers"),
        is_database_silent,
        breakers: views
            .into_iter()
            .zip(limits)
            .map(|(view, limit)| BreakerLine::new(view, limit))
            .collect(),
        outages: found
            .into_iter()
            .map(|outage| OutageLine::new(outage, &notified, now))
            .collect(),
        pages: list.pages("/console/breakers", total),
    };
    show(&page)
}

/// Loads a page of outages, the number of all outages, and how many taxpayers were told of these.
async fn load_outages(
    store: &Store,
    page: Page,
) -> Result<(Vec<Outage>, u64, NotifiedCounts), StoreError> {
    let (found, total) = outages::page(store, page).await?;
    let notified = outages::count_notified(store, &found).await?;
    Ok((found, total, notified))
}

/// POST /console/breakers/{operation}/trip: stops the calls of an operation until an operator resets its breaker.
async fn trip(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    name: web::Path<String>,
    form: Form<ReasonForm>,
) -> Answer {
    let operation = parse_operation(&name)?;
    let order = form.0.request(&state, &session)?;
    let entry = AuditEntry::for_operator_request(
        &order,
        AuditAction::TripBreaker,
        &operation.name(),
        state.now(),
    );
    audit::record(&state.store, &[entry]).await?;
    state.authority.trip_breaker(operation);
    Ok(go_to(
        "/console/breakers",
        "The breaker is open. No call is made until it is reset.",
    ))
}

/// POST /console/breakers/{operation}/reset: lets the calls of an operation pass again.
async fn reset(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    name: web::Path<String>,
    form: Form<ReasonForm>,
) -> Answer {
    let operation = parse_operation(&name)?;
    let order = form.0.request(&state, &session)?;
    let entry = AuditEntry::for_operator_request(
        &order,
        AuditAction::ResetBreaker,
        &operation.name(),
        state.now(),
    );
    audit::record(&state.store, &[entry]).await?;
    state.authority.reset_breaker(operation);
    Ok(go_to(
        "/console/breakers",
        "The breaker is closed. Calls pass again.",
    ))
}

fn parse_operation(name: &str) -> Result<Operation, ApiError> {
    let found = Operation::ALL
        .into_iter()
        .find(|operation| operation.name() == name);
    found.ok_or_else(ApiError::route_not_found)
}

impl BreakerLine {
    fn new(view: BreakerView, limit: LimitView) -> Self {
        Self {
            badge: view.state.into(),
            why: explain_state(&view, &limit),
            is_open: view.state != BreakerState::Closed,
            view,
            limit,
        }
    }
}

/// Says in one sentence what the calls of an operation wait for.
fn explain_state(view: &BreakerView, limit: &LimitView) -> String {
    let since = view.since.map_or_else(String::new, |since| {
        format!(" since {} UTC", plain_time(since))
    });
    let probe = match view.next_probe_at {
        Some(next) => format!("The next probe is due at {} UTC", plain_time(next)),
        None => "A probe is under way".to_owned(),
    };
    match (view.state, &view.held) {
        (BreakerState::Closed, _) => explain_closed(limit),
        _ if view.is_tripped => {
            format!(
                "An operator stopped the calls{since}. They pass again when the breaker is reset."
            )
        }
        (_, HeldCallers::Accounts(accounts)) if !view.is_outage => format!(
            "Calls of {} accounts are held back{since}, because all of theirs failed. {probe}; the first answer closes it.",
            accounts.len()
        ),
        _ => format!(
            "Calls are held back{since}, because too many failed. {probe}; the first answer closes it."
        ),
    }
}

fn explain_closed(limit: &LimitView) -> String {
    match limit.held_until {
        Some(until) => format!(
            "The authority asked for a pause until {} UTC.",
            plain_time(until)
        ),
        None if limit.waiting > 0 => {
            format!(
                "{} calls wait until one of {} is answered.",
                limit.waiting, limit.limit
            )
        }
        None => "Calls pass.".to_owned(),
    }
}

impl OutageLine {
    fn new(outage: Outage, notified: &NotifiedCounts, now: Timestamp) -> Self {
        let told = |edge| {
            notified
                .get(&OutageEvent {
                    outage: outage.id,
                    edge,
                })
                .copied()
                .unwrap_or(0)
        };
        let seconds = outage.duration_s(now);
        Self {
            operations: outage.operations().join(", "),
            duration: format!("{} min {} s", seconds / 60, seconds % 60),
            start_notified_count: told(OutageEdge::Started),
            end_notified_count: told(OutageEdge::Ended),
            outage,
        }
    }
}
