//! The operators' list of runs: its filters, its orders and its pages, and the selection of runs for an action on many
//! runs, such as a pause.

use std::time::Duration;

use database::column::{RowRef, contains_pattern, json};
use database::page::{self, Page};
use database::{StoreError, statement_portions};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait, Func};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, IdenStatic, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, Select,
};

use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{RunId, TaxpayerId};
use crate::domain::pipeline::{Operation, Run, RunState, Step, WaitReason};
use crate::store::Store;
use crate::store::runs::run_row::{Column, Entity};
use crate::store::runs::unfinished::{DUE_SOON_WITHIN, born_late_until};

words! {
    /// The state of an unfinished submission's deadline: missed (see `unfinished`), or within the next hour.
    DeadlineState { Overdue = "overdue", Soon = "soon" }
}

words! {
    /// The order of the list: by creation, or by deadline, the earliest first.
    RunOrder { Newest = "newest", Oldest = "oldest", Deadline = "deadline" }
}

/// The filter of the operators' list of runs. A field that is `None` does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only these runs.
    pub ids: Option<Vec<RunId>>,
    pub state: Option<RunState>,
    pub operation: Option<Operation>,
    pub taxpayer_id: Option<TaxpayerId>,
    pub irn: Option<Irn>,
    /// The current step of a run. A run that has done all its steps has none.
    pub step: Option<Step>,
    pub wait_reason: Option<WaitReason>,
    /// A part of the text of the last error, ignoring case.
    pub error: Option<String>,
    /// Only runs that were created at least this long ago.
    pub older_than: Option<Duration>,
    pub deadline: Option<DeadlineState>,
}

impl RunFilter {
    /// Returns the condition of the filter. `is_by_state` is true if the caller also selects runs by state. Few runs
    /// have one IRN, or one of the states that callers ask for, but most runs are submissions. If the filter names
    /// several of these columns, SQLite would use the index of the last one. So the indexes of the columns that match
    /// more runs are hidden from it.
    fn condition(&self, now: Timestamp, is_by_state: bool) -> Condition {
        let is_by_irn = self.irn.is_some();
        // Most runs that have succeeded, and most runs of one operation, belong to other taxpayers. So for one taxpayer
        // the indexes of these columns are hidden.
        let is_by_taxpayer = self.taxpayer_id.is_some();
        let is_done = self.state == Some(RunState::Succeeded);
        let state = filter_column(Column::State, is_by_irn || (is_by_taxpayer && is_done));
        let operation = filter_column(
            Column::Operation,
            is_by_irn || is_by_state || is_by_taxpayer,
        );
        let before = self
            .older_than
            .map(|age| now.saturating_sub(age).unwrap_or(Timestamp::MIN));
        let before = before.map(Timestamp::as_microsecond);
        let ids = self.ids.as_ref();
        Condition::all()
            .add_option(ids.map(|ids| Column::Id.is_in(ids.iter().map(ToString::to_string))))
            .add_option(self.state.map(|wanted| state.eq(wanted.as_str())))
            .add_option(self.operation.map(|wanted| operation.eq(wanted.as_str())))
            .add_option(
                self.taxpayer_id
                    .map(|taxpayer| Column::TaxpayerId.eq(taxpayer.0)),
            )
            .add_option(self.irn.as_ref().map(|irn| Column::IrnKey.eq(irn.key())))
            .add_option(self.step.map(is_current_step))
            .add_option(
                self.wait_reason
                    .map(|reason| Column::WaitReason.eq(reason.as_str())),
            )
            .add_option(self.error.as_deref().map(error_contains))
            .add_option(before.map(|before| Column::CreatedAt.lte(before)))
            .add_option(
                self.deadline
                    .map(|deadline| deadline_condition(deadline, now)),
            )
    }
}

/// Returns the SQL expression of a column for a filter. If `is_hidden_from_index`, an empty text is appended, so that
/// the database cannot use an index on the column.
fn filter_column(column: Column, is_hidden_from_index: bool) -> Expr {
    if is_hidden_from_index {
        Expr::cust(format!("{} || ''", column.as_str()))
    } else {
        Expr::col(column)
    }
}

/// Returns the condition that this is the current step of a run: the run has recorded the intent to call it, or the run
/// has no intent and this is the first step that is not done.
fn is_current_step(step: Step) -> Condition {
    let mut next = Condition::any();
    for operation in Operation::ALL {
        let Some(index) = operation.steps().iter().position(|other| *other == step) else {
            continue;
        };
        let mut reached = Condition::all()
            .add(Column::Intent.is_null())
            .add(Column::Operation.eq(operation.as_str()))
            .add(is_step_done(step).not());
        for before in &operation.steps()[..index] {
            reached = reached.add(is_step_done(*before));
        }
        next = next.add(reached);
    }
    next.add(Column::Intent.eq(step.as_str()))
}

