//! Notices to people about submissions that have stopped and whose deadline is near. There is one notice for each
//! deadline.

use database::column::RowRef;
use database::sql::dialect;
use database::{StoreError, Transaction};
use jiff::{SignedDuration, Timestamp};
use sea_orm::{ConnectionTrait, DbBackend, Statement, Value};

use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::notice::Notice;
use crate::store::Store;
use crate::store::operations::notices;

/// The maximum number of notices that are added in one transaction.
const NOTICES_MAX: i64 = 5_000;

/// Adds a notice for each submission that has stopped and whose deadline is within `before` from now. There is only one
/// notice for each deadline. Returns the number of new notices.
pub async fn add_notices(
    tx: &Transaction,
    now: Timestamp,
    before: SignedDuration,
) -> Result<usize, StoreError> {
    let backend = tx.get_database_backend();
    let columns = "id, taxpayer_id, irn, deadline_at";
    let near = near_deadlines_statement(backend, columns, NOTICES_MAX, now, before);
    let rows = tx.query_all_raw(near).await?;
    let mut told_now = Vec::with_capacity(rows.len());
    for row in &rows {
        let (id, irn): (String, String) = (row.try_get("", "id")?, row.try_get("", "irn")?);
        let deadline: i64 = row.try_get("", "deadline_at")?;
        let at = RowRef {
            table: "pipeline_runs",
            id: id.as_str(),
        };
        let taxpayer = TaxpayerId(row.try_get("", "taxpayer_id")?);
        // The number may contain hyphens; the service id and the date after it contain none.
        let number = irn.rsplitn(3, '-').nth(2).unwrap_or(&irn);
        let notice = Notice::deadline_near(taxpayer, number, at.moment(deadline)?, now);
        told_now.push(notice);
        let told = "INSERT INTO told_deadlines (run_id, deadline_at) VALUES ($1, $2)";
        let values: [Value; 2] = [id.into(), deadline.into()];
        tx.execute_raw(Statement::from_sql_and_values(backend, told, values))
            .await?;
    }
    notices::add(tx, &told_now).await?;
    let passed = "DELETE FROM told_deadlines WHERE deadline_at < $1";
    let values: [Value; 1] = [now.as_microsecond().into()];
    tx.execute_raw(Statement::from_sql_and_values(backend, passed, values))
        .await?;
    Ok(told_now.len())
}

/// Builds the query for the stopped submissions whose near deadline has not been told yet. Runs of cancelled invoices
/// are left out. On SQLite it names the index of stopped runs: SQLite would otherwise read all stored submissions.
fn near_deadlines_statement(
    backend: DbBackend,
    columns: &str,
    limit: i64,
    now: Timestamp,
    before: SignedDuration,
) -> Statement {
    let runs = if dialect(backend).ignores_selectivity() {
        "pipeline_runs INDEXED BY pipeline_runs_by_deadline"
    } else {
        "pipeline_runs"
    };
    let sql = format!(
        "SELECT {columns} FROM {runs} WHERE state IN ('waiting', 'paused', 'refused') AND operation = 'submit' \
         AND deadline_at > $1 AND deadline_at <= $2 \
         AND NOT EXISTS (SELECT 1 FROM told_deadlines WHERE run_id = pipeline_runs.id) \
         AND NOT EXISTS (SELECT 1 FROM invoices WHERE taxpayer_id = pipeline_runs.taxpayer_id \
         AND irn_key = pipeline_runs.irn_key AND status = 'cancelled') LIMIT {limit}"
    );
    let horizon = now.saturating_add(before).unwrap_or(Timestamp::MAX);
    let values = [now, horizon].map(|time| time.as_microsecond().into());
    Statement::from_sql_and_values(backend, sql, values)
}

pub async fn has_near_deadline(
    store: &Store,
    now: Timestamp,
    before: SignedDuration,
) -> Result<bool, StoreError> {
    let near = near_deadlines_statement(store.backend(), "id", 1, now, before);
    Ok(store.reader().query_one_raw(near).await?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{query_plan, stores};

    #[tokio::test]
    async fn near_deadlines_are_found_without_a_look_at_all_submissions() {
        for test in stores().await {
            let backend = test.store.backend();
            let within = SignedDuration::from_hours(6);
            let near = near_deadlines_statement(backend, "id", 1, Timestamp::UNIX_EPOCH, within);
            let values = near.values.map(|values| values.0).unwrap_or_default();
            let plan = query_plan(&test.store, &near.sql, values).await.join("\n");
            // PostgreSQL goes by its statistics, and knows no rows here.
            if backend == DbBackend::Sqlite {
                let index = "pipeline_runs_by_deadline (deadline_at>? AND deadline_at<?)";
                assert!(plan.contains(index), "{plan}");
            }
        }
    }
}
