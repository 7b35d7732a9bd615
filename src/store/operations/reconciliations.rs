//! Reconciliations and their findings. A completed reconciliation becomes the latest of its taxpayer and day. Earlier
//! ones of the day that have ended are deleted if the timer started them and they repaired nothing.

use std::collections::HashSet;

use database::page::{self, Page};
use database::sql::dialect;
use database::{StoreError, Transaction, statement_portions};
use jiff::Timestamp;
use jiff::civil::Date;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait, Select, Statement, Value,
};

use crate::domain::incident::CountAndOldest;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::reconciliation::day::{
    self, AskedBy, DayFindings, FindingAction, Reconciliation, ReconciliationState, RecordedFinding,
};
use crate::store::Store;
use crate::store::lanes::LaneKind;
use crate::store::operations::moved_findings;
use crate::store::operations::reconciliation_finding_row as finding;
use crate::store::operations::reconciliation_row::{Column, Entity, IS_LATEST, Model};
use crate::store::operations::work_facts::to_count_and_oldest;

/// The filter of the list of reconciliations. A field that is `None` does not filter.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReconciliationFilter {
    pub taxpayer_id: Option<TaxpayerId>,
    pub day: Option<Date>,
    /// Only the latest reconciliations of their days that have findings on which an operator has to decide.
    pub needs_operator: bool,
}

fn is_in_state(state: ReconciliationState) -> Expr {
    Column::State.eq(state.as_str())
}

/// Returns the condition of the reconciliations of a taxpayer and day that are in this state. The appended empty text
/// keeps SQLite from using the index on the state, in which it would read the reconciliations of all taxpayers.
fn is_in_state_on(taxpayer: TaxpayerId, day: Date, state: ReconciliationState) -> Condition {
    let is_in_state = ExprTrait::eq(Expr::cust("state || ''"), state.as_str());
    is_on_day(taxpayer, day).add(is_in_state)
}

fn is_on_day(taxpayer: TaxpayerId, day: Date) -> Condition {
    Condition::all()
        .add(Column::TaxpayerId.eq(taxpayer.0))
        .add(Column::Day.eq(day.to_string()))
}

