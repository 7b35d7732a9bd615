//! Counts of the runs that have not ended, by state, reason to wait, and deadline.

use std::time::Duration;

use database::StoreError;
use database::column::RowRef;
use jiff::Timestamp;
use sea_orm::{ConnectionTrait, Statement};

use crate::domain::pipeline::{RunState, WaitReason};
use crate::store::Store;

/// A deadline within this time counts as due soon.
pub const DUE_SOON_WITHIN: Duration = Duration::from_hours(1);

/// A submission whose deadline had already passed when its run was created counts as overdue only after this time, or
/// when the run is paused. Until then its run moves like any other.
const BORN_LATE_GRACE: Duration = Duration::from_mins(1);

/// The unfinished runs that have the same state and the same reason to wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedRuns {
    pub state: RunState,
    /// The reason to wait; `None` for runs that do not wait.
    pub wait_reason: Option<WaitReason>,
    pub runs: i64,
    /// The time at which the oldest of these runs was created.
    pub oldest: Timestamp,
    /// The number of overdue submissions among these runs: those that have missed their deadlines, without the young
    /// ones that were late from the beginning (see `BORN_LATE_GRACE`). The invoices of other runs are signed already, so
    /// they have met theirs.
    pub overdue: i64,
    /// The number of submissions whose deadlines are within `DUE_SOON_WITHIN`.
    pub due_soon: i64,
    /// The earliest of the deadlines of the overdue submissions; `None` if none is overdue.
    pub missed_deadline: Option<Timestamp>,
    /// The earliest of the deadlines within `DUE_SOON_WITHIN`; `None` if there are none.
    pub next_deadline: Option<Timestamp>,
}

/// The states are literals, because with parameters PostgreSQL could not use the partial index of unfinished runs. The
/// operation is not in the index. It is compared last, so that SQLite reads only the rows of runs whose deadlines are
/// missed or near.
const COUNT_UNFINISHED: &str = "SELECT state, wait_reason, COUNT(*) AS runs, MIN(created_at) AS oldest, \
    CAST(SUM(CASE WHEN deadline_at <= $1 AND (created_at < deadline_at OR created_at <= $3 OR state = 'paused') \
    AND operation = 'submit' THEN 1 ELSE 0 END) AS BIGINT) AS overdue, \
    CAST(SUM(CASE WHEN deadline_at > $1 AND deadline_at <= $2 AND operation = 'submit' THEN 1 ELSE 0 END) AS BIGINT) \
    AS due_soon, \
    MIN(CASE WHEN deadline_at <= $1 AND (created_at < deadline_at OR created_at <= $3 OR state = 'paused') \
    AND operation = 'submit' THEN deadline_at END) AS missed_deadline, \
    MIN(CASE WHEN deadline_at > $1 AND deadline_at <= $2 AND operation = 'submit' THEN deadline_at END) \
    AS next_deadline \
    FROM pipeline_runs WHERE state IN ('running', 'waiting', 'paused') GROUP BY state, wait_reason";

/// Groups the unfinished runs of all taxpayers by state and by reason to wait, and counts the runs of each group.
pub async fn count(store: &Store, now: Timestamp) -> Result<Vec<UnfinishedRuns>, StoreError> {
    let soon = now
        .saturating_add(DUE_SOON_WITHIN)
        .unwrap_or(Timestamp::MAX);
    let values = [now, soon, born_late_until(now)];
    let values = values.map(|at| at.as_microsecond().into());
    let statement = Statement::from_sql_and_values(store.backend(), COUNT_UNFINISHED, values);
    let rows = store.reader().query_all_raw(statement).await?;
    let at = RowRef {
        table: "pipeline_runs",
        id: "unfinished",
    };
    rows.iter()
        .map(|row| {
            let state: String = row.try_get("", "state")?;
            let wait_reason: Option<String> = row.try_get("", "wait_reason")?;
            Ok(UnfinishedRuns {
                state: at.parse(&state)?,
                wait_reason: wait_reason
                    .as_deref()
                    .map(|word| at.parse(word))
                    .transpose()?,
                runs: row.try_get("", "runs")?,
                oldest: at.moment(row.try_get("", "oldest")?)?,
                overdue: row.try_get("", "overdue")?,
                due_soon: row.try_get("", "due_soon")?,
                missed_deadline: at.optional_moment(row.try_get("", "missed_deadline")?)?,
                next_deadline: at.optional_moment(row.try_get("", "next_deadline")?)?,
            })
        })
        .collect()
}

