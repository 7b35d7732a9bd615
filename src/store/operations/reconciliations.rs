//! Reconciliations and their findings. A completed reconciliation replaces the earlier ones of the same taxpayer and
//! day. An earlier one is deleted if the timer started it and it repaired nothing.

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait, Select,
};

use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::reconciliation::day::{
    AskedBy, Finding, FindingAction, Reconciliation, ReconciliationState,
};
use crate::store::db::connections::{Store, Transaction, portions};
use crate::store::db::error::StoreError;
use crate::store::db::page::{self, Page};
use crate::store::operations::reconciliation_finding_row as finding;
use crate::store::operations::reconciliation_row::{Column, Entity, Model};

/// The filter of the list of reconciliations. A field that is `None` does not filter.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReconciliationFilter {
    pub taxpayer_id: Option<TaxpayerId>,
    pub day: Option<Date>,
}

fn in_state(state: ReconciliationState) -> sea_orm::sea_query::Expr {
    Column::State.eq(state.as_str())
}

/// Writes the current state of a reconciliation, new or existing.
pub async fn save(tx: &Transaction, one: &Reconciliation) -> Result<(), StoreError> {
    Entity::insert(Model::from(one).into_active_model())
        .on_conflict(
            OnConflict::columns([Column::TaxpayerId, Column::Id]).update_columns(CHANGING).to_owned(),
        )
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

const CHANGING: [Column; 10] = [
    Column::State,
    Column::Attempts,
    Column::Compared,
    Column::Agreed,
    Column::InProgress,
    Column::Repaired,
    Column::Listed,
    Column::Error,
    Column::StartedAt,
    Column::EndedAt,
];

/// Writes a completed reconciliation with its findings, which replaces the earlier ones of the same taxpayer and day.
pub async fn finish(tx: &Transaction, one: &Reconciliation, findings: &[Finding]) -> Result<(), StoreError> {
    save(tx, one).await?;
    let numbered: Vec<_> =
        (1..).zip(findings).map(|(number, one_of)| finding::Model::of(one, number, one_of)).collect();
    for chunk in portions(&numbered) {
        let rows = chunk.iter().cloned().map(IntoActiveModel::into_active_model);
        finding::Entity::insert_many(rows).exec_without_returning(tx).await?;
    }
    supersede(tx, one).await
}

async fn supersede(tx: &Transaction, one: &Reconciliation) -> Result<(), StoreError> {
    let same_day = || {
        Condition::all()
            .add(Column::TaxpayerId.eq(one.taxpayer_id.0))
            .add(Column::Day.eq(one.day.to_string()))
    };
    Entity::update_many()
        .col_expr(Column::IsLatest, Expr::value(false))
        .filter(same_day())
        .filter(Column::IsLatest.eq(true))
        .exec(tx)
        .await?;
    Entity::update_many()
        .col_expr(Column::IsLatest, Expr::value(true))
        .filter(Column::TaxpayerId.eq(one.taxpayer_id.0))
        .filter(Column::Id.eq(one.id.to_string()))
        .exec(tx)
        .await?;
    let outdated = || {
        let ended = [ReconciliationState::Done, ReconciliationState::Failed].map(ReconciliationState::as_str);
        same_day()
            .add(Column::Id.ne(one.id.to_string()))
            .add(Column::AskedBy.eq(AskedBy::Timer.as_str()))
            .add(Column::State.is_in(ended))
            .add(Column::Repaired.eq(0))
    };
    let ids = Entity::find().select_only().column(Column::Id).filter(outdated()).into_query();
    finding::Entity::delete_many()
        .filter(finding::Column::TaxpayerId.eq(one.taxpayer_id.0))
        .filter(finding::Column::ReconciliationId.in_subquery(ids))
        .exec(tx)
        .await?;
    Entity::delete_many().filter(outdated()).exec(tx).await?;
    Ok(())
}

/// Loads the next reconciliation: the oldest with the fewest attempts. Retries an interrupted one after `rest`.
pub async fn next_open(
    store: &Store,
    now: Timestamp,
    rest: SignedDuration,
) -> Result<Option<Reconciliation>, StoreError> {
    let rested = now.saturating_sub(rest).unwrap_or(Timestamp::MIN).as_microsecond();
    let is_next = Condition::any()
        .add(in_state(ReconciliationState::Queued))
        .add(in_state(ReconciliationState::Running))
        .add(
            Condition::all()
                .add(in_state(ReconciliationState::Interrupted))
                // An interruption in the future was recorded before the clock was set back. It delays nothing.
                .add(
                    Condition::any()
                        .add(Column::EndedAt.lte(rested))
                        .add(Column::EndedAt.gt(now.as_microsecond())),
                ),
        );
    let found = Entity::find().filter(is_next).order_by_asc(Column::Attempts).order_by_asc(Column::Id);
    found.one(store.reader()).await?.map(Reconciliation::try_from).transpose()
}

/// True if any reconciliation is in this state.
pub async fn any_in(
    connection: &impl ConnectionTrait,
    state: ReconciliationState,
) -> Result<bool, StoreError> {
    Ok(Entity::find().filter(in_state(state)).one(connection).await?.is_some())
}

/// Returns when the last completed reconciliation of this taxpayer and day began.
pub async fn last_done(
    store: &Store,
    taxpayer: TaxpayerId,
    day: Date,
) -> Result<Option<Timestamp>, StoreError> {
    let found = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Day.eq(day.to_string()))
        .filter(in_state(ReconciliationState::Done))
        .order_by_desc(Column::StartedAt)
        .one(store.reader())
        .await?;
    Ok(found.map(Reconciliation::try_from).transpose()?.and_then(|one| one.started_at))
}

