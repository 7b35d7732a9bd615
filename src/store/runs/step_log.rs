//! The log of the calls that runs make to the authority.

use database::column::{RowRef, json};
use database::sql::SqlOnce;
use database::{StoreError, Transaction};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    Statement,
};

use crate::domain::kernel::ids::{RunId, TaxpayerId};
use crate::domain::kernel::upstream::CallFailure;
use crate::domain::pipeline::StepRecord;
use crate::store::Store;
use crate::store::runs::step_row;

static LOG: SqlOnce = SqlOnce::new(|dialect| {
    format!(
        "INSERT INTO pipeline_steps \
         (taxpayer_id, id, run_id, step, attempt, started_at, outcome, duration_ms, error, cause, blame) \
         SELECT CAST(given.value ->> 0 AS BIGINT), given.value ->> 1, given.value ->> 2, given.value ->> 3, \
         CAST(given.value ->> 4 AS INTEGER), CAST(given.value ->> 5 AS BIGINT), given.value ->> 6, \
         CAST(given.value ->> 7 AS BIGINT), given.value ->> 8, given.value ->> 9, \
         given.value ->> 10 FROM {} WHERE TRUE \
         ON CONFLICT (taxpayer_id, id) DO UPDATE SET outcome = excluded.outcome, \
         duration_ms = excluded.duration_ms, error = excluded.error, cause = excluded.cause, blame = excluded.blame",
        dialect.json_elements("$1", "given")
    )
});

/// The outcome of an attempt at which no call was made (`StepResult::Deferred`).
const HELD: &str = "held";
/// The outcome of an attempt whose process ended before it recorded another one. The call may have had its effect.
const INTERRUPTED: &str = "interrupted";

/// Stores attempts at steps. An attempt that is stored already gets its outcome.
pub async fn log_attempts(tx: &Transaction, attempts: &[&StepAttempt]) -> Result<(), StoreError> {
    if attempts.is_empty() {
        return Ok(());
    }
    let rows = attempts.iter().map(|entry| {
        let StepAttempt {
            taxpayer,
            id,
            run,
            record,
        } = entry;
        let StepRecord {
            step,
            attempt,
            outcome,
            started_at,
            duration_ms,
            error,
            failure,
        } = record;
        let started_at = started_at.as_microsecond();
        json(&(
            taxpayer.0,
            id,
            run,
            step,
            attempt,
            started_at,
            outcome,
            duration_ms,
            error,
            failure.map(|failure| failure.cause),
            failure.and_then(|failure| failure.blame),
        ))
    });
    let list = format!("[{}]", rows.collect::<Vec<_>>().join(","));
    let backend = tx.get_database_backend();
    tx.execute_raw(Statement::from_sql_and_values(
        backend,
        LOG.get(backend),
        [list.into()],
    ))
    .await?;
    Ok(())
}

/// An attempt at a step, with the keys of its row.
#[derive(Debug)]
pub struct StepAttempt {
    pub taxpayer: TaxpayerId,
    pub id: uuid::Uuid,
    pub run: RunId,
    pub record: StepRecord,
}

/// Returns the id of the last attempt of a run, if its outcome was not recorded.
pub async fn unfinished_attempt(
    store: &Store,
    taxpayer: TaxpayerId,
    run: RunId,
) -> Result<Option<uuid::Uuid>, StoreError> {
    let last = step_row::Entity::find()
        .filter(step_row::Column::TaxpayerId.eq(taxpayer.0))
        .filter(step_row::Column::RunId.eq(run.to_string()))
        .order_by_desc(step_row::Column::StartedAt)
        .order_by_desc(step_row::Column::Id)
        .one(store.reader())
        .await?;
    let unfinished = last.filter(|row| row.outcome.is_none());
    unfinished
        .map(|row| {
            RowRef {
                table: "pipeline_steps",
                id: row.id.clone(),
            }
            .parse(&row.id)
        })
        .transpose()
}

/// Gives the attempts of a run that have no outcome the outcome `interrupted`. Call this when no process calls a step of
/// the run.
pub async fn end_interrupted(
    store: &Store,
    taxpayer: TaxpayerId,
    run: RunId,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    step_row::Entity::update_many()
        .col_expr(step_row::Column::Outcome, Expr::value(INTERRUPTED))
        .filter(step_row::Column::TaxpayerId.eq(taxpayer.0))
        .filter(step_row::Column::RunId.eq(run.to_string()))
        .filter(step_row::Column::Outcome.is_null())
        .exec(&tx)
        .await?;
    tx.commit().await
}

