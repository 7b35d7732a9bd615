//! Pipeline runs and the log of their steps.

pub mod run_list;
pub mod run_row;
pub mod step_row;
pub mod unfinished;

use std::collections::BTreeSet;

use jiff::Timestamp;
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect,
    Statement,
};

use crate::domain::kernel::crash::CRASHES_MAX;
use crate::domain::kernel::ids::{RunId, TaxpayerId};
use crate::domain::pipeline::{Run, StepRecord};
use crate::store::db::column::{RowRef, json};
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::db::lookup::{NameColumn, NameList, find, lookup_sql};
use crate::store::db::sql::SqlOnce;
use crate::store::runs::run_row::{Column, Entity, Model};

pub(crate) static LOOKUP: SqlOnce =
    SqlOnce::new(|dialect| lookup_sql(dialect, "pipeline_runs", &[NameColumn::Text("irn_key")]));

/// Loads, for each taxpayer, its runs for these IRNs, ordered by the time of the last change.
pub async fn with_irn_keys(
    connection: &impl ConnectionTrait,
    wanted: impl IntoIterator<Item = (TaxpayerId, Vec<String>)>,
) -> Result<Vec<Run>, StoreError> {
    let mut irn_keys = NameList::default();
    for (taxpayer, keys) in wanted {
        irn_keys.extend(taxpayer, keys.into_iter().collect::<BTreeSet<_>>());
    }
    if irn_keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows: Vec<Model> = find(connection, &LOOKUP, [irn_keys.json()]).await?;
    rows.sort_by_key(|row| row.updated_at);
    rows.into_iter().map(Run::try_from).collect()
}

/// Loads a taxpayer's runs for these IRNs.
pub async fn owned_by_with_irn_keys(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    irn_keys: Vec<String>,
) -> Result<Vec<Run>, StoreError> {
    with_irn_keys(connection, [(taxpayer, irn_keys)]).await
}

pub async fn owned_by_with_id(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    id: RunId,
) -> Result<Option<Run>, StoreError> {
    Entity::find_by_id((taxpayer.0, id.to_string())).one(connection).await?.map(Run::try_from).transpose()
}

/// Loads a run of any taxpayer. Use this only for operators, who may see all runs.
pub async fn with_id(store: &Store, id: RunId) -> Result<Option<Run>, StoreError> {
    let found = Entity::find().filter(Column::Id.eq(id.to_string())).one(store.reader()).await?;
    found.map(Run::try_from).transpose()
}

/// The runs that need attention. The partial index `pipeline_runs_stopped` has the same condition, in these words.
const STOPPED: &str = "state IN ('waiting', 'paused', 'refused')";

/// Loads the runs of a taxpayer that wait, are paused or were refused, latest change first.
pub async fn stopped_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    limit: u64,
) -> Result<Vec<Run>, StoreError> {
    let rows = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Expr::cust(STOPPED))
        .order_by_desc(Column::UpdatedAt)
        .limit(limit)
        .all(store.reader())
        .await?;
    rows.into_iter().map(Run::try_from).collect()
}

/// The runs whose quarantine can be lifted: only crashes caused it, and it was never lifted. The partial index
/// `pipeline_runs_liftable` has the same condition, in these words.
const LIFTABLE: &str = "state = 'paused' AND crashes >= 3 AND panics = 0 AND NOT is_lifted";
const _: () = assert!(CRASHES_MAX == 3, "LIFTABLE and the migration say so");

/// Loads up to `limit` runs whose quarantine can be lifted and that have not changed after `since`, the oldest first.
pub async fn liftable(store: &Store, since: Timestamp, limit: u64) -> Result<Vec<Run>, StoreError> {
    let rows = Entity::find()
        .filter(Expr::cust(LIFTABLE))
        .filter(Column::UpdatedAt.lte(since.as_microsecond()))
        .order_by_asc(Column::UpdatedAt)
        .limit(limit)
        .all(store.reader())
        .await?;
    rows.into_iter().map(Run::try_from).collect()
}