/// Loads a reconciliation of any taxpayer. Only operators may see it.
pub async fn with_id(store: &Store, id: uuid::Uuid) -> Result<Option<Reconciliation>, StoreError> {
    let found = Entity::find().filter(Column::Id.eq(id.to_string())).one(store.reader()).await?;
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
    page::load(store, found.order_by_desc(Column::Id), page).await
}

fn found_by(one: &Reconciliation) -> Select<finding::Entity> {
    finding::Entity::find()
        .filter(finding::Column::TaxpayerId.eq(one.taxpayer_id.0))
        .filter(finding::Column::ReconciliationId.eq(one.id.to_string()))
}

/// Loads one page of the findings of a reconciliation, ordered by their numbers.
pub async fn findings(store: &Store, one: &Reconciliation, page: Page) -> Result<Vec<Finding>, StoreError> {
    let rows = found_by(one)
        .order_by_asc(finding::Column::Number)
        .offset(page.offset())
        .limit(page.per_page)
        .all(store.reader())
        .await?;
    rows.into_iter().map(Finding::try_from).collect()
}

/// Counts the findings that operators still have to look at, by kind, in each day's latest reconciliation.
pub async fn listed_now(store: &Store) -> Result<Vec<(String, i64)>, StoreError> {
    let latest = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::IsLatest.eq(true))
        .filter(Column::Listed.gt(0))
        .into_query();
    let counted = finding::Entity::find()
        .select_only()
        .column(finding::Column::Kind)
        .column_as(finding::Column::Number.count(), "count")
        .filter(finding::Column::Action.eq(FindingAction::Listed.as_str()))
        .filter(finding::Column::ReconciliationId.in_subquery(latest))
        .group_by(finding::Column::Kind);
    Ok(counted.into_tuple().all(store.reader()).await?)
}

