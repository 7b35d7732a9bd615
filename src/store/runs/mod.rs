//! Pipeline runs: the operations on invoices at the authority, such as submissions, each with the steps that it has
//! done.
//!
//! | File | Content |
//! |---|---|
//! | `run_list` | the operators' list of runs, and the selection of runs for an action on many |
//! | `run_row` | the table of pipeline runs |
//! | `step_log` | the log of the calls that runs make to the authority |
//! | `step_row` | the table of the calls that runs make, one row for each attempt at a step |
//! | `unfinished` | counts of the runs that have not ended, by state, reason to wait, and deadline |

pub mod run_list;
pub mod run_row;
pub mod step_log;
pub mod step_row;
pub mod unfinished;

use std::collections::BTreeSet;
use std::ops::Range;

use database::sql::{self, SqlOnce};
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, IntoActiveModel, QueryFilter,
    QueryOrder, QuerySelect, Statement,
};

use crate::domain::kernel::audit::AuditAction;
use crate::domain::kernel::crash::{CRASHES_MAX, PANICS_MAX};
use crate::domain::kernel::ids::{RunId, TaxpayerId};
use crate::domain::pipeline::{Operation, Run, RunState};
use crate::store::Store;
use crate::store::lookup::{LookupColumn, LookupValues, find, lookup_sql};
use crate::store::runs::run_row::{Column, Entity, Model};

pub(crate) static LOOKUP: SqlOnce = SqlOnce::new(|dialect| {
    lookup_sql::<Entity>(dialect, "pipeline_runs", &[LookupColumn::Text("irn_key")])
});

/// Loads, for each taxpayer, its runs for these IRNs, ordered by the time of their last change.
pub async fn find_by_irn_keys(
    connection: &impl ConnectionTrait,
    wanted: impl IntoIterator<Item = (TaxpayerId, Vec<String>)>,
) -> Result<Vec<Run>, StoreError> {
    let mut irn_keys = LookupValues::default();
    for (taxpayer, keys) in wanted {
        irn_keys.extend(taxpayer, keys.into_iter().collect::<BTreeSet<_>>());
    }
    if irn_keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows: Vec<Model> = find(connection, &LOOKUP, [irn_keys.to_json()]).await?;
    rows.sort_by_key(|row| row.updated_at);
    rows.into_iter().map(Run::try_from).collect()
}

/// Loads a taxpayer's runs for these IRNs.
pub async fn find_owned_by_irn_keys(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    irn_keys: Vec<String>,
) -> Result<Vec<Run>, StoreError> {
    find_by_irn_keys(connection, [(taxpayer, irn_keys)]).await
}

pub async fn find_owned_by_id(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    id: RunId,
) -> Result<Option<Run>, StoreError> {
    Entity::find_by_id((taxpayer.0, id.to_string()))
        .one(connection)
        .await?
        .map(Run::try_from)
        .transpose()
}

/// Loads a run of any taxpayer. Use this only for operators, who may see all runs.
pub async fn find_by_id(store: &Store, id: RunId) -> Result<Option<Run>, StoreError> {
    let found = Entity::find()
        .filter(Column::Id.eq(id.to_string()))
        .one(store.reader())
        .await?;
    found.map(Run::try_from).transpose()
}

/// The SQL expression for the trace id in the column `trace`. It must stay word for word that of the indexes of
/// migration m0031; otherwise the databases do not use them.
pub(in crate::store) const TRACE_ID: &str = "substr(trace, 4, 32)";

/// Loads up to `limit` runs that requests of this trace made due, oldest first.
pub async fn find_by_trace_id(
    store: &Store,
    trace_id: &str,
    limit: u64,
) -> Result<Vec<Run>, StoreError> {
    let rows = Entity::find()
        .filter(Column::Trace.is_not_null())
        .filter(ExprTrait::eq(Expr::cust(TRACE_ID), trace_id))
        .order_by_asc(Column::Id)
        .limit(limit)
        .all(store.reader())
        .await?;
    rows.into_iter().map(Run::try_from).collect()
}

/// The condition of runs that have stopped: they wait, are paused or were refused. It must stay word for word that of
/// the partial index `pipeline_runs_stopped_by_deadline`.
const STOPPED_CONDITION: &str = "state IN ('waiting', 'paused', 'refused')";

/// Loads a taxpayer's runs in these states, the earliest deadline first. Each state must be one of `STOPPED_CONDITION`.
pub async fn stopped_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    states: &[RunState],
    limit: u64,
) -> Result<Vec<Run>, StoreError> {
    let mut runs = Vec::new();
    // One query for each state, because the index has the runs of each state in the order of their deadlines.
    for state in states {
        let rows = Entity::find()
            .filter(Column::TaxpayerId.eq(taxpayer.0))
            .filter(Column::State.eq(state.as_str()))
            .filter(Expr::cust(STOPPED_CONDITION))
            .order_by_asc(Column::DeadlineAt)
            .limit(limit)
            .all(store.reader())
            .await?;
        for row in rows {
            runs.push(Run::try_from(row)?);
        }
    }
    runs.sort_by_key(|run| run.deadline_at);
    runs.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(runs)
}