/// Writes the current state of a reconciliation, new or existing.
pub async fn save(tx: &Transaction, reconciliation: &Reconciliation) -> Result<(), StoreError> {
    Entity::insert(Model::from(reconciliation).into_active_model())
        .on_conflict(
            OnConflict::columns([Column::TaxpayerId, Column::Id])
                .update_columns(CHANGING_COLUMNS)
                .to_owned(),
        )
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

const CHANGING_COLUMNS: [Column; 11] = [
    Column::State,
    Column::Attempts,
    Column::Compared,
    Column::Agreed,
    Column::InProgress,
    Column::Repaired,
    Column::Listed,
    Column::Decided,
    Column::Error,
    Column::StartedAt,
    Column::EndedAt,
];

/// Writes a completed reconciliation with its findings, as the latest of its taxpayer and day. Takes over operators'
/// decisions from the previous one of the day, and findings from other days (`moved_findings`). Returns the
/// reconciliation with its final counts.
pub async fn finish(
    tx: &Transaction,
    reconciliation: Reconciliation,
    found: DayFindings,
) -> Result<Reconciliation, StoreError> {
    let mut earlier = supersede_previous(tx, &reconciliation).await?;
    earlier.extend(moved_findings::take_over_findings(tx, &reconciliation, &found).await?);
    let recorded = day::assign_finding_numbers(found.findings, &earlier);
    let carried = recorded.iter().filter(|found| found.decision.is_some());
    let reconciliation = reconciliation
        .count_findings_as_decided(u32::try_from(carried.count()).unwrap_or(u32::MAX));
    save(tx, &reconciliation).await?;
    let rows: Vec<_> = recorded
        .into_iter()
        .map(|found| finding::Model::new(&reconciliation, found))
        .collect();
    for chunk in statement_portions(&rows) {
        let rows = chunk
            .iter()
            .cloned()
            .map(IntoActiveModel::into_active_model);
        finding::Entity::insert_many(rows)
            .exec_without_returning(tx)
            .await?;
    }
    Entity::update_many()
        .col_expr(Column::IsLatest, Expr::value(true))
        .filter(Column::TaxpayerId.eq(reconciliation.taxpayer_id.0))
        .filter(Column::Id.eq(reconciliation.id.to_string()))
        .exec(tx)
        .await?;
    delete_outdated_on_day(tx, &reconciliation).await?;
    Ok(reconciliation)
}

fn is_on_same_day(reconciliation: &Reconciliation) -> Condition {
    is_on_day(reconciliation.taxpayer_id, reconciliation.day)
}

/// Marks the previous reconciliation of the day as no longer the latest. Returns its decided findings.
async fn supersede_previous(
    tx: &Transaction,
    reconciliation: &Reconciliation,
) -> Result<Vec<RecordedFinding>, StoreError> {
    let latest = is_on_same_day(reconciliation).add(Expr::cust(IS_LATEST));
    let ids: Vec<String> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(latest.clone())
        .into_tuple()
        .all(tx)
        .await?;
    // This update waits until an operator's decision that is being stored is committed. After the update, a decision
    // fails with `NotLatest`.
    Entity::update_many()
        .col_expr(Column::IsLatest, Expr::value(false))
        .filter(latest)
        .exec(tx)
        .await?;
    let decided = finding::Entity::find()
        .filter(finding::Column::TaxpayerId.eq(reconciliation.taxpayer_id.0))
        .filter(finding::Column::ReconciliationId.is_in(ids))
        .filter(finding::Column::DecidedAt.is_not_null())
        .all(tx)
        .await?;
    decided.into_iter().map(RecordedFinding::try_from).collect()
}

/// Deletes the other reconciliations of this day that the timer started and that failed, so that a day which fails
/// again and again keeps one failure. Failed reconciliations have no findings.
pub async fn delete_earlier_failures(
    tx: &Transaction,
    reconciliation: &Reconciliation,
) -> Result<(), StoreError> {
    let failed = is_in_state_on(
        reconciliation.taxpayer_id,
        reconciliation.day,
        ReconciliationState::Failed,
    )
    .add(Column::Id.ne(reconciliation.id.to_string()))
    .add(Column::AskedBy.eq(AskedBy::Timer.as_str()));
    Entity::delete_many().filter(failed).exec(tx).await?;
    Ok(())
}

/// Deletes the other reconciliations of this day that the timer started, that have ended and that repaired nothing.
async fn delete_outdated_on_day(
    tx: &Transaction,
    reconciliation: &Reconciliation,
) -> Result<(), StoreError> {
    let ended =
        [ReconciliationState::Done, ReconciliationState::Failed].map(ReconciliationState::as_str);
    let outdated = is_on_same_day(reconciliation)
        .add(Column::Id.ne(reconciliation.id.to_string()))
        .add(Column::AskedBy.eq(AskedBy::Timer.as_str()))
        .add(Column::State.is_in(ended))
        .add(Column::Repaired.eq(0));
    let ids = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(outdated.clone())
        .into_query();
    finding::Entity::delete_many()
        .filter(finding::Column::TaxpayerId.eq(reconciliation.taxpayer_id.0))
        .filter(finding::Column::ReconciliationId.in_subquery(ids))
        .exec(tx)
        .await?;
    Entity::delete_many().filter(outdated).exec(tx).await?;
    Ok(())
}

/// Loads the next reconciliation of a taxpayer to process: the one with the fewest attempts, and of these the oldest.
pub async fn next_open(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
) -> Result<Option<Reconciliation>, StoreError> {
    let open = ReconciliationState::ALL
        .iter()
        .filter(|state| state.is_open())
        .map(|state| state.as_str());
    let found = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::State.is_in(open))
        .order_by_asc(Column::Attempts)
        .order_by_asc(Column::Id);
    found
        .one(connection)
        .await?
        .map(Reconciliation::try_from)
        .transpose()
}

/// The key of the lane of the timer. It is also the `next_step` of the lanes that the timer made due.
pub const TIMER: &str = "timer";

