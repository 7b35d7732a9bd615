//! The circuit breakers of the calls to the authority, with the forms that trip and reset one, and the outages.

use actix_web::web;
use askama::Template;
use database::StoreError;
use database::page::Page;
use jiff::Timestamp;

use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::reason::ReasonForm;
use crate::console::page::{Answer, Form, go_to};
use crate::console::session::operators::{Operator, Viewer};
use crate::domain::breaker::{BreakerCondition, BreakerFigures, BreakerOrderKind, MergedBreaker};
use crate::domain::invoice::invoice_view::plain_time;
use crate::domain::kernel::upstream::UpstreamCause;
use crate::domain::outage::{Outage, OutageEdge};
use crate::http::api::ops::breakers::find_operation;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::replicas;
use crate::http::state::ApiState;
use crate::store::Store;
use crate::store::operations::outages;
use crate::store::operations::outages::{NotifiedCounts, OutageEvent};

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console/breakers").page(show_breakers),
        path("/console/breakers/{operation}/trip").form(trip_breaker),
        path("/console/breakers/{operation}/reset").form(reset_breaker),
    ]
}

#[derive(Template)]
#[template(path = "operators/breakers.html")]
struct BreakersPage {
    frame: Frame,
    is_database_silent: bool,
    replica_count: usize,
    breakers: Vec<BreakerLine>,
    /// The breakers that are closed and whose calls neither fail nor wait.
    calm: Vec<BreakerLine>,
    outages: Vec<OutageLine>,
    pages: PagePosition,
}

struct BreakerLine {
    figures: BreakerFigures,
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

/// GET /console/breakers: shows the breakers of all replicas, and the outages that they saw.
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
    let (calm, breakers) = replicas::shared_breakers(&state)
        .into_iter()
        .map(|shared| BreakerLine::new(shared, now))
        .partition(|line: &BreakerLine| line.figures.needs_no_attention());
    let page = BreakersPage {
        frame: Frame::for_operator(&session, "Breakers"),
        is_database_silent,
        replica_count: state.replicas.last_list().present_replicas().count(),
        breakers,
        calm,
        outages: found
            .into_iter()
            .map(|outage| OutageLine::new(outage, &notified, now))
            .collect(),
        pages: list.pages("/console/breakers", total),
    };
    show_list(&page.pages, &page)
}

/// Loads a page of outages, the number of all outages, and the number of taxpayers that were notified of each.
async fn load_outages(
    store: &Store,
    page: Page,
) -> Result<(Vec<Outage>, u64, NotifiedCounts), StoreError> {
    let (found, total) = outages::page(store, page).await?;
    let notified = outages::count_notified_taxpayers(store, &found).await?;
    Ok((found, total, notified))
}

/// POST /console/breakers/{operation}/trip: stops the calls of an operation until an operator resets its breaker.
async fn trip_breaker(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    name: web::Path<String>,
    form: Form<ReasonForm>,
) -> Answer {
    let operation = find_operation(&name)?;
    let request = form.0.to_operator_request(&state, &session)?;
    let kind = BreakerOrderKind::Trip;
    let notice = if replicas::give_breaker_order(&state, operation, kind, &request).await? {
        "The breaker is open. Within a second no replica makes such a call, until the breaker is reset."
    } else {
        "The breaker was already tripped."
    };
    Ok(go_to("/console/breakers", notice))
}

/// POST /console/breakers/{operation}/reset: lets the calls of an operation pass again.
async fn reset_breaker(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    name: web::Path<String>,
    form: Form<ReasonForm>,
) -> Answer {
    let operation = find_operation(&name)?;
    let request = form.0.to_operator_request(&state, &session)?;
    let kind = BreakerOrderKind::Reset;
    let notice = if replicas::give_breaker_order(&state, operation, kind, &request).await? {
        "The breaker is closed. Within a second calls pass again on all replicas."
    } else {
        "The breaker was already closed."
    };
    Ok(go_to("/console/breakers", notice))
}

impl BreakerLine {
    fn new(shared: MergedBreaker, now: Timestamp) -> Self {
        let figures = &shared.figures;
        Self {
            badge: figures.state.into(),
            why: explain_state_and_fault(&shared, now),
            is_open: figures.state != BreakerCondition::Closed,
            figures: shared.figures,
        }
    }
}

/// Says what the calls of an operation wait for, and which fault of ours they meet.
fn explain_state_and_fault(shared: &MergedBreaker, now: Timestamp) -> String {
    let state = explain_state(shared, now);
    let fault = shared.figures.own_fault();
    match fault.and_then(UpstreamCause::own_fault_sentence) {
        Some(fault) => format!("{state} {fault}"),
        None => state,
    }
}

/// Says in one sentence what the calls of an operation wait for.
fn explain_state(shared: &MergedBreaker, now: Timestamp) -> String {
    let figures = &shared.figures;
    let since = figures.since.map_or_else(String::new, |since| {
        format!(" since {} UTC", plain_time(since))
    });
    let probe = match figures.next_probe_at.filter(|next| *next > now) {
        Some(next) => format!("The next probe is due at {} UTC", plain_time(next)),
        None if figures.state == BreakerCondition::HalfOpen => "A probe is under way".to_owned(),
        None => "The next call is the probe".to_owned(),
    };
    let replicas = shared.held_on.join(", ");
    let hold = if shared.held_on.len() == 1 {
        format!("{replicas} holds back")
    } else {
        format!("{replicas} hold back")
    };
    match figures.state {
        BreakerCondition::Closed => explain_closed(figures),
        _ if figures.is_tripped => {
            format!(
                "An operator stopped the calls{since}. They pass again when the breaker is reset."
            )
        }
        _ if !figures.is_outage => format!(
            "{hold} the calls of {}{since}, because all of theirs failed. {probe}; the first answer closes it.",
            accounts_words(figures.held_accounts, shared.held_on.len())
        ),
        _ => format!(
            "{hold} calls{since}, because too many failed. {probe}; the first answer closes it."
        ),
    }
}

