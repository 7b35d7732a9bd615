//! The taxpayers that operators have paused. Every replica reads the list each second, and at its start.

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

/// Pauses a taxpayer, and records it in the audit. A pause of a paused taxpayer keeps its time and takes the new reason.
pub async fn pause(
    store: &Store,
    pause: TaxpayerPause,
    entry: AuditEntry,
) -> Result<(), StoreError> {
    let row = Model {
        taxpayer_id: pause.taxpayer_id.0,
        since: pause.since.as_microsecond(),
        reason: pause.reason,
    };
    let tx = store.begin().await?;
    Entity::insert(row.into_active_model())
        .on_conflict(
            OnConflict::column(Column::TaxpayerId)
                .update_column(Column::Reason)
                .to_owned(),
        )
        .exec_without_returning(&tx)
        .await?;
    audit::append(&tx, &[entry]).await?;
    tx.commit().await
}

/// Ends the pause of a taxpayer, and records it in the audit.
pub async fn resume(
    store: &Store,
    taxpayer: TaxpayerId,
    entry: AuditEntry,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    Entity::delete_by_id(taxpayer.0).exec(&tx).await?;
    audit::append(&tx, &[entry]).await?;
    tx.commit().await
}

/// Returns the paused taxpayers, those first that have been paused longest.
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
    use jiff::Timestamp;

    use super::*;
    use crate::domain::kernel::audit::{AuditAction, OperatorRequest};
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
            for (id, second, reason) in [(7, 5, "first"), (8, 4, "other"), (7, 6, "second")] {
                let entry = entry(AuditAction::PauseTaxpayer, TaxpayerId(id));
                pause(store, paused(id, second, reason), entry)
                    .await
                    .unwrap();
            }
            let expected = [paused(8, 4, "other"), paused(7, 5, "second")];
            assert_eq!(list(store).await.unwrap(), expected);
            for _ in 0..2 {
                let entry = entry(AuditAction::ResumeTaxpayer, TaxpayerId(8));
                resume(store, TaxpayerId(8), entry).await.unwrap();
            }
            assert_eq!(list(store).await.unwrap(), expected[1..]);
        }
    }
}
