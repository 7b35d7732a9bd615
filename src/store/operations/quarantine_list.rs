//! The operators' list of everything in quarantine. Commands have a table of their own. Runs, deliveries and tasks
//! (other work of lanes) are read from their own tables, so that there is no second copy of their state.

use std::collections::HashMap;
use std::fmt::Write;

use database::StoreError;
use database::column::RowRef;
use database::page::Page;
use database::sql::dialect;
use jiff::Timestamp;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, Statement, Value,
};

use crate::domain::incident::CountAndOldest;
use crate::domain::kernel::crash::CRASHES_MAX;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::RunState;
use crate::domain::quarantine::{QuarantineState, QuarantinedCommand, QuarantinedWork, WorkKind};
use crate::store::Store;
use crate::store::lanes::LaneKind;
use crate::store::operations::quarantine_row;
use crate::store::operations::work_facts::to_count_and_oldest;
use crate::store::runs::{self, run_list};
use crate::store::webhooks::{crashed_deliveries, delivery_row};

/// The kinds of lanes whose key is a taxpayer id, although their column `taxpayer_id` may be 0.
const TAXPAYER_LANE_KINDS: [LaneKind; 2] = [LaneKind::Reconciliation, LaneKind::Verification];

/// The filter of the list. A field that is `None` does not filter.
#[derive(Debug, Clone, Default)]
pub struct QuarantineFilter {
    pub kind: Option<WorkKind>,
    pub state: Option<QuarantineState>,
    pub taxpayer_id: Option<TaxpayerId>,
    pub name: Option<String>,
    /// Only work with one of these references; `None` for all.
    pub references: Option<Vec<String>>,
}

/// Returns everything in quarantine as an SQL table expression. A run or a delivery counts its crashes in its own row.
/// The row of a lane, with which a process claims work of any kind, counts the crashes of work that has no such row,
/// and those that could not be added to a run or a delivery. A lane with too many crashes is listed as a task.
fn quarantined_work_sql(backend: DbBackend) -> String {
    let kinds = LaneKind::ALL
        .map(|kind| format!("'{}'", kind.as_str()))
        .join(", ");
    let index = if dialect(backend).ignores_selectivity() {
        "INDEXED BY pipeline_runs_quarantined"
    } else {
        ""
    };
    let run = runs::QUARANTINED_CONDITION;
    let delivery = crashed_deliveries::QUARANTINED_CONDITION;
    format!(
        "(SELECT 'command' AS kind, reference AS id, taxpayer_id, at, state, command AS name, 0 AS crashes \
         FROM quarantine \
         UNION ALL SELECT 'run', id, taxpayer_id, updated_at, 'kept', operation, crashes FROM pipeline_runs {index} \
         WHERE {run} \
         UNION ALL SELECT 'delivery', id, COALESCE(owner_id, taxpayer_id), updated_at, 'kept', kind, crashes FROM deliveries \
         WHERE {delivery} \
         UNION ALL SELECT 'task', kind || '/' || key, taxpayer_id, next_due_at, 'kept', kind, crashes FROM lanes \
         WHERE kind IN ({kinds}) AND next_due_at IS NOT NULL AND crashes >= {CRASHES_MAX}) AS work"
    )
}

impl QuarantineFilter {
    /// Returns the `WHERE` clause and the values of its parameters.
    fn condition(&self) -> (String, Vec<Value>) {
        let mut values: Vec<Value> = Vec::new();
        let mut sql = String::from(" WHERE TRUE");
        let mut add = |column: &str, value: Option<Value>| {
            if let Some(value) = value {
                values.push(value);
                let _ = write!(sql, " AND {column} = ${}", values.len());
            }
        };
        add("kind", self.kind.map(|kind| kind.as_str().into()));
        add("state", self.state.map(|state| state.as_str().into()));
        add("name", self.name.as_deref().map(Into::into));
        if let Some(references) = &self.references {
            let mut places = Vec::new();
            for reference in references {
                values.push(reference.as_str().into());
                places.push(format!("${}", values.len()));
            }
            let is_wanted = match places.join(", ") {
                places if places.is_empty() => "FALSE".to_owned(),
                places => format!("id IN ({places})"),
            };
            let _ = write!(sql, " AND {is_wanted}");
        }
        if let Some(TaxpayerId(taxpayer)) = self.taxpayer_id {
            let tasks = TAXPAYER_LANE_KINDS
                .map(|kind| format!("'{}/{taxpayer}'", kind.as_str()))
                .join(", ");
            let _ = write!(
                sql,
                " AND (taxpayer_id = {taxpayer} OR (kind = 'task' AND id IN ({tasks})))"
            );
        }
        (sql, values)
    }
}

/// Counts the work in quarantine by kind, without commands that were replayed or dropped.
pub async fn count_by_kind(store: &Store) -> Result<Vec<(WorkKind, CountAndOldest)>, StoreError> {
    let sql = format!(
        "SELECT kind, COUNT(*) AS count, MIN(at) AS since FROM {} WHERE state = 'kept' GROUP BY kind",
        quarantined_work_sql(store.backend())
    );
    let rows = store
        .reader()
        .query_all_raw(Statement::from_string(store.backend(), sql))
        .await?;
    let mut counts: HashMap<String, CountAndOldest> = HashMap::new();
    for row in rows {
        counts.insert(row.try_get("", "kind")?, to_count_and_oldest(&row)?);
    }
    Ok(WorkKind::ALL
        .iter()
        .map(|kind| (*kind, counts.remove(kind.as_str()).unwrap_or_default()))
        .collect())
}