/// Writes the current state of these runs. Inserts new runs and updates existing ones.
pub async fn save(tx: &Transaction, runs: &[&Run]) -> Result<(), StoreError> {
    if runs.is_empty() {
        return Ok(());
    }
    Entity::insert_many(runs.iter().map(|run| Model::from(*run).into_active_model()))
        .on_conflict(
            OnConflict::columns([Column::TaxpayerId, Column::Id]).update_columns(CHANGING).to_owned(),
        )
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// The columns that `save` updates. The remaining columns never change after the insert.
const CHANGING: [run_row::Column; 17] = [
    Column::State,
    Column::Document,
    Column::Digest,
    Column::Done,
    Column::Intent,
    Column::Attempt,
    Column::Crashes,
    Column::Panics,
    Column::IsLifted,
    Column::FailingSince,
    Column::NextAttemptAt,
    Column::DeadlineAt,
    Column::WaitReason,
    Column::LastError,
    Column::ResolvedBy,
    Column::QrCode,
    Column::UpdatedAt,
];

static LOG_STEPS: SqlOnce = SqlOnce::new(|dialect| {
    format!(
        "INSERT INTO pipeline_steps \
         (taxpayer_id, id, run_id, step, attempt, started_at, outcome, duration_ms, error) \
         SELECT CAST(given.value ->> 0 AS BIGINT), given.value ->> 1, given.value ->> 2, given.value ->> 3, \
         CAST(given.value ->> 4 AS INTEGER), CAST(given.value ->> 5 AS BIGINT), given.value ->> 6, \
         CAST(given.value ->> 7 AS BIGINT), given.value ->> 8 FROM {} WHERE TRUE \
         ON CONFLICT (taxpayer_id, id) DO UPDATE SET outcome = excluded.outcome, \
         duration_ms = excluded.duration_ms, error = excluded.error",
        dialect.json_elements("$1", "given")
    )
});

/// Logs attempts at steps. An attempt that is logged already gets its outcome.
pub async fn log_steps(tx: &Transaction, attempts: &[&StepAttempt]) -> Result<(), StoreError> {
    if attempts.is_empty() {
        return Ok(());
    }
    let row = |entry: &&StepAttempt| {
        let StepAttempt { taxpayer, id, run, record } = entry;
        let StepRecord { step, attempt, outcome, started_at, duration_ms, error } = record;
        let started_at = started_at.as_microsecond();
        json(&(taxpayer.0, id, run, step, attempt, started_at, outcome, duration_ms, error))
    };
    let list = format!("[{}]", attempts.iter().map(row).collect::<Vec<_>>().join(","));
    let backend = tx.get_database_backend();
    tx.execute_raw(Statement::from_sql_and_values(backend, LOG_STEPS.get(backend), [list.into()])).await?;
    Ok(())
}

/// An entry of the log of steps, with its keys.
#[derive(Debug)]
pub struct StepAttempt {
    pub taxpayer: TaxpayerId,
    pub id: uuid::Uuid,
    pub run: RunId,
    pub record: StepRecord,
}

/// Returns the attempt id of a run's last call if its outcome was never recorded.
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
    unfinished.map(|row| RowRef { table: "pipeline_steps", id: row.id.clone() }.parse(&row.id)).transpose()
}

/// Loads the logged calls of a run, ordered by start time.
pub async fn steps_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    run: RunId,
) -> Result<Vec<StepRecord>, StoreError> {
    let rows = step_row::Entity::find()
        .filter(step_row::Column::TaxpayerId.eq(taxpayer.0))
        .filter(step_row::Column::RunId.eq(run.to_string()))
        .order_by_asc(step_row::Column::StartedAt)
        .order_by_asc(step_row::Column::Id)
        .all(store.reader())
        .await?;
    rows.into_iter().map(StepRecord::try_from).collect()
}
