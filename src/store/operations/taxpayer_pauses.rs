//! The taxpayers that operators have paused. Every replica reads the list at its start and then every second.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::OnConflict;
use sea_orm::{IntoActiveModel, QueryOrder};

use crate::domain::kernel::audit::AuditEntry;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::taxpayer_pause::TaxpayerPause;
use crate::store::Store;
use crate::store::operations::audit;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "taxpayer_pauses")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    pub since: i64,
    pub reason: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Pauses a taxpayer, and records this in the audit. If the taxpayer is paused already, the start of the pause stays
/// and the reason is replaced. Returns false if the taxpayer was already paused for this reason.
pub async fn pause(
    store: &Store,
    pause: TaxpayerPause,
    entry: AuditEntry,
) -> Result<bool, StoreError> {
    let row = Model {
        taxpayer_id: pause.taxpayer_id.0,
        since: pause.since.as_microsecond(),
        reason: pause.reason,
    };
    let tx = store.begin().await?;
    let before = Entity::find_by_id(row.taxpayer_id).one(&tx).await?;
    if before.is_some_and(|before| before.reason == row.reason) {
        return Ok(false);
    }
    Entity::insert(row.into_active_model())
        .on_conflict(
            OnConflict::column(Column::TaxpayerId)
                .update_column(Column::Reason)
                .to_owned(),
        )
        .exec_without_returning(&tx)
        .await?;
    audit::append(&tx, &[entry]).await?;
    tx.commit().await.map(|()| true)
}

/// Ends the pause of a taxpayer, and records this in the audit. Returns false if the taxpayer was not paused.
pub async fn resume(
    store: &Store,
    taxpayer: TaxpayerId,
    entry: AuditEntry,
) -> Result<bool, StoreError> {
    let tx = store.begin().await?;
    let deleted = Entity::delete_by_id(taxpayer.0).exec(&tx).await?;
    if deleted.rows_affected == 0 {
        return Ok(false);
    }
    audit::append(&tx, &[entry]).await?;
    tx.commit().await.map(|()| true)
}

/// Loads the paused taxpayers, the longest paused first.
pub async fn list(store: &Store) -> Result<Vec<TaxpayerPause>, StoreError> {
    let rows = Entity::find()
        .order_by_asc(Column::Since)
        .order_by_asc(Column::TaxpayerId)
        .all(store.reader())
        .await?;
    let pauses = rows.into_iter().map(|row| {
        let at = RowRef {
            table: "taxpayer_pauses",
            id: row.taxpayer_id,
        };
        Ok(TaxpayerPause {
            taxpayer_id: TaxpayerId(row.taxpayer_id),
            since: at.moment(row.since)?,
            reason: row.reason,
        })
    });
    pauses.collect()
}

#[cfg(test)]
mod tests {
    use database::page::Page;
    use jiff::Timestamp;

    use super::*;
    use crate::domain::kernel::audit::{AuditAction, OperatorRequest};
    use crate::store::operations::audit::AuditFilter;
    use crate::store::testing::stores;

    fn entry(action: AuditAction, taxpayer: TaxpayerId) -> AuditEntry {
        let by = OperatorRequest {
            operator_id: 1,
            reason: None,
        };
        AuditEntry::for_operator_request(&by, action, &taxpayer, Timestamp::UNIX_EPOCH)
    }

    #[tokio::test]
    async fn a_taxpayer_is_paused_since_its_first_pause_for_its_last_reason_until_it_is_resumed() {
        for test in stores().await {
            let store = &test.store;
            let paused = |id, second, reason: &str| TaxpayerPause {
                taxpayer_id: TaxpayerId(id),
                since: Timestamp::from_second(second).unwrap(),
                reason: Some(reason.to_owned()),
            };
            for (id, second, reason, changes) in [
                (7, 5, "first", true),
                (8, 4, "other", true),
                (7, 6, "second", true),
                (7, 7, "second", false),
            ] {
                let entry = entry(AuditAction::PauseTaxpayer, TaxpayerId(id));
                let changed = pause(store, paused(id, second, reason), entry).await;
                assert_eq!(changed.unwrap(), changes, "{id} at {second}");
            }
            let expected = [paused(8, 4, "other"), paused(7, 5, "second")];
            assert_eq!(list(store).await.unwrap(), expected);
            for changes in [true, false] {
                let entry = entry(AuditAction::ResumeTaxpayer, TaxpayerId(8));
                let changed = resume(store, TaxpayerId(8), entry).await;
                assert_eq!(changed.unwrap(), changes);
            }
            assert_eq!(list(store).await.unwrap(), expected[1..]);
            let all = Page {
                number: 1,
                per_page: 10,
            };
            let (_, recorded) = audit::page(store, AuditFilter::default(), all)
                .await
                .unwrap();
            assert_eq!(recorded, 4, "only what changed something is recorded");
        }
    }
}