/// Returns how many accounts a breaker holds back. For several replicas, only the highest of their numbers is known.
fn accounts_words(accounts: u64, replicas: usize) -> String {
    let noun = if accounts == 1 { "account" } else { "accounts" };
    if replicas > 1 {
        format!("up to {accounts} {noun} each")
    } else {
        format!("{accounts} {noun}")
    }
}

fn explain_closed(figures: &BreakerFigures) -> String {
    match figures.held_until {
        Some(until) => format!(
            "The authority asked for a pause until {} UTC.",
            plain_time(until)
        ),
        None if figures.waiting > 0 => {
            let measured = if figures.limit < figures.lasting_limit {
                format!(
                    " So few are made while it is measured how fast the authority answers; then {} again.",
                    figures.lasting_limit
                )
            } else {
                String::new()
            };
            let calls = match figures.waiting {
                1 => "1 call waits".to_owned(),
                waiting => format!("{waiting} calls wait"),
            };
            format!(
                "{calls} until one of {} is answered.{measured}",
                figures.limit
            )
        }
        None if figures.own_fault().is_some() => "Calls are made and fail.".to_owned(),
        None => "Calls pass.".to_owned(),
    }
}

impl OutageLine {
    fn new(outage: Outage, notified: &NotifiedCounts, now: Timestamp) -> Self {
        let notified_count = |edge| {
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
            start_notified_count: notified_count(OutageEdge::Started),
            end_notified_count: notified_count(OutageEdge::Ended),
            outage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_announced_only_if_it_is_still_to_come() {
        let second = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        for (state, probe_second, probe) in [
            (
                BreakerCondition::Open,
                Some(11),
                "The next probe is due at ",
            ),
            (
                BreakerCondition::Open,
                Some(10),
                "The next call is the probe;",
            ),
            (BreakerCondition::Open, None, "The next call is the probe;"),
            (BreakerCondition::HalfOpen, None, "A probe is under way;"),
        ] {
            let figures = BreakerFigures {
                state,
                is_outage: true,
                next_probe_at: probe_second.map(second),
                ..BreakerFigures::default()
            };
            let held_on = vec!["rep1".to_owned()];
            let sentence = explain_state(&MergedBreaker { figures, held_on }, second(10));
            assert!(sentence.contains(probe), "{sentence}");
        }
    }

    #[test]
    fn the_replicas_that_hold_calls_back_are_named_with_the_number_of_accounts() {
        for (names, is_outage, accounts, begin) in [
            (
                &["a:1"][..],
                false,
                1,
                "a:1 holds back the calls of 1 account, because",
            ),
            (
                &["a:1"],
                false,
                3,
                "a:1 holds back the calls of 3 accounts, because",
            ),
            (
                &["a:1", "b:1"],
                false,
                3,
                "a:1, b:1 hold back the calls of up to 3 accounts each, because",
            ),
            (&["a:1"], true, 0, "a:1 holds back calls, because"),
            (
                &["a:1", "b:1"],
                true,
                0,
                "a:1, b:1 hold back calls, because",
            ),
        ] {
            let figures = BreakerFigures {
                state: BreakerCondition::Open,
                is_outage,
                held_accounts: accounts,
                ..BreakerFigures::default()
            };
            let held_on = names.iter().map(|name| (*name).to_owned()).collect();
            let shared = MergedBreaker { figures, held_on };
            let sentence = explain_state(&shared, Timestamp::UNIX_EPOCH);
            assert!(sentence.starts_with(begin), "{sentence}");
        }
    }

    #[test]
    fn a_fault_of_ours_is_named_and_calls_that_fail_do_not_pass() {
        for (cause, expected) in [
            (None, "Calls pass."),
            (Some("down"), "Calls pass."),
            (
                Some("key_refused"),
                "Calls are made and fail. The fault is ours: the authority does not accept our key.",
            ),
            (
                Some("untrusted"),
                "Calls are made and fail. The fault may be ours: the authority's certificate is not accepted here.",
            ),
        ] {
            let figures = BreakerFigures {
                cause: cause.map(str::to_owned),
                ..BreakerFigures::default()
            };
            let merged = MergedBreaker {
                figures,
                held_on: Vec::new(),
            };
            let sentence = explain_state_and_fault(&merged, Timestamp::UNIX_EPOCH);
            assert_eq!(sentence, expected, "{cause:?}");
        }
    }

    #[test]
    fn calls_wait_for_the_limit_or_for_a_measurement() {
        let sentence = |limit, lasting_limit, waiting| {
            explain_closed(&BreakerFigures {
                limit,
                lasting_limit,
                waiting,
                ..BreakerFigures::default()
            })
        };
        assert_eq!(sentence(4, 16, 0), "Calls pass.");
        let plain = "3 calls wait until one of 4 is answered.";
        assert_eq!(sentence(4, 4, 3), plain);
        assert_eq!(sentence(4, 0, 3), plain, "a replica of an old version");
        assert_eq!(
            sentence(4, 4, 1),
            "1 call waits until one of 4 is answered."
        );
        assert_eq!(
            sentence(4, 16, 3),
            format!(
                "{plain} So few are made while it is measured how fast the authority answers; then 16 again."
            )
        );
    }
}
