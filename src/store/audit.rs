//! The log of what operators did. Rows are added and read; the database itself refuses anything else.

use std::collections::{HashMap, HashSet};

use sea_orm::{
    ColumnTrait, DatabaseTransaction, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect,
};

use crate::domain::audit::{AuditAction, AuditEntry};
use crate::domain::ids::{RunId, TaxpayerId};
use crate::store::database::Store;
use crate::store::entity::audit::{Column, Entity, Model};
use crate::store::entity::operator;
use crate::store::failure::StoreError;

/// Which entries are asked for.
#[derive(Debug, Default)]
pub struct AuditFilter {
    pub taxpayer_id: Option<TaxpayerId>,
    /// The id of a run or a delivery.
    pub subject: Option<String>,
}

pub async fn append(tx: &DatabaseTransaction, entries: &[AuditEntry]) -> Result<(), StoreError> {
    if entries.is_empty() {
        return Ok(());
    }
    let rows = entries.iter().map(|entry| Model::from(entry).into_active_model());
    Entity::insert_many(rows).exec_without_returning(tx).await?;
    Ok(())
}

/// A page of entries, newest first, and how many there are.
pub async fn page(
    store: &Store,
    filter: AuditFilter,
    (page, per_page): (u64, u64),
) -> Result<(Vec<AuditEntry>, u64), StoreError> {
    let mut found = Entity::find();
    if let Some(taxpayer) = filter.taxpayer_id {
        found = found.filter(Column::TaxpayerId.eq(taxpayer.0));
    }
    if let Some(subject) = filter.subject {
        found = found.filter(Column::Subject.eq(subject));
    }
    let total = found.clone().count(store.reader()).await?;
    let rows = found
        .order_by_desc(Column::Id)
        .offset(page.saturating_sub(1).saturating_mul(per_page))
        .limit(per_page)
        .all(store.reader())
        .await?;
    Ok((rows.into_iter().map(AuditEntry::try_from).collect::<Result<_, _>>()?, total))
}

/// Those of these runs that an operator paused, and that none has moved since.
pub async fn held(store: &Store, runs: &[RunId]) -> Result<HashSet<RunId>, StoreError> {
    let mut held = HashSet::new();
    for run in runs {
        let last = Entity::find()
            .filter(Column::Subject.eq(run.to_string()))
            .order_by_desc(Column::Id)
            .one(store.reader())
            .await?;
        let is_pause = last.is_some_and(|entry| entry.action == AuditAction::PauseRun.as_str());
        held.extend(is_pause.then_some(*run));
    }
    Ok(held)
}

/// The emails of these operators, by their ids.
pub async fn operators(store: &Store, ids: Vec<i64>) -> Result<HashMap<i64, String>, StoreError> {
    let rows = operator::Entity::find().filter(operator::Column::Id.is_in(ids)).all(store.reader()).await?;
    Ok(rows.into_iter().map(|row| (row.id, row.email)).collect())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use sea_orm::ConnectionTrait;

    use super::*;
    use crate::domain::clock;
    use crate::store::testing::stores;

    #[actix_rt::test]
    async fn the_audit_takes_entries_and_nothing_else() {
        for test in stores().await {
            let entry = AuditEntry {
                id: clock::new_id(),
                at: Timestamp::UNIX_EPOCH,
                operator_id: 1,
                action: AuditAction::PauseRun,
                taxpayer_id: Some(TaxpayerId(7)),
                subject: "a run".into(),
                from_state: Some("running".into()),
                to_state: Some("paused".into()),
                reason: None,
            };
            let tx = test.store.begin().await.unwrap();
            append(&tx, std::slice::from_ref(&entry)).await.unwrap();
            tx.commit().await.unwrap();
            for forbidden in ["UPDATE audit SET reason = 'another'", "DELETE FROM audit"] {
                let tx = test.store.begin().await.unwrap();
                let error = tx.execute_unprepared(forbidden).await.unwrap_err();
                assert!(error.to_string().contains("the audit is append-only"), "{error}");
            }
            let (found, total) = page(&test.store, AuditFilter::default(), (1, 10)).await.unwrap();
            assert_eq!((found, total), (vec![entry], 1));
            test.store.close().await;
        }
    }
}