/// The numbers of stopped runs of a taxpayer. Each count stops at a maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoppedCounts {
    pub waiting: u64,
    /// Paused runs, whose invoices are shown as failed.
    pub paused: u64,
    /// The number of those paused runs (`paused`) that an operator has paused.
    pub held: u64,
    /// Submissions that wait and whose deadline is near.
    pub near: u64,
    /// Submissions that wait and whose deadline has passed.
    pub missed: u64,
}

/// The condition that the invoice of a run was not cancelled. A run of a cancelled invoice needs no attention.
const UNCANCELLED_CONDITION: &str = "NOT EXISTS (SELECT 1 FROM invoices WHERE taxpayer_id = pipeline_runs.taxpayer_id \
     AND irn_key = pipeline_runs.irn_key AND status = 'cancelled')";

static STOPPED_COUNTS: SqlOnce = SqlOnce::new(|_| {
    // A relayed payment does not affect the status of its invoice, and only a submission has a legal deadline.
    let paused = format!(
        "state = 'paused' AND operation <> '{}' AND {UNCANCELLED_CONDITION}",
        Operation::Payment
    );
    // The last audit entry about a run says whether an operator has paused it (`audit::find_runs_paused_by_operator`).
    let held = format!(
        "{paused} AND (SELECT action FROM audit WHERE subject = pipeline_runs.id ORDER BY id DESC LIMIT 1) = '{}'",
        AuditAction::PauseRun.as_str()
    );
    let late = format!(
        "state = 'waiting' AND operation = '{}' AND {UNCANCELLED_CONDITION}",
        Operation::Submit
    );
    let near = format!("{late} AND deadline_at >= $4 AND deadline_at < $3");
    let missed = format!("{late} AND deadline_at < $4");
    [
        count_sql("waiting", "state = 'waiting'"),
        count_sql("paused", &paused),
        count_sql("held", &held),
        count_sql("near", &near),
        count_sql("missed", &missed),
    ]
    .join(" UNION ALL ")
});

fn count_sql(name: &str, condition: &str) -> String {
    format!(
        "SELECT '{name}' AS name, (SELECT COUNT(*) FROM (SELECT 1 FROM pipeline_runs \
         WHERE taxpayer_id = $1 AND {condition} AND {STOPPED_CONDITION} LIMIT $2) AS part) AS runs"
    )
}

/// Counts the stopped runs of a taxpayer, up to `max` of each kind. A deadline before the start of `near` is missed,
/// and one before its end is near.
pub async fn count_stopped_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    near: Range<Timestamp>,
    max: u64,
) -> Result<StoppedCounts, StoreError> {
    let backend = store.backend();
    let limit = i64::try_from(max).unwrap_or(i64::MAX);
    let values = [
        taxpayer.0.into(),
        limit.into(),
        near.end.as_microsecond().into(),
        near.start.as_microsecond().into(),
    ];
    let statement = Statement::from_sql_and_values(backend, STOPPED_COUNTS.get(backend), values);
    let mut counts = StoppedCounts::default();
    for row in store.reader().query_all_raw(statement).await? {
        let (name, runs): (String, i64) = (row.try_get("", "name")?, row.try_get("", "runs")?);
        let count = match name.as_str() {
            "waiting" => &mut counts.waiting,
            "paused" => &mut counts.paused,
            "held" => &mut counts.held,
            "missed" => &mut counts.missed,
            _ => &mut counts.near,
        };
        *count = runs.unsigned_abs();
    }
    Ok(counts)
}

/// The condition of runs in quarantine. It must stay word for word that of the partial index
/// `pipeline_runs_quarantined`.
pub(in crate::store) const QUARANTINED_CONDITION: &str =
    "state = 'paused' AND (crashes >= 3 OR panics >= 2)";
const _: () = assert!(
    CRASHES_MAX == 3 && PANICS_MAX == 2,
    "QUARANTINED_CONDITION and the migration say so"
);
/// The condition, in addition to `QUARANTINED_CONDITION`, that the quarantine of a run can be lifted: only crashes
/// caused it, and it was never lifted.
const LIFTABLE_CONDITION: &str = "panics = 0 AND NOT is_lifted";