/// Loads one page of the matching work, newest first, and the number of all matches.
pub async fn page(
    store: &Store,
    filter: &QuarantineFilter,
    page: Page,
) -> Result<(Vec<QuarantinedWork>, u64), StoreError> {
    let table = quarantined_work_sql(store.backend());
    let (condition, values) = filter.condition();
    let query = |sql: String| Statement::from_sql_and_values(store.backend(), sql, values.clone());
    let count = query(format!("SELECT COUNT(*) AS work FROM {table}{condition}"));
    let counted = store.reader().query_one_raw(count).await?;
    let total: i64 = counted
        .map(|row| row.try_get("", "work"))
        .transpose()?
        .unwrap_or(0);
    let rows = query(format!(
        "SELECT kind, id, taxpayer_id, at, name, crashes FROM {table}{condition} ORDER BY at DESC, id DESC \
         LIMIT {} OFFSET {}",
        page.per_page,
        page.offset()
    ));
    let mut found = Vec::new();
    for row in store.reader().query_all_raw(rows).await? {
        let kind: String = row.try_get("", "kind")?;
        let at = RowRef::<String> {
            table: "quarantine",
            id: row.try_get("", "id")?,
        };
        let kind = at.parse(&kind)?;
        found.push(QuarantinedWorkRow {
            kind,
            taxpayer: row
                .try_get::<Option<i64>>("", "taxpayer_id")?
                .filter(|id| *id > 0)
                .or_else(|| parse_task_taxpayer_id(&at.id))
                .map(TaxpayerId),
            at: at.moment(row.try_get("", "at")?)?,
            name: row.try_get("", "name")?,
            crashes: at.to_count(row.try_get("", "crashes")?)?,
            id: at.id,
        });
    }
    Ok((
        load_quarantined(store, found).await?,
        u64::try_from(total).unwrap_or(0),
    ))
}

/// A row of the list before its command, run or delivery is loaded.
struct QuarantinedWorkRow {
    kind: WorkKind,
    id: String,
    taxpayer: Option<TaxpayerId>,
    at: Timestamp,
    name: String,
    crashes: u32,
}

/// Returns the taxpayer id in the id of a task (`<kind of lane>/<key of the lane>`); `None` if the keys of such lanes
/// are no taxpayer ids.
fn parse_task_taxpayer_id(id: &str) -> Option<i64> {
    let (kind, key) = id.split_once('/')?;
    TAXPAYER_LANE_KINDS
        .iter()
        .find(|one| one.as_str() == kind)?;
    key.parse().ok()
}

/// Loads the work to which the rows refer, in the order of the rows. Work that has left the quarantine meanwhile is
/// left out.
async fn load_quarantined(
    store: &Store,
    found: Vec<QuarantinedWorkRow>,
) -> Result<Vec<QuarantinedWork>, StoreError> {
    let ids = |kind| {
        found
            .iter()
            .filter(move |one| one.kind == kind)
            .map(|one| one.id.clone())
    };
    let mut loaded: HashMap<(WorkKind, String), QuarantinedWork> = HashMap::new();
    let mut keep =
        |work: QuarantinedWork| drop(loaded.insert((work.kind, work.reference.clone()), work));
    let commands = quarantine_row::Column::Reference.is_in(ids(WorkKind::Command));
    for row in quarantine_row::Entity::find()
        .filter(commands)
        .all(store.reader())
        .await?
    {
        keep(QuarantinedCommand::try_from(row)?.into());
    }
    let runs: Vec<_> = ids(WorkKind::Run)
        .filter_map(|id| id.parse().ok())
        .collect();
    for run in run_list::find_by_ids(store, &runs).await? {
        if run.state() == RunState::Paused && run.is_quarantined() {
            keep(run.into());
        }
    }
    let deliveries = delivery_row::Column::Id.is_in(ids(WorkKind::Delivery));
    let deliveries = delivery_row::Entity::find()
        .filter(deliveries)
        .filter(Expr::cust(crashed_deliveries::QUARANTINED_CONDITION))
        .all(store.reader())
        .await?;
    for row in deliveries {
        let at = RowRef {
            table: "deliveries",
            id: row.id.clone(),
        };
        let kind = at.parse(&row.kind)?;
        let updated_at = at.moment(row.updated_at)?;
        keep(QuarantinedWork::from_delivery(
            row.try_into()?,
            kind,
            updated_at,
        ));
    }
    for task in found.iter().filter(|one| one.kind == WorkKind::Task) {
        keep(QuarantinedWork::for_task(
            task.id.clone(),
            task.name.clone(),
            task.taxpayer,
            task.at,
            task.crashes,
        ));
    }
    Ok(found
        .into_iter()
        .filter_map(|one| loaded.remove(&(one.kind, one.id)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{query_plan, stores};

    #[tokio::test]
    async fn the_few_in_quarantine_are_found_without_reading_all_runs_and_dead_letters() {
        for test in stores().await {
            let sql = format!(
                "SELECT kind, id FROM {} ORDER BY at DESC",
                quarantined_work_sql(test.store.backend())
            );
            let values: [Value; 0] = [];
            let steps = query_plan(&test.store, &sql, values).await;
            for index in ["pipeline_runs_quarantined", "deliveries_quarantined"] {
                assert!(
                    steps.iter().any(|step| step.contains(index)),
                    "{index}: {steps:#?}"
                );
            }
            test.store.close().await;
        }
    }
}