/// For each taxpayer with a run that has changed since this time, makes the taxpayer's lane due. A lane that already
/// has a due time or is held is not changed.
pub async fn queue_changed_taxpayers(tx: &Transaction, since: Timestamp) -> Result<(), StoreError> {
    let backend = tx.get_database_backend();
    let now = dialect(backend).clock();
    let sql = format!(
        "INSERT INTO lanes (kind, key, epoch, version, next_step, next_due_at) \
         SELECT $1, CAST(taxpayers.id AS TEXT), 0, 0, $2, {now} FROM taxpayers WHERE EXISTS (SELECT 1 \
         FROM pipeline_runs WHERE pipeline_runs.taxpayer_id = taxpayers.id AND pipeline_runs.updated_at >= $3) \
         ON CONFLICT (kind, key) DO UPDATE SET taxpayer_id = 0, next_step = excluded.next_step, \
         next_due_at = excluded.next_due_at WHERE lanes.next_due_at IS NULL"
    );
    let values: [Value; 3] = [
        LaneKind::Reconciliation.as_str().into(),
        TIMER.into(),
        since.as_microsecond().into(),
    ];
    tx.execute_raw(Statement::from_sql_and_values(backend, sql, values))
        .await?;
    Ok(())
}

/// Returns the start of the last completed reconciliation of this taxpayer and day.
pub async fn last_completed_start(
    store: &Store,
    taxpayer: TaxpayerId,
    day: Date,
) -> Result<Option<Timestamp>, StoreError> {
    let found = Entity::find()
        .filter(is_in_state_on(taxpayer, day, ReconciliationState::Done))
        .order_by_desc(Column::StartedAt)
        .one(store.reader())
        .await?;
    Ok(found
        .map(Reconciliation::try_from)
        .transpose()?
        .and_then(|reconciliation| reconciliation.started_at))
}

/// Loads a reconciliation of any taxpayer. Only operators may see it.
pub async fn find_by_id(
    store: &Store,
    id: uuid::Uuid,
) -> Result<Option<Reconciliation>, StoreError> {
    let found = Entity::find()
        .filter(Column::Id.eq(id.to_string()))
        .one(store.reader())
        .await?;
    found.map(Reconciliation::try_from).transpose()
}

/// Loads one page of reconciliations, newest first, and the number of all that match the filter.
pub async fn page(
    store: &Store,
    filter: ReconciliationFilter,
    page: Page,
) -> Result<(Vec<Reconciliation>, u64), StoreError> {
    let mut found = Entity::find();
    if let Some(taxpayer) = filter.taxpayer_id {
        found = found.filter(Column::TaxpayerId.eq(taxpayer.0));
    }
    if let Some(day) = filter.day {
        found = found.filter(Column::Day.eq(day.to_string()));
    }
    if filter.needs_operator {
        found = found
            .filter(Column::IsLatest.eq(true))
            .filter(Column::Listed.gt(0));
    }
    page::load(store, found.order_by_desc(Column::Id), page).await
}

/// Returns the ids of those reconciliations in `found` whose day was compared again since. Their findings do not count
/// any more.
pub async fn find_superseded(
    store: &Store,
    found: &[Reconciliation],
) -> Result<HashSet<uuid::Uuid>, StoreError> {
    let done = found
        .iter()
        .filter(|reconciliation| reconciliation.state == ReconciliationState::Done);
    let owners = done
        .clone()
        .map(|reconciliation| reconciliation.taxpayer_id.0);
    let latest: Vec<String> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::TaxpayerId.is_in(owners))
        .filter(
            Column::Id.is_in(
                done.clone()
                    .map(|reconciliation| reconciliation.id.to_string()),
            ),
        )
        .filter(Expr::cust(IS_LATEST))
        .into_tuple()
        .all(store.reader())
        .await?;
    let superseded = done.filter(|reconciliation| !latest.contains(&reconciliation.id.to_string()));
    Ok(superseded.map(|reconciliation| reconciliation.id).collect())
}

fn select_findings(reconciliation: &Reconciliation) -> Select<finding::Entity> {
    finding::Entity::find()
        .filter(finding::Column::TaxpayerId.eq(reconciliation.taxpayer_id.0))
        .filter(finding::Column::ReconciliationId.eq(reconciliation.id.to_string()))
}

/// Loads one page of the findings of a reconciliation, ordered by their numbers.
pub async fn findings(
    store: &Store,
    reconciliation: &Reconciliation,
    page: Page,
) -> Result<Vec<RecordedFinding>, StoreError> {
    let rows = select_findings(reconciliation)
        .order_by_asc(finding::Column::Number)
        .offset(page.offset())
        .limit(page.per_page)
        .all(store.reader())
        .await?;
    rows.into_iter().map(RecordedFinding::try_from).collect()
}