/// The query for the runs whose quarantine can be lifted. On SQLite it names the index of quarantined runs: SQLite
/// would otherwise read all paused runs.
static LIFTABLE: SqlOnce = SqlOnce::new(|dialect| {
    let index = if dialect.ignores_selectivity() {
        "INDEXED BY pipeline_runs_quarantined"
    } else {
        ""
    };
    format!(
        "SELECT {} FROM pipeline_runs {index} WHERE {QUARANTINED_CONDITION} AND {LIFTABLE_CONDITION} \
         AND updated_at <= $1 ORDER BY updated_at LIMIT $2",
        sql::columns::<Entity>("pipeline_runs")
    )
});

/// Loads up to `limit` runs whose quarantine can be lifted and that have not changed since this time, oldest first.
pub async fn find_with_liftable_quarantine(
    store: &Store,
    since: Timestamp,
    limit: u64,
) -> Result<Vec<Run>, StoreError> {
    let backend = store.backend();
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = [since.as_microsecond().into(), limit.into()];
    let statement = Statement::from_sql_and_values(backend, LIFTABLE.get(backend), values);
    let rows = Model::find_by_statement(statement)
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
            OnConflict::columns([Column::TaxpayerId, Column::Id])
                .update_columns(CHANGING_COLUMNS)
                .to_owned(),
        )
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// The columns that `save` updates. The remaining columns never change after the insert.
const CHANGING_COLUMNS: [run_row::Column; 19] = [
    Column::State,
    Column::Document,
    Column::Differences,
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
    Column::Trace,
    Column::UpdatedAt,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::audit::{Actor, AuditEntry};
    use crate::store::operations::audit;
    use crate::store::testing::{query_plan, stores};

    #[tokio::test]
    async fn runs_to_be_lifted_are_found_without_a_look_at_all_paused_runs() {
        // SQLite only: PostgreSQL's plan depends on the number of runs.
        for test in stores().await.into_iter().take(1) {
            let sql = LIFTABLE.get(test.store.backend());
            let plan = query_plan(&test.store, sql, [0_i64.into(), 1_i64.into()]).await;
            assert!(
                plan.concat()
                    .contains("pipeline_runs_quarantined (updated_at<?)"),
                "{plan:?}"
            );
        }
    }

    #[tokio::test]
    async fn what_a_person_must_do_about_is_counted() {
        for test in stores().await {
            let tx = test.store.begin().await.unwrap();
            let cancelled = "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, \
                 invoice_date, currency, customer, lines, status, payment_status, payable, paid, authority_status, \
                 qr_code, signed, extras, content_digest, created_at, updated_at) VALUES (7, 1, 'no', 'no', 'no', 'B2B', \
                 '380', '2026-01-01', 'NGN', '{}', '[]', 'cancelled', 'PENDING', '1', '0', 'FAILED', '', FALSE, '{}', \
                 '', 1, 1)";
            tx.execute_unprepared(cancelled).await.unwrap();
            for (number, (irn, state, operation, deadline)) in [
                ("a", "waiting", Operation::Submit, 5),
                ("d", "waiting", Operation::Submit, 2),
                ("b", "waiting", Operation::Submit, 50),
                ("a", "waiting", Operation::Transmit, 5),
                ("c", "paused", Operation::Submit, 5),
                ("c", "paused", Operation::Payment, 5),
                ("e", "paused", Operation::Submit, 5),
                ("f", "paused", Operation::Submit, 5),
                ("no", "waiting", Operation::Transmit, 5),
                ("no", "waiting", Operation::Submit, 5),
                ("no", "paused", Operation::Report, 5),
            ]
            .into_iter()
            .enumerate()
            {
                let run = format!(
                    "INSERT INTO pipeline_runs (taxpayer_id, id, operation, irn, irn_key, state, document, digest, \
                     done, attempt, created_at, updated_at, deadline_at) VALUES (7, '{number}', '{operation}', \
                     '{irn}', '{irn}', '{state}', '{{}}', '', '[]', 0, 0, 0, {deadline})"
                );
                tx.execute_unprepared(&run).await.unwrap();
            }
            tx.commit().await.unwrap();
            // The runs of the invoices e and f.
            for (run, actions) in [
                ("6", &[AuditAction::PauseRun][..]),
                ("7", &[AuditAction::PauseRun, AuditAction::ResumeRun]),
            ] {
                let entries: Vec<_> = actions
                    .iter()
                    .map(|&action| {
                        let by = Actor::Operator(1);
                        AuditEntry::new(by, action, &run, Timestamp::UNIX_EPOCH)
                    })
                    .collect();
                audit::record(&test.store, &entries).await.unwrap();
            }
            let at = |microsecond: i64| Timestamp::from_microsecond(microsecond).unwrap();
            let near = at(4)..at(10);
            let counts = count_stopped_owned_by(&test.store, TaxpayerId(7), near, 100).await;
            let expected = StoppedCounts {
                waiting: 6,
                paused: 3,
                held: 1,
                near: 1,
                missed: 1,
            };
            assert_eq!(counts.unwrap(), expected);
            test.store.close().await;
        }
    }
}