fn is_step_done(step: Step) -> Expr {
    Column::Done.contains(json(&step))
}

/// Returns the condition that the last error contains this text, ignoring case. SQLite converts only the letters A to Z
/// to lower case, so the text is also searched as it was typed.
fn error_contains(text: &str) -> Condition {
    let lower = Func::lower(Expr::col(Column::LastError));
    Condition::any()
        .add(Expr::expr(lower).like(contains_pattern(&text.to_lowercase())))
        .add(Expr::col(Column::LastError).like(contains_pattern(text)))
}

/// Returns the condition that the deadline of an unfinished submission is in this state. The invoices of other runs are
/// signed already, so they have met theirs. The run states are literals, because with parameters PostgreSQL could not
/// use the index of unfinished runs. The index of operations is hidden, because most runs are submissions.
fn deadline_condition(deadline: DeadlineState, now: Timestamp) -> Condition {
    let operation = filter_column(Column::Operation, true);
    let unfinished = Condition::all()
        .add(Expr::cust("state IN ('running', 'waiting', 'paused')"))
        .add(operation.eq(Operation::Submit.as_str()));
    let soon = now
        .saturating_add(DUE_SOON_WITHIN)
        .unwrap_or(Timestamp::MAX);
    // The same condition as that of the count of overdue submissions.
    let counts = Condition::any()
        .add(Expr::col(Column::CreatedAt).lt(Expr::col(Column::DeadlineAt)))
        .add(Column::CreatedAt.lte(born_late_until(now).as_microsecond()))
        .add(Expr::cust("state = 'paused'"));
    let now = now.as_microsecond();
    let soon = soon.as_microsecond();
    match deadline {
        DeadlineState::Overdue => unfinished.add(Column::DeadlineAt.lte(now)).add(counts),
        DeadlineState::Soon => unfinished
            .add(Column::DeadlineAt.gt(now))
            .add(Column::DeadlineAt.lte(soon)),
    }
}

/// Orders the runs. Ids grow with time, so the order of the ids is the order of creation.
fn order_runs(found: Select<Entity>, order: RunOrder) -> Select<Entity> {
    match order {
        RunOrder::Newest => found.order_by_desc(Column::Id),
        RunOrder::Oldest => found.order_by_asc(Column::Id),
        RunOrder::Deadline => found
            .order_by_asc(Column::DeadlineAt)
            .order_by_asc(Column::Id),
    }
}

fn select_page(filter: &RunFilter, order: RunOrder, now: Timestamp) -> Select<Entity> {
    let condition = filter.condition(now, filter.state.is_some());
    order_runs(Entity::find().filter(condition), order)
}

/// Loads one page of the runs of all taxpayers, and the number of all runs that match the filter.
pub async fn page(
    store: &Store,
    filter: &RunFilter,
    order: RunOrder,
    now: Timestamp,
    page: Page,
) -> Result<(Vec<Run>, u64), StoreError> {
    page::load(store, select_page(filter, order, now), page).await
}

/// Selects the matching runs that are in one of these states.
fn select_in_states(filter: &RunFilter, states: &[RunState], now: Timestamp) -> Select<Entity> {
    let in_state = filter_column(Column::State, filter.irn.is_some())
        .is_in(states.iter().map(|state| state.as_str()));
    Entity::find()
        .filter(filter.condition(now, true))
        .filter(in_state)
}

/// Counts the matching runs that are in one of these states.
pub async fn count(
    store: &Store,
    filter: &RunFilter,
    states: &[RunState],
    now: Timestamp,
) -> Result<u64, StoreError> {
    Ok(select_in_states(filter, states, now)
        .count(store.reader())
        .await?)
}

/// Returns the ids of up to `limit` matching runs that are in one of these states, oldest first.
pub async fn load_ids(
    store: &Store,
    filter: &RunFilter,
    states: &[RunState],
    now: Timestamp,
    limit: u64,
) -> Result<Vec<RunId>, StoreError> {
    let found = select_in_states(filter, states, now).order_by_asc(Column::Id);
    let ids: Vec<String> = found
        .limit(limit)
        .select_only()
        .column(Column::Id)
        .into_tuple()
        .all(store.reader())
        .await?;
    ids.iter()
        .map(|id| {
            RowRef {
                table: "pipeline_runs",
                id,
            }
            .parse(id)
        })
        .collect()
}

