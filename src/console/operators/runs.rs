//! The runs of all taxpayers, with filters in the address.

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use jiff::Timestamp;

use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list_with_status};
use crate::console::operators::bulk::{self, BulkBar};
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::run_moves::RunBulkList;
use crate::console::operators::taxpayers::name_or_number;
use crate::console::page::Answer;
use crate::console::session::operators::Viewer;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::waiting::RunHold;
use crate::domain::pipeline::{Operation, Run, RunPhase, RunState, Step, WaitReason};
use crate::http::forms::query::Query;
use crate::http::forms::run_filter;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::search::irn_page_path;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::runs::run_list;
use crate::store::runs::run_list::{DeadlineState, RunFilter, RunOrder};

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console/runs").page(list_runs),
        path("/console/runs/move/preview").page(bulk::preview::<RunBulkList>),
        path("/console/runs/move").form(bulk::apply_previewed_act::<RunBulkList>),
    ]
}

#[derive(Template)]
#[template(path = "operators/runs.html")]
struct RunsPage {
    frame: Frame,
    list: ListQuery,
    /// The reasons why the filters cannot be read; empty if they can be read.
    faults: Vec<String>,
    rows: Vec<RunRow>,
    pages: PagePosition,
    bulk: BulkBar,
}

/// A run in a list.
pub(super) struct RunRow {
    pub(super) run: Run,
    pub(super) taxpayer: String,
    pub(super) badge: Badge,
    pub(super) why: &'static str,
    pub(super) is_overdue: bool,
    pub(super) irn_address: String,
}

/// GET /console/runs: lists the runs that match, newest first.
async fn list_runs(state: web::Data<ApiState>, Viewer(session): Viewer, query: Query) -> Answer {
    let list = ListQuery::new(&query);
    let (status, faults, found, total) = match run_filter::read_query(&list.0) {
        Ok((filter, order)) => {
            let (found, total) =
                run_list::page(&state.store, &filter, order, state.now(), list.page()).await?;
            (StatusCode::OK, Faults::default(), found, total)
        }
        Err(faults) => (StatusCode::UNPROCESSABLE_ENTITY, faults, Vec::new(), 0),
    };
    let page = RunsPage {
        frame: Frame::for_operator(&session, "Runs"),
        pages: list.pages("/console/runs", total),
        faults: faults.iter().map(ToString::to_string).collect(),
        rows: to_rows(&state, found).await?,
        bulk: BulkBar::new::<RunBulkList>(&list),
        list,
    };
    show_list_with_status(status, &page.pages, &page)
}

/// Returns the newest runs that match a filter.
pub(super) async fn load_newest(
    state: &ApiState,
    filter: &RunFilter,
    list: &ListQuery,
) -> Result<Vec<RunRow>, ApiError> {
    let (found, _) = run_list::page(
        &state.store,
        filter,
        RunOrder::Newest,
        state.now(),
        list.page(),
    )
    .await?;
    to_rows(state, found).await
}

/// Returns the runs as rows, with the names of their taxpayers.
pub(super) async fn to_rows(state: &ApiState, found: Vec<Run>) -> Result<Vec<RunRow>, ApiError> {
    let owners: Vec<TaxpayerId> = found.iter().map(|run| run.taxpayer_id).collect();
    let owners = taxpayers::find_by_ids(state.store.reader(), &owners).await?;
    let now = state.now();
    let holds = state.pipeline.backlog.holds();
    let rows = found.into_iter().map(|run| RunRow {
        taxpayer: name_or_number(&owners, run.taxpayer_id),
        badge: run.state().into(),
        why: explain_state(&run, holds.find_hold(run.taxpayer_id, run.next_step()), now),
        is_overdue: run.is_overdue(now),
        irn_address: irn_page_path(run.taxpayer_id, &run.irn),
        run,
    });
    Ok(rows.collect())
}