/// Returns why the last call of a run failed; `None` if it did not fail, or if the run made no call. Attempts at which
/// no call was made, because it was held back, are skipped.
pub async fn last_failure(
    store: &Store,
    taxpayer: TaxpayerId,
    run: RunId,
) -> Result<Option<CallFailure>, StoreError> {
    let last = step_row::Entity::find()
        .filter(step_row::Column::TaxpayerId.eq(taxpayer.0))
        .filter(step_row::Column::RunId.eq(run.to_string()))
        .filter(
            Condition::any()
                .add(step_row::Column::Outcome.is_null())
                .add(step_row::Column::Outcome.ne(HELD)),
        )
        .order_by_desc(step_row::Column::StartedAt)
        .order_by_desc(step_row::Column::Id)
        .one(store.reader())
        .await?;
    let last = last.map(StepRecord::try_from).transpose()?;
    Ok(last.and_then(|record| record.failure))
}

/// The maximum number of calls of a run that are shown. A run that waits through a long outage makes thousands.
pub const CALLS_SHOWN_MAX: usize = 100;

/// Loads the newest `CALLS_SHOWN_MAX` calls of a run, ordered by start time, oldest first.
pub async fn newest_steps(
    store: &Store,
    taxpayer: TaxpayerId,
    run: RunId,
) -> Result<Vec<StepRecord>, StoreError> {
    let rows = step_row::Entity::find()
        .filter(step_row::Column::TaxpayerId.eq(taxpayer.0))
        .filter(step_row::Column::RunId.eq(run.to_string()))
        .order_by_desc(step_row::Column::StartedAt)
        .order_by_desc(step_row::Column::Id)
        .limit(CALLS_SHOWN_MAX as u64)
        .all(store.reader())
        .await?;
    rows.into_iter().rev().map(StepRecord::try_from).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::domain::kernel::upstream::{Blame, UpstreamCause};
    use crate::domain::pipeline::Step;
    use crate::store::testing::stores;

    const FAILURE: CallFailure = CallFailure {
        cause: UpstreamCause::ServerError,
        blame: Some(Blame::Document),
    };

    #[tokio::test]
    async fn the_newest_calls_of_a_run_are_shown_oldest_first() {
        let taxpayer = TaxpayerId(7);
        let run = Uuid::from_u128(1);
        let last = u32::try_from(CALLS_SHOWN_MAX).unwrap() + 5;
        let attempt = |run, number: u32| StepAttempt {
            taxpayer,
            id: Uuid::from_u128(number.into()),
            run,
            record: StepRecord {
                step: Step::IrnCheck,
                attempt: number,
                outcome: Some("retry".to_owned()),
                started_at: Timestamp::from_second(number.into()).unwrap(),
                duration_ms: Some(1),
                error: None,
                failure: Some(FAILURE),
            },
        };
        let mut attempts: Vec<_> = (1..=last).map(|number| attempt(run, number)).collect();
        attempts.push(attempt(Uuid::from_u128(2), 1_000));
        for test in stores().await {
            let tx = test.store.begin().await.unwrap();
            log_attempts(&tx, &attempts.iter().collect::<Vec<_>>())
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let shown = newest_steps(&test.store, taxpayer, run).await.unwrap();
            let numbers: Vec<_> = shown.iter().map(|record| record.attempt).collect();
            assert_eq!(numbers, (6..=last).collect::<Vec<_>>());
            assert_eq!(shown[0].failure, Some(FAILURE));
            let failure = last_failure(&test.store, taxpayer, run).await.unwrap();
            assert_eq!(failure, Some(FAILURE));
            let mut held = attempt(run, last + 1);
            held.record.outcome = Some(HELD.to_owned());
            held.record.failure = None;
            let tx = test.store.begin().await.unwrap();
            log_attempts(&tx, &[&held]).await.unwrap();
            tx.commit().await.unwrap();
            let failure = last_failure(&test.store, taxpayer, run).await.unwrap();
            assert_eq!(failure, Some(FAILURE), "no call was made since");
        }
    }
}