/// Counts, by kind, the findings on which operators have to decide. Only the latest reconciliation of each taxpayer and
/// day counts. `since` is the time at which the oldest of these reconciliations ended.
pub async fn count_open_findings_by_kind(
    store: &Store,
) -> Result<Vec<(String, CountAndOldest)>, StoreError> {
    let sql = "SELECT f.kind, COUNT(*) AS count, MIN(r.ended_at) AS since FROM reconciliations r \
               JOIN reconciliation_findings f ON f.taxpayer_id = r.taxpayer_id AND f.reconciliation_id = r.id \
               WHERE r.is_latest = TRUE AND r.listed > 0 AND f.action = $1 AND f.decided_at IS NULL GROUP BY f.kind";
    let values = [FindingAction::Listed.as_str().into()];
    let statement = Statement::from_sql_and_values(store.backend(), sql, values);
    let rows = store.reader().query_all_raw(statement).await?;
    let groups = rows
        .iter()
        .map(|row| Ok((row.try_get("", "kind")?, to_count_and_oldest(row)?)));
    groups.collect()
}

/// Returns the time at which a reconciliation of any taxpayer was last completed.
pub async fn last_completion_time(store: &Store) -> Result<Option<Timestamp>, StoreError> {
    let found = Entity::find()
        .filter(is_in_state(ReconciliationState::Done))
        .order_by_desc(Column::EndedAt)
        .one(store.reader())
        .await?;
    Ok(found
        .map(Reconciliation::try_from)
        .transpose()?
        .and_then(|reconciliation| reconciliation.ended_at))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use timing::clock;

    use super::*;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
    use crate::domain::pipeline::{Operation, Run, RunRequest};
    use crate::domain::reconciliation::day::{Finding, OperatorDecision, ReconciliationCounts};
    use crate::domain::reconciliation::finding_kind::FindingKind;
    use crate::store::lanes::leases::{self, LaneRelease};
    use crate::store::lanes::{self, QueuedLane, views};
    use crate::store::operations::audit;
    use crate::store::operations::finding_decisions::{self, DecisionOutcome};
    use crate::store::runs;
    use crate::store::testing::{claim_due, query_plan, stores};

    const DAY: &str = "2026-01-15";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn new_reconciliation(by: AskedBy, second: i64) -> Reconciliation {
        Reconciliation::new(
            clock::new_id(),
            TaxpayerId(7),
            DAY.parse().unwrap(),
            by,
            at(second),
        )
    }

    fn finding(kind: FindingKind, action: FindingAction) -> Finding {
        let irn = "INV001-94AD90FB-20261121".to_owned();
        Finding {
            kind,
            irn,
            local: Some("o".into()),
            remote: None,
            action,
            detail: "d".into(),
        }
    }

    async fn save_and_commit(store: &Store, one: Reconciliation) -> Reconciliation {
        let tx = store.begin().await.unwrap();
        save(&tx, &one).await.unwrap();
        tx.commit().await.unwrap();
        one
    }

    async fn finish_and_commit(
        store: &Store,
        one: Reconciliation,
        second: i64,
        found: &[Finding],
    ) -> Reconciliation {
        let count = |action| {
            u32::try_from(found.iter().filter(|one| one.action == action).count()).unwrap()
        };
        let counts = ReconciliationCounts {
            listed: count(FindingAction::Listed),
            repaired: count(FindingAction::Repaired),
            ..ReconciliationCounts::default()
        };
        let one = one.begin(at(second)).finish(counts, at(second + 1));
        let found = DayFindings {
            findings: found.to_vec(),
            ..DayFindings::default()
        };
        let tx = store.begin().await.unwrap();
        let one = finish(&tx, one, found).await.unwrap();
        tx.commit().await.unwrap();
        one
    }

    #[tokio::test]
    async fn the_least_attempted_of_a_taxpayer_is_next() {
        for test in stores().await {
            let store = &test.store;
            let next = async || {
                next_open(store.reader(), TaxpayerId(7))
                    .await
                    .unwrap()
                    .map(|one| one.id)
            };
            assert_eq!(next().await, None);
            let interrupted = new_reconciliation(AskedBy::Operator, 1)
                .begin(at(1))
                .record_failure("x".into(), false, at(2));
            let interrupted = save_and_commit(store, interrupted).await;
            assert_eq!(next().await, Some(interrupted.id));
            let queued = save_and_commit(store, new_reconciliation(AskedBy::Operator, 4)).await;
            let other = Reconciliation {
                taxpayer_id: TaxpayerId(6),
                ..new_reconciliation(AskedBy::Operator, 0)
            };
            save_and_commit(store, other).await;
            assert_eq!(next().await, Some(queued.id));
            finish_and_commit(store, queued, 600, &[]).await;
            let orphan =
                save_and_commit(store, new_reconciliation(AskedBy::Timer, 3).begin(at(3))).await;
            assert_eq!(next().await, Some(interrupted.id), "the older one");
            finish_and_commit(store, interrupted, 600, &[]).await;
            assert_eq!(
                next().await,
                Some(orphan.id),
                "the process that ran it has died"
            );
            finish_and_commit(store, orphan, 600, &[]).await;
            assert_eq!(next().await, None);
        }
    }

    #[tokio::test]
    async fn a_day_is_read_without_a_look_at_other_taxpayers() {
        // SQLite only: PostgreSQL's plan depends on the number of reconciliations.
        for test in stores().await.into_iter().take(1) {
            let one = new_reconciliation(AskedBy::Timer, 1);
            for condition in [
                is_on_same_day(&one).add(Expr::cust(IS_LATEST)),
                is_in_state_on(one.taxpayer_id, one.day, ReconciliationState::Done),
                is_in_state_on(one.taxpayer_id, one.day, ReconciliationState::Failed),
            ] {
                let query = Entity::find().filter(condition).build(test.store.backend());
                let values = query.values.map(|values| values.0).unwrap_or_default();
                let plan = query_plan(&test.store, &query.sql, values).await;
                let index = "reconciliations_by_taxpayer_id_day_id (taxpayer_id=? AND day=?)";
                assert!(plan.concat().contains(index), "{plan:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_day_that_fails_again_and_again_keeps_one_failure_of_the_timer() {
        for test in stores().await {
            let store = &test.store;
            let failed = |by, second| {
                let began = new_reconciliation(by, second).begin(at(second));
                began.record_failure("x".into(), true, at(second + 1))
            };
            let done = new_reconciliation(AskedBy::Timer, 1);
            let done = finish_and_commit(store, done, 1, &[]).await;
            let asked = save_and_commit(store, failed(AskedBy::Operator, 10)).await;
            let other = Reconciliation {
                taxpayer_id: TaxpayerId(6),
                ..failed(AskedBy::Timer, 11)
            };
            let other = save_and_commit(store, other).await;
            let mut last = asked.clone();
            for second in [20, 30, 40] {
                last = save_and_commit(store, failed(AskedBy::Timer, second)).await;
                let tx = store.begin().await.unwrap();
                delete_earlier_failures(&tx, &last).await.unwrap();
                tx.commit().await.unwrap();
            }
            let all = page(store, ReconciliationFilter::default(), first_page()).await;
            let mut left: Vec<_> = all.unwrap().0.into_iter().map(|one| one.id).collect();
            let mut expected = vec![done.id, asked.id, other.id, last.id];
            left.sort();
            expected.sort();
            assert_eq!(left, expected);
        }
    }

    #[tokio::test]
    async fn the_timer_makes_the_idle_lanes_of_changed_taxpayers_due() {
        for test in stores().await {
            let store = &test.store;
            let tx = store.begin().await.unwrap();
            for id in 6..=9 {
                let sql = format!(
                    "INSERT INTO taxpayers (id, integrator_id, name, email, email_key, tin, tin_normal, \
                     service_id, service_id_key, business_id, business_id_key, address, subscription, created_at, \
                     updated_at) VALUES ({id}, 1, 'n', 'e{id}', 'e{id}', 't{id}', 't{id}', 's{id}', 's{id}', \
                     'b{id}', 'b{id}', '', 'active', 0, 0)"
                );
                tx.execute_unprepared(&sql).await.unwrap();
            }
            let irn = Irn::parse("INV001-94AD90FB-20261121").unwrap();
            let run = |id, second| {
                let request = RunRequest::sample(irn.as_str(), Operation::Submit);
                Run::new(clock::new_id(), TaxpayerId(id), request, at(second))
            };
            runs::save(&tx, &[&run(6, 99), &run(7, 100), &run(8, 200)])
                .await
                .unwrap();
            let requested = QueuedLane {
                key: "8".into(),
                taxpayer_id: 8,
                deadline: 0,
                next_step: None,
            };
            lanes::enqueue(&tx, LaneKind::Reconciliation, &[requested])
                .await
                .unwrap();
            queue_changed_taxpayers(&tx, at(100)).await.unwrap();
            tx.commit().await.unwrap();
            let due = views::due_groups(store, LaneKind::Reconciliation)
                .await
                .unwrap();
            let due = views::sum_by_taxpayer(&due);
            assert_eq!(due, [(0, 1), (8, 1)].into(), "the request stays one");
            let kind = LaneKind::Reconciliation;
            let leases = claim_due(store, kind, "me", Duration::from_secs(30), 9)
                .await
                .unwrap();
            let tx = store.begin().await.unwrap();
            for lease in &leases {
                leases::release(&tx, &[LaneRelease::new(lease, None)])
                    .await
                    .unwrap();
            }
            queue_changed_taxpayers(&tx, at(100)).await.unwrap();
            tx.commit().await.unwrap();
            let due = views::due_groups(store, LaneKind::Reconciliation)
                .await
                .unwrap();
            let due = views::sum_by_taxpayer(&due);
            assert_eq!(due, [(0, 2)].into());
        }
    }

    #[tokio::test]
    async fn a_later_one_takes_the_place_of_those_before_it() {
        for test in stores().await {
            let store = &test.store;
            let repaired = finding(FindingKind::UnfinishedLocally, FindingAction::Repaired);
            let listed = finding(FindingKind::MissingRemotely, FindingAction::Listed);
            let plain = finish_and_commit(
                store,
                new_reconciliation(AskedBy::Timer, 1),
                1,
                std::slice::from_ref(&listed),
            )
            .await;
            let useful = finish_and_commit(
                store,
                new_reconciliation(AskedBy::Timer, 2),
                2,
                &[repaired.clone(), listed.clone()],
            )
            .await;
            let asked_for = finish_and_commit(
                store,
                new_reconciliation(AskedBy::Operator, 3),
                3,
                std::slice::from_ref(&listed),
            )
            .await;
            // The one that an operator asked for ended a second after it began; those before it do not count.
            let oldest = CountAndOldest {
                count: 1,
                since: Some(at(4)),
            };
            assert_eq!(
                count_open_findings_by_kind(store).await.unwrap(),
                [("missing_remotely".to_owned(), oldest)]
            );
            let found = findings(store, &useful, first_page()).await.unwrap();
            let found: Vec<_> = found
                .into_iter()
                .map(|one| (one.number, one.finding))
                .collect();
            assert_eq!(found, [(1, repaired.clone()), (2, listed.clone())]);
            let second = Page {
                number: 2,
                per_page: 1,
            };
            let found = findings(store, &useful, second).await.unwrap();
            assert_eq!(found[0].finding, listed);
            let last =
                finish_and_commit(store, new_reconciliation(AskedBy::Timer, 4), 4, &[]).await;
            assert_eq!(count_open_findings_by_kind(store).await.unwrap(), []);
            let all = page(store, ReconciliationFilter::default(), first_page())
                .await
                .unwrap();
            assert_eq!(all, (vec![last.clone(), asked_for, useful], 3));
            assert_eq!(find_by_id(store, plain.id).await.unwrap(), None);
            assert_eq!(findings(store, &plain, first_page()).await.unwrap(), []);
            let day = last.day;
            let other = last.day.tomorrow().unwrap();
            assert_eq!(
                last_completed_start(store, TaxpayerId(7), day)
                    .await
                    .unwrap(),
                Some(at(4))
            );
            assert_eq!(
                last_completed_start(store, TaxpayerId(7), other)
                    .await
                    .unwrap(),
                None
            );
            assert_eq!(
                last_completed_start(store, TaxpayerId(8), day)
                    .await
                    .unwrap(),
                None
            );
            assert_eq!(last_completion_time(store).await.unwrap(), Some(at(5)));
        }
    }

    #[tokio::test]
    async fn only_the_latest_comparison_of_a_day_counts() {
        for test in stores().await {
            let store = &test.store;
            let begun = |taxpayer, second| Reconciliation {
                taxpayer_id: TaxpayerId(taxpayer),
                ..new_reconciliation(AskedBy::Operator, second)
            };
            let listed = [finding(FindingKind::MissingRemotely, FindingAction::Listed)];
            let first = finish_and_commit(store, begun(7, 1), 1, &listed).await;
            let other = finish_and_commit(store, begun(8, 2), 2, &listed).await;
            let queued = save_and_commit(store, begun(7, 3)).await;
            let mut all = vec![first.clone(), other, queued];
            let superseded = find_superseded(store, &all).await.unwrap();
            assert!(superseded.is_empty(), "{superseded:?}");
            all.push(finish_and_commit(store, begun(7, 4), 4, &listed).await);
            let superseded = find_superseded(store, &all).await.unwrap();
            assert_eq!(superseded, HashSet::from([first.id]));
            assert!(find_superseded(store, &[]).await.unwrap().is_empty());
        }
    }

    #[tokio::test]
    async fn the_list_is_narrowed_by_taxpayer_and_day() {
        for test in stores().await {
            let one = save_and_commit(&test.store, new_reconciliation(AskedBy::Operator, 1)).await;
            let count_in = async |filter| page(&test.store, filter, first_page()).await.unwrap().1;
            let count = async |taxpayer_id, day| {
                count_in(ReconciliationFilter {
                    taxpayer_id,
                    day,
                    needs_operator: false,
                })
                .await
            };
            let for_operator = || {
                count_in(ReconciliationFilter {
                    needs_operator: true,
                    ..ReconciliationFilter::default()
                })
            };
            assert_eq!(for_operator().await, 0, "nothing was found yet");
            let mut differs = one.clone();
            differs.counts.listed = 1;
            let tx = test.store.begin().await.unwrap();
            finish(&tx, differs, DayFindings::default()).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(for_operator().await, 1);
            assert_eq!(count(Some(TaxpayerId(7)), Some(one.day)).await, 1);
            assert_eq!(count(Some(TaxpayerId(8)), None).await, 0);
            assert_eq!(count(None, Some(one.day.tomorrow().unwrap())).await, 0);
        }
    }

    fn first_page() -> Page {
        Page {
            number: 1,
            per_page: 10,
        }
    }

    fn decision(second: i64) -> OperatorDecision {
        OperatorDecision {
            operator_id: 5,
            reason: format!("a letter of second {second}"),
            decided_at: at(second),
        }
    }

    async fn decide_first(
        store: &Store,
        one: &Reconciliation,
        decision: Option<&OperatorDecision>,
    ) -> DecisionOutcome {
        let entry = AuditEntry::new(
            Actor::Operator(5),
            AuditAction::DecideFindings,
            &one.id,
            at(9),
        );
        finding_decisions::decide(store, one, &[1], decision, entry)
            .await
            .unwrap()
    }

    async fn decided(store: &Store, one: &Reconciliation) -> Vec<Option<String>> {
        let found = findings(store, one, first_page()).await.unwrap();
        let reasons = found
            .into_iter()
            .map(|one| one.decision.map(|decision| decision.reason));
        reasons.collect()
    }

    /// A later comparison keeps the decision exactly as long as it finds the same.
    #[tokio::test]
    async fn a_decision_lasts_as_long_as_the_difference_is_the_same() {
        type Change = fn(&mut Finding);
        let listed = finding(FindingKind::MissingRemotely, FindingAction::Listed);
        let cases: [(Change, bool); 7] = [
            (|_| {}, true),
            (|found| found.detail = "said otherwise".into(), true),
            (|found| found.kind = FindingKind::PaymentDiffers, false),
            (|found| found.irn = "INV002-94AD90FB-20261121".into(), false),
            (|found| found.local = Some("p".into()), false),
            (|found| found.remote = Some("r".into()), false),
            (|found| found.action = FindingAction::Repaired, false),
        ];
        for test in stores().await {
            let store = &test.store;
            for (taxpayer, (change, stays)) in (100..).zip(cases) {
                let begun = |by, second| Reconciliation {
                    taxpayer_id: TaxpayerId(taxpayer),
                    ..new_reconciliation(by, second)
                };
                let found = [listed.clone()];
                let first = finish_and_commit(store, begun(AskedBy::Timer, 1), 1, &found).await;
                let word = decision(2);
                assert_eq!(
                    decide_first(store, &first, Some(&word)).await,
                    DecisionOutcome::Changed(1)
                );
                let mut later = listed.clone();
                change(&mut later);
                let second = finish_and_commit(
                    store,
                    begun(AskedBy::Timer, 3),
                    3,
                    std::slice::from_ref(&later),
                )
                .await;
                let expected = stays.then(|| word.reason.clone());
                assert_eq!(decided(store, &second).await, [expected], "{later:?}");
                let is_listed = later.action == FindingAction::Listed && !stays;
                assert_eq!(second.counts.listed, u32::from(is_listed), "{later:?}");
                assert_eq!(second.counts.decided, u32::from(stays), "{later:?}");
                assert_eq!(find_by_id(store, second.id).await.unwrap(), Some(second));
            }
        }
    }

    #[tokio::test]
    async fn what_is_decided_is_not_counted_until_it_is_opened_again() {
        for test in stores().await {
            let store = &test.store;
            let listed = finding(FindingKind::MissingRemotely, FindingAction::Listed);
            let repaired = finding(FindingKind::UnfinishedLocally, FindingAction::Repaired);
            let found = [listed.clone(), listed, repaired];
            let one = new_reconciliation(AskedBy::Operator, 1);
            let queued = save_and_commit(store, one.clone()).await;
            assert_eq!(
                decide_first(store, &queued, Some(&decision(1))).await,
                DecisionOutcome::NotLatest,
                "it is not compared yet"
            );
            let one = finish_and_commit(store, one, 1, &found).await;
            let counts = async || {
                let open = count_open_findings_by_kind(store).await.unwrap();
                let one = find_by_id(store, one.id).await.unwrap().unwrap().counts;
                let open: u64 = open.iter().map(|(_, group)| group.count).sum();
                (open, one.listed, one.decided)
            };
            assert_eq!(counts().await, (2, 2, 0));
            for (word, expected) in [(2, 1), (2, 0), (3, 1)] {
                let outcome = decide_first(store, &one, Some(&decision(word))).await;
                assert_eq!(outcome, DecisionOutcome::Changed(expected));
                assert_eq!(counts().await, (1, 1, 1));
            }
            for (numbers, expected) in [
                (&[2, 3][..], DecisionOutcome::NotListed),
                (&[4], DecisionOutcome::NotListed),
                (&[2, 2, 1], DecisionOutcome::Changed(1)),
            ] {
                let entry = AuditEntry::new(
                    Actor::Operator(5),
                    AuditAction::DecideFindings,
                    &one.id,
                    at(9),
                );
                let outcome =
                    finding_decisions::decide(store, &one, numbers, Some(&decision(3)), entry)
                        .await;
                assert_eq!(outcome.unwrap(), expected, "{numbers:?}");
            }
            assert_eq!(counts().await, (0, 0, 2));
            assert_eq!(
                decide_first(store, &one, None).await,
                DecisionOutcome::Changed(1)
            );
            assert_eq!(counts().await, (1, 1, 1));
            finish_and_commit(store, new_reconciliation(AskedBy::Timer, 4), 4, &[]).await;
            assert_eq!(
                decide_first(store, &one, Some(&decision(5))).await,
                DecisionOutcome::NotLatest,
                "a later one is there"
            );
            let filter = audit::AuditFilter {
                subject: Some(one.id.to_string()),
                ..audit::AuditFilter::default()
            };
            let (entries, _) = audit::page(store, filter, first_page()).await.unwrap();
            let told: Vec<_> = entries
                .iter()
                .filter_map(|entry| entry.to_state.as_deref())
                .collect();
            let irn = "INV001-94AD90FB-20261121";
            let line = |word: &str| format!("{word}: missing_remotely {irn}");
            let expected = ["listed", "decided", "decided", "decided"].map(line);
            assert_eq!(told, expected, "only what changed something, newest first");
        }
    }
}