/// Says in a few words what a run waits for. The page of the run explains it in full.
fn explain_state(run: &Run, hold: Option<RunHold>, now: Timestamp) -> &'static str {
    let is_due = run.next_attempt_at().is_some_and(|at| at <= now);
    let is_waiting = run.state() == RunState::Waiting;
    match hold {
        Some(hold) if is_due || is_waiting && hold.is_operator_hold() => return hold_words(hold),
        None if is_due => return "Its turn",
        _ => {}
    }
    match run.phase {
        RunPhase::Paused if run.is_quarantined() => "An operator, in quarantine",
        RunPhase::Paused => "An operator",
        RunPhase::Running { .. } => "An answer",
        RunPhase::Waiting { reason, .. } => match reason {
            WaitReason::AuthorityUnavailable => "The authority",
            WaitReason::AuthorityThrottles => "The authority, which asked to wait",
            WaitReason::HealthCheckDown => "The exchange, which is down",
            WaitReason::AccessPointOffline => "An access point that is offline",
        },
        RunPhase::Succeeded | RunPhase::Refused | RunPhase::Cancelled => "",
    }
}

/// Says in a few words what holds back a run.
fn hold_words(hold: RunHold) -> &'static str {
    match hold {
        RunHold::TaxpayerPaused => "An operator, who paused its taxpayer",
        RunHold::CallsStopped => "An operator, who stopped its calls",
        RunHold::Outage => "The authority",
        RunHold::OurFault => "Somebody to mend our key or the trust in its certificate",
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::console::operators::list_query::PER_PAGE;
    use crate::console::operators::navigation::navigation;
    use crate::domain::pipeline::{RunRequest, StepResult};

    #[test]
    fn a_full_page_of_runs_with_long_names_is_below_60_kb() {
        let irn = format!("{}-94AD90FB-20261121", "N".repeat(57));
        let request = RunRequest::sample(&irn, Operation::Submit);
        let start = Timestamp::UNIX_EPOCH;
        let run = Run::new(Uuid::nil(), TaxpayerId(1_234_567), request, start);
        let result = StepResult::Wait {
            reason: WaitReason::AuthorityUnavailable,
            error: "the authority does not know it ".repeat(30),
            until: start,
        };
        let run =
            run.begin_attempt(Step::IrnCheck, start)
                .after_step(Step::IrnCheck, &result, start);
        let rows = (0..PER_PAGE).map(|_| RunRow {
            taxpayer: "A taxpayer with a long name ".repeat(3),
            badge: run.state().into(),
            why: hold_words(RunHold::CallsStopped),
            is_overdue: true,
            irn_address: irn_page_path(run.taxpayer_id, &run.irn),
            run: run.clone(),
        });
        let list = ListQuery::new(&Query::from_text(""));
        let page = RunsPage {
            frame: Frame {
                navigation: navigation(),
                can_act: true,
                ..Frame::for_visitor("Runs")
            },
            faults: Vec::new(),
            rows: rows.collect(),
            pages: list.pages("/console/runs", 1_000),
            bulk: BulkBar::new::<RunBulkList>(&list),
            list,
        };
        let html = page.render().unwrap();
        assert!(html.contains(&irn) && html.len() < 60_000, "{}", html.len());
    }

    #[test]
    fn a_run_waits_for_its_turn_only_if_nothing_holds_it_back() {
        let start = Timestamp::UNIX_EPOCH;
        let later = Timestamp::from_second(60).unwrap();
        let request = RunRequest::sample("INV001-94AD90FB-20261121", Operation::Submit);
        let due = Run::new(Uuid::nil(), TaxpayerId(7), request, start);
        let result = StepResult::Wait {
            reason: WaitReason::AuthorityUnavailable,
            error: "down".into(),
            until: later,
        };
        let waiting = due.clone().begin_attempt(Step::IrnCheck, start).after_step(
            Step::IrnCheck,
            &result,
            start,
        );
        let paused = due.clone().pause(start);
        for (run, hold, now, words) in [
            (&due, None, start, "Its turn"),
            (&due, Some(RunHold::Outage), start, "The authority"),
            (
                &due,
                Some(RunHold::CallsStopped),
                start,
                "An operator, who stopped its calls",
            ),
            (
                &due,
                Some(RunHold::TaxpayerPaused),
                start,
                "An operator, who paused its taxpayer",
            ),
            (&waiting, None, start, "The authority"),
            (&waiting, None, later, "Its turn"),
            (
                &waiting,
                Some(RunHold::CallsStopped),
                start,
                "An operator, who stopped its calls",
            ),
            (&waiting, Some(RunHold::Outage), later, "The authority"),
            (&paused, Some(RunHold::TaxpayerPaused), later, "An operator"),
        ] {
            assert_eq!(explain_state(run, hold, now), words, "{hold:?}");
        }
    }
}