/// Returns when a reconciliation last completed, for any taxpayer and day.
pub async fn last_ended(store: &Store) -> Result<Option<Timestamp>, StoreError> {
    let found = Entity::find()
        .filter(in_state(ReconciliationState::Done))
        .order_by_desc(Column::EndedAt)
        .one(store.reader())
        .await?;
    Ok(found.map(Reconciliation::try_from).transpose()?.and_then(|one| one.ended_at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::clock;
    use crate::domain::reconciliation::FindingKind;
    use crate::domain::reconciliation::day::ReconciliationCounts;
    use crate::store::testing::stores;

    const DAY: &str = "2026-01-15";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn asked(by: AskedBy, second: i64) -> Reconciliation {
        Reconciliation::asked(clock::new_id(), TaxpayerId(7), DAY.parse().unwrap(), by, at(second))
    }

    fn finding(kind: FindingKind, action: FindingAction) -> Finding {
        let irn = "INV001-94AD90FB-20261121".to_owned();
        Finding { kind, irn, local: Some("o".into()), remote: None, action, detail: "d".into() }
    }

    async fn saved(store: &Store, one: Reconciliation) -> Reconciliation {
        let tx = store.begin().await.unwrap();
        save(&tx, &one).await.unwrap();
        tx.commit().await.unwrap();
        one
    }

    async fn finished(store: &Store, one: Reconciliation, second: i64, found: &[Finding]) -> Reconciliation {
        let count = |action| u32::try_from(found.iter().filter(|one| one.action == action).count()).unwrap();
        let counts = ReconciliationCounts {
            listed: count(FindingAction::Listed),
            repaired: count(FindingAction::Repaired),
            ..ReconciliationCounts::default()
        };
        let one = one.begun(at(second)).done(counts, at(second + 1));
        let tx = store.begin().await.unwrap();
        finish(&tx, &one, found).await.unwrap();
        tx.commit().await.unwrap();
        one
    }

    #[tokio::test]
    async fn the_least_attempted_is_next_and_an_interrupted_one_waits() {
        for test in stores().await {
            let (store, rest) = (&test.store, SignedDuration::from_secs(60));
            let next = async |second| next_open(store, at(second), rest).await.unwrap().map(|one| one.id);
            assert_eq!(next(0).await, None);
            let interrupted = asked(AskedBy::Operator, 1).begun(at(1)).broken_off("x".into(), false, at(2));
            let interrupted = saved(store, interrupted).await;
            assert_eq!((next(61).await, next(62).await), (None, Some(interrupted.id)));
            let orphan = saved(store, asked(AskedBy::Timer, 3).begun(at(3))).await;
            assert_eq!(next(5).await, Some(orphan.id), "the replica that ran it has died");
            let queued = saved(store, asked(AskedBy::Operator, 4)).await;
            assert_eq!(next(500).await, Some(queued.id));
            for one in [queued, orphan, interrupted] {
                finished(store, one, 600, &[]).await;
            }
            assert_eq!(next(900).await, None);
            for state in ReconciliationState::ALL {
                let is_done = *state == ReconciliationState::Done;
                assert_eq!(any_in(store.reader(), *state).await.unwrap(), is_done, "{state}");
            }
        }
    }

    #[tokio::test]
    async fn a_later_one_takes_the_place_of_those_before_it() {
        for test in stores().await {
            let store = &test.store;
            let (repaired, listed) = (
                finding(FindingKind::UnfinishedLocally, FindingAction::Repaired),
                finding(FindingKind::MissingRemotely, FindingAction::Listed),
            );
            let plain = finished(store, asked(AskedBy::Timer, 1), 1, std::slice::from_ref(&listed)).await;
            let useful =
                finished(store, asked(AskedBy::Timer, 2), 2, &[repaired.clone(), listed.clone()]).await;
            let asked_for =
                finished(store, asked(AskedBy::Operator, 3), 3, std::slice::from_ref(&listed)).await;
            assert_eq!(listed_now(store).await.unwrap(), [("missing_remotely".to_owned(), 1)]);
            let found = findings(store, &useful, Page { number: 1, per_page: 10 }).await.unwrap();
            assert_eq!(found, [repaired.clone(), listed.clone()]);
            assert_eq!(findings(store, &useful, Page { number: 2, per_page: 1 }).await.unwrap(), [listed]);
            let last = finished(store, asked(AskedBy::Timer, 4), 4, &[]).await;
            assert_eq!(listed_now(store).await.unwrap(), []);
            let all =
                page(store, ReconciliationFilter::default(), Page { number: 1, per_page: 10 }).await.unwrap();
            assert_eq!(all, (vec![last.clone(), asked_for, useful], 3));
            assert_eq!(with_id(store, plain.id).await.unwrap(), None);
            assert_eq!(findings(store, &plain, Page { number: 1, per_page: 10 }).await.unwrap(), []);
            let (day, other) = (last.day, last.day.tomorrow().unwrap());
            assert_eq!(last_done(store, TaxpayerId(7), day).await.unwrap(), Some(at(4)));
            assert_eq!(last_done(store, TaxpayerId(7), other).await.unwrap(), None);
            assert_eq!(last_done(store, TaxpayerId(8), day).await.unwrap(), None);
            assert_eq!(last_ended(store).await.unwrap(), Some(at(5)));
        }
    }

    #[tokio::test]
    async fn the_list_is_narrowed_by_taxpayer_and_day() {
        for test in stores().await {
            let one = saved(&test.store, asked(AskedBy::Operator, 1)).await;
            let count = async |taxpayer_id, day| {
                let filter = ReconciliationFilter { taxpayer_id, day };
                page(&test.store, filter, Page { number: 1, per_page: 10 }).await.unwrap().1
            };
            assert_eq!(count(Some(TaxpayerId(7)), Some(one.day)).await, 1);
            assert_eq!(count(Some(TaxpayerId(8)), None).await, 0);
            assert_eq!(count(None, Some(one.day.tomorrow().unwrap())).await, 0);
        }
    }
}