/// Loads the runs with these ids, oldest first. Ids that do not exist are skipped.
pub async fn find_by_ids(store: &Store, ids: &[RunId]) -> Result<Vec<Run>, StoreError> {
    let mut found = Vec::new();
    for chunk in statement_portions(ids) {
        let wanted = Column::Id.is_in(chunk.iter().map(ToString::to_string));
        let rows = Entity::find()
            .filter(wanted)
            .order_by_asc(Column::Id)
            .all(store.reader())
            .await?;
        for row in rows {
            found.push(Run::try_from(row)?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use sea_orm::QueryTrait;
    use uuid::Uuid;

    use super::*;
    use crate::domain::pipeline::{RunPhase, RunRequest, StepProgress};
    use crate::store::runs;
    use crate::store::testing::{TestStore, query_plan, stores};

    const ALL: Page = Page {
        number: 1,
        per_page: 100,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn run(number: u32, operation: Operation) -> Run {
        let irn = Irn::parse(&format!("INV{number:03}-94AD90FB-20261121")).unwrap();
        let request = RunRequest::sample(irn.as_str(), operation);
        let created = at(i64::from(number));
        Run::new(
            Uuid::from_u128(number.into()),
            TaxpayerId(7),
            request,
            created,
        )
        .with_deadline(at(10_000))
    }

    fn runs() -> Vec<Run> {
        let waiting = Run {
            phase: RunPhase::Waiting {
                reason: WaitReason::HealthCheckDown,
                until: at(1),
            },
            last_error: Some("The Authority is 100% down in ỌYỌ".to_owned()),
            done: vec![Step::IrnCheck, Step::DataCheck],
            ..run(2, Operation::Submit)
        };
        let paused = Run {
            phase: RunPhase::Paused,
            progress: StepProgress {
                intent: Some(Step::Sign),
                ..StepProgress::default()
            },
            ..run(3, Operation::Submit)
        };
        let paused = Run {
            done: vec![Step::IrnCheck, Step::DataCheck],
            deadline_at: at(1_000),
            ..paused
        };
        let steps = Operation::Submit.steps().to_vec();
        let ended = Run {
            phase: RunPhase::Succeeded,
            done: steps,
            ..run(4, Operation::Submit)
        };
        vec![
            run(1, Operation::Submit),
            waiting,
            paused,
            ended,
            run(5, Operation::Transmit),
        ]
    }

    /// Returns stores that contain the runs.
    async fn stores_with_runs() -> Vec<TestStore> {
        let stores = stores().await;
        for test in &stores {
            let tx = test.store.begin().await.unwrap();
            runs::save(&tx, &runs().iter().collect::<Vec<_>>())
                .await
                .unwrap();
            tx.commit().await.unwrap();
        }
        stores
    }

    fn numbers(runs: &[Run]) -> Vec<u128> {
        runs.iter().map(|run| run.id.as_u128()).collect()
    }

    /// Checks which runs each filter selects at this time.
    async fn check_filters(now: Timestamp, cases: &[(RunFilter, &[u128])]) {
        for test in stores_with_runs().await {
            for (filter, expected) in cases {
                let (found, total) = page(&test.store, filter, RunOrder::Oldest, now, ALL)
                    .await
                    .unwrap();
                assert_eq!(numbers(&found), *expected, "{filter:?}");
                assert_eq!(usize::try_from(total).unwrap(), expected.len());
            }
        }
    }

    #[tokio::test]
    async fn each_filter_selects_its_runs() {
        check_filters(
            at(2_000),
            &[
                (RunFilter::default(), &[1, 2, 3, 4, 5]),
                (
                    RunFilter {
                        ids: Some(vec![Uuid::from_u128(2), Uuid::from_u128(9)]),
                        ..RunFilter::default()
                    },
                    &[2],
                ),
                (
                    RunFilter {
                        ids: Some(Vec::new()),
                        ..RunFilter::default()
                    },
                    &[],
                ),
                (
                    RunFilter {
                        irn: Some(run(2, Operation::Submit).irn),
                        ..RunFilter::default()
                    },
                    &[2],
                ),
                (
                    RunFilter {
                        wait_reason: Some(WaitReason::HealthCheckDown),
                        ..RunFilter::default()
                    },
                    &[2],
                ),
                (
                    RunFilter {
                        error: Some("authority is 100% D".to_owned()),
                        ..RunFilter::default()
                    },
                    &[2],
                ),
                (
                    RunFilter {
                        error: Some("down in ỌYỌ".to_owned()),
                        ..RunFilter::default()
                    },
                    &[2],
                ),
                (
                    RunFilter {
                        error: Some("authority_is".to_owned()),
                        ..RunFilter::default()
                    },
                    &[],
                ),
                (
                    RunFilter {
                        older_than: Some(Duration::from_secs(1_998)),
                        ..RunFilter::default()
                    },
                    &[1, 2],
                ),
                (
                    RunFilter {
                        taxpayer_id: Some(TaxpayerId(8)),
                        ..RunFilter::default()
                    },
                    &[],
                ),
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn a_run_is_at_the_step_that_it_intends_or_at_the_first_that_is_not_done() {
        let at_step = |step| RunFilter {
            step: Some(step),
            ..RunFilter::default()
        };
        check_filters(
            at(2_000),
            &[
                (at_step(Step::Sign), &[2, 3]),
                (at_step(Step::IrnCheck), &[1]),
                (at_step(Step::Health), &[5]),
                (at_step(Step::Confirm), &[]),
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn an_unfinished_submission_is_overdue_after_its_deadline_and_due_soon_in_the_hour_before()
     {
        let by_deadline = |state| RunFilter {
            deadline: Some(state),
            ..RunFilter::default()
        };
        check_filters(
            at(2_000),
            &[
                (by_deadline(DeadlineState::Overdue), &[3]),
                (by_deadline(DeadlineState::Soon), &[]),
            ],
        )
        .await;
        // The invoice of run 5, which transmits it, is at the authority.
        check_filters(at(6_400), &[(by_deadline(DeadlineState::Soon), &[1, 2])]).await;
        check_filters(
            at(10_000),
            &[(by_deadline(DeadlineState::Overdue), &[1, 2, 3])],
        )
        .await;
    }

    #[tokio::test]
    async fn the_newest_run_or_the_earliest_deadline_comes_first() {
        let all = RunFilter::default();
        for test in stores_with_runs().await {
            for (order, expected) in [
                (RunOrder::Newest, [5, 4, 3, 2, 1]),
                (RunOrder::Deadline, [3, 1, 2, 4, 5]),
            ] {
                let (found, _) = page(&test.store, &all, order, at(2_000), ALL)
                    .await
                    .unwrap();
                assert_eq!(numbers(&found), expected);
            }
        }
    }

    #[tokio::test]
    async fn the_runs_in_some_states_are_counted_and_the_oldest_are_selected() {
        let all = RunFilter::default();
        let states = [RunState::Waiting, RunState::Paused];
        let now = at(2_000);
        for test in stores_with_runs().await {
            let store = &test.store;
            let selected = load_ids(store, &all, &states, now, 1).await.unwrap();
            assert_eq!(numbers(&find_by_ids(store, &selected).await.unwrap()), [2]);
            assert_eq!(count(store, &all, &states, now).await.unwrap(), 2);
        }
    }

    #[tokio::test]
    async fn a_list_of_one_taxpayer_does_not_look_at_what_others_have_done() {
        // SQLite only: PostgreSQL goes by its statistics.
        for test in stores().await.into_iter().take(1) {
            for (state, index) in [
                (None, "(taxpayer_id=?)"),
                (Some(RunState::Succeeded), "(taxpayer_id=?)"),
                (Some(RunState::Paused), "(state=?"),
            ] {
                let filter = RunFilter {
                    taxpayer_id: Some(TaxpayerId(7)),
                    operation: Some(Operation::Submit),
                    state,
                    ..RunFilter::default()
                };
                let page = select_page(&filter, RunOrder::Newest, at(0)).limit(50);
                let query = page.build(test.store.backend());
                let values = query.values.map(|values| values.0).unwrap_or_default();
                let plan = query_plan(&test.store, &query.sql, values).await;
                assert!(plan[0].contains(index), "{state:?}: {plan:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_list_goes_by_the_filter_that_few_runs_match() {
        // SQLite only: PostgreSQL goes by its statistics.
        for test in stores().await.into_iter().take(1) {
            let backend = test.store.backend();
            for (has_irn, has_state, index) in [
                (true, true, "irn_key=?"),
                (true, false, "irn_key=?"),
                (false, true, "(state=?"),
                (false, false, "(operation=?"),
            ] {
                let filter = RunFilter {
                    irn: has_irn.then(|| run(1, Operation::Submit).irn),
                    state: has_state.then_some(RunState::Paused),
                    operation: Some(Operation::Submit),
                    ..RunFilter::default()
                };
                let page = select_page(&filter, RunOrder::Newest, at(0)).limit(50);
                for (query, index) in [
                    (page.build(backend), index),
                    (
                        select_in_states(&filter, &[RunState::Paused], at(0)).build(backend),
                        if has_irn { index } else { "(state=?" },
                    ),
                ] {
                    let values = query.values.map(|values| values.0).unwrap_or_default();
                    let plan = query_plan(&test.store, &query.sql, values).await;
                    assert!(plan[0].contains(index), "{}: {plan:?}", query.sql);
                }
            }
        }
    }
}