/// Returns the latest time of creation at which a submission that was late from the beginning counts as overdue `now`.
pub(super) fn born_late_until(now: Timestamp) -> Timestamp {
    now.saturating_sub(BORN_LATE_GRACE)
        .unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use database::page::Page;
    use sea_orm::DbBackend;
    use uuid::Uuid;

    use super::*;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::pipeline::{Operation, Run, RunPhase, RunRequest};
    use crate::store::runs;
    use crate::store::runs::run_list::{self, DeadlineState, RunFilter, RunOrder};
    use crate::store::testing::{query_plan, stores};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn run(number: u32, state: RunState, created: i64, deadline: i64) -> Run {
        run_of_operation(Operation::Submit, number, state, created, deadline)
    }

    fn run_of_operation(
        operation: Operation,
        number: u32,
        state: RunState,
        created: i64,
        deadline: i64,
    ) -> Run {
        let irn = Irn::parse(&format!("INV{number:03}-94AD90FB-20261121")).unwrap();
        let request = RunRequest::sample(irn.as_str(), operation);
        let run = Run::new(
            Uuid::from_u128(number.into()),
            TaxpayerId(7),
            request,
            at(created),
        );
        Run {
            phase: RunPhase::sample(state),
            ..run.with_deadline(at(deadline))
        }
    }

    #[tokio::test]
    async fn unfinished_runs_are_counted_by_state_with_their_oldest_and_their_deadlines() {
        let now = 10_000;
        let runs = [
            run(1, RunState::Running, 100, now + 9_000),
            run(2, RunState::Waiting, 50, now),
            run(3, RunState::Waiting, 20, now + 3_600),
            run(4, RunState::Waiting, 30, now + 3_601),
            run(5, RunState::Paused, 10, now - 1),
            run(6, RunState::Succeeded, 1, 1),
            run(7, RunState::Cancelled, 1, 1),
            // The invoices of these are at the authority.
            run_of_operation(Operation::Transmit, 8, RunState::Waiting, 40, 1),
            run_of_operation(Operation::Payment, 9, RunState::Waiting, 40, now + 60),
            run_of_operation(Operation::Payment, 10, RunState::Paused, 40, 1),
        ];
        for test in stores().await {
            let tx = test.store.begin().await.unwrap();
            runs::save(&tx, &runs.iter().collect::<Vec<_>>())
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let mut counted = count(&test.store, at(now)).await.unwrap();
            counted.sort_by_key(|group| group.state);
            let group = |state, runs, oldest, deadlines: [Option<i64>; 2]| UnfinishedRuns {
                state,
                wait_reason: (state == RunState::Waiting)
                    .then_some(WaitReason::AuthorityUnavailable),
                runs,
                oldest: at(oldest),
                overdue: i64::from(deadlines[0].is_some()),
                due_soon: i64::from(state == RunState::Waiting),
                missed_deadline: deadlines[0].map(at),
                next_deadline: deadlines[1].map(at),
            };
            let expected = [
                group(RunState::Running, 1, 100, [None, None]),
                group(RunState::Waiting, 5, 20, [Some(now), Some(now + 3_600)]),
                group(RunState::Paused, 2, 10, [Some(now - 1), None]),
            ];
            assert_eq!(counted, expected);
        }
    }

    #[tokio::test]
    async fn a_submission_that_was_late_from_the_beginning_is_overdue_after_a_minute_or_when_paused()
     {
        let now = 10_000;
        // Each case: the state, the times of creation and of the deadline, and if the run is overdue.
        let cases = [
            (RunState::Running, now - 1, now - 900, false),
            (RunState::Waiting, now - 59, now - 900, false),
            (RunState::Waiting, now - 60, now - 900, true),
            (RunState::Paused, now - 1, now - 900, true),
            (RunState::Running, now - 10, now - 5, true),
            (RunState::Running, now - 10, now + 5, false),
        ];
        for (number, (state, created, deadline, is_overdue)) in (1..).zip(cases) {
            for test in stores().await {
                let late = run(number, state, created, deadline);
                let tx = test.store.begin().await.unwrap();
                runs::save(&tx, &[&late]).await.unwrap();
                tx.commit().await.unwrap();
                let counted = count(&test.store, at(now)).await.unwrap();
                let overdue: i64 = counted.iter().map(|group| group.overdue).sum();
                assert_eq!(overdue, i64::from(is_overdue), "run {number}");
                let missed = counted.iter().find_map(|group| group.missed_deadline);
                assert_eq!(missed.is_some(), is_overdue, "run {number}");
                // The page behind the number lists the same runs.
                let filter = RunFilter {
                    deadline: Some(DeadlineState::Overdue),
                    ..RunFilter::default()
                };
                let first = Page {
                    number: 1,
                    per_page: 9,
                };
                let listed = run_list::page(&test.store, &filter, RunOrder::Newest, at(now), first);
                let (_, total) = listed.await.unwrap();
                assert_eq!(total, u64::from(is_overdue), "run {number}");
            }
        }
    }

    #[tokio::test]
    async fn unfinished_runs_are_counted_by_an_index_of_their_own() {
        for test in stores().await {
            let by_index = match test.store.backend() {
                DbBackend::Postgres => "pipeline_runs_unfinished",
                _ => "USING INDEX pipeline_runs_unfinished",
            };
            let values = [1_i64.into(), 2_i64.into(), 3_i64.into()];
            let steps = query_plan(&test.store, COUNT_UNFINISHED, values).await;
            assert!(
                steps.iter().any(|step| step.contains(by_index)),
                "{steps:#?}"
            );
        }
    }
}
