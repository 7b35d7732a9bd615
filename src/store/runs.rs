//! Pipeline runs and the log of their steps.

pub mod run_row;
pub mod step_row;

use std::collections::BTreeSet;

use jiff::Timestamp;
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, Statement,
};

use crate::domain::kernel::ids::{RunId, TaxpayerId};
use crate::domain::pipeline::{Operation, Run, RunState, Step, StepRecord, StepResult};
use crate::store::db::column::{RowRef, json};
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::db::lookup::{NameColumn, NameList, find, lookup_sql};
use crate::store::db::page::{self, Page};
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

/// The filter of the operators' list of runs. A field that is `None` does not filter.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFilter {
    pub state: Option<RunState>,
    pub operation: Option<Operation>,
    pub taxpayer_id: Option<TaxpayerId>,
}

/// Loads one page of the runs of all taxpayers, newest first, and the number of all runs that match the filter.
pub async fn page(store: &Store, filter: RunFilter, page: Page) -> Result<(Vec<Run>, u64), StoreError> {
    let mut found = Entity::find();
    if let Some(state) = filter.state {
        found = found.filter(Column::State.eq(state.as_str()));
    }
    if let Some(operation) = filter.operation {
        found = found.filter(Column::Operation.eq(operation.as_str()));
    }
    if let Some(taxpayer) = filter.taxpayer_id {
        found = found.filter(Column::TaxpayerId.eq(taxpayer.0));
    }
    page::load(store, found.order_by_desc(Column::Id), page).await
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
const CHANGING: [run_row::Column; 15] = [
    Column::State,
    Column::Document,
    Column::Digest,
    Column::Done,
    Column::Intent,
    Column::Attempt,
    Column::Crashes,
    Column::FailingSince,
    Column::NextAttemptAt,
    Column::DeadlineAt,
    Column::WaitReason,
    Column::LastError,
    Column::ResolvedBy,
    Column::QrCode,
    Column::UpdatedAt,
];

/// Logs that a step's call to the authority begins.
pub async fn begin_step(
    tx: &Transaction,
    run: &Run,
    step: Step,
    attempt_id: uuid::Uuid,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = step_row::Model {
        taxpayer_id: run.taxpayer_id.0,
        id: attempt_id.to_string(),
        run_id: run.id.to_string(),
        step: step.to_string(),
        attempt: i32::try_from(run.attempt).unwrap_or(i32::MAX),
        outcome: None,
        started_at: now.as_microsecond(),
        duration_ms: None,
        error: None,
    };
    step_row::Entity::insert(row.into_active_model()).exec_without_returning(tx).await?;
    Ok(())
}

/// The outcome of a call that a step made.
#[derive(Debug)]
pub struct CompletedStep {
    pub taxpayer: TaxpayerId,
    pub attempt_id: uuid::Uuid,
    pub verdict: StepResult,
    pub duration_ms: i64,
}

static END_STEPS: SqlOnce = SqlOnce::new(|dialect| {
    format!(
        "UPDATE pipeline_steps SET outcome = given.value ->> 2, \
         duration_ms = CAST(given.value ->> 3 AS BIGINT), error = given.value ->> 4 FROM {} \
         WHERE pipeline_steps.taxpayer_id = CAST(given.value ->> 0 AS BIGINT) \
         AND pipeline_steps.id = given.value ->> 1",
        dialect.json_elements("$1", "given")
    )
});

/// Logs the outcomes of calls that steps made.
pub async fn end_steps(tx: &Transaction, steps: &[&CompletedStep]) -> Result<(), StoreError> {
    if steps.is_empty() {
        return Ok(());
    }
    let ended = |step: &&CompletedStep| {
        let CompletedStep { taxpayer, attempt_id, verdict, duration_ms } = step;
        json(&(taxpayer.0, attempt_id.to_string(), verdict.as_str(), duration_ms, verdict.error()))
    };
    let list = format!("[{}]", steps.iter().map(ended).collect::<Vec<_>>().join(","));
    let backend = tx.get_database_backend();
    tx.execute_raw(Statement::from_sql_and_values(backend, END_STEPS.get(backend), [list.into()])).await?;
    Ok(())
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
