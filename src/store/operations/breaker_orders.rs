//! The operators' orders to stop or allow the calls to an operation of the authority. Every replica obeys them.

use database::column::RowRef;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::IntoActiveModel;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict};

use crate::domain::breaker::{BreakerOrder, BreakerOrderKind};
use crate::domain::kernel::audit::AuditEntry;
use crate::store::Store;
use crate::store::operations::audit;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "breaker_orders")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub operation: String,
    pub kind: String,
    pub number: i64,
    pub ordered_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// The SQL for the time to store with an order: if the stored order is the same, its time stays.
const ORDERED_AT: &str = "CASE WHEN breaker_orders.kind = excluded.kind THEN breaker_orders.ordered_at \
                          ELSE excluded.ordered_at END";

/// Stores an order in place of the previous one about the operation. Records `entry` in the audit, if there is one.
pub async fn give_order(
    store: &Store,
    operation: &str,
    kind: BreakerOrderKind,
    entry: Option<AuditEntry>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    save(&tx, operation, kind, now).await?;
    audit::append(&tx, entry.as_slice()).await?;
    tx.commit().await
}

async fn save(
    tx: &Transaction,
    operation: &str,
    kind: BreakerOrderKind,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = Model {
        operation: operation.to_owned(),
        kind: kind.as_str().to_owned(),
        number: 1,
        ordered_at: now.as_microsecond(),
    };
    Entity::insert(row.into_active_model())
        .on_conflict(
            OnConflict::column(Column::Operation)
                .update_column(Column::Kind)
                .value(Column::OrderedAt, Expr::cust(ORDERED_AT))
                .value(Column::Number, Expr::col((Entity, Column::Number)).add(1))
                .to_owned(),
        )
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Loads the last order about each operation.
pub async fn list(store: &Store) -> Result<Vec<BreakerOrder>, StoreError> {
    let rows = Entity::find().all(store.reader()).await?;
    let orders = rows.into_iter().map(|row| {
        let at = RowRef {
            table: "breaker_orders",
            id: &row.operation,
        };
        Ok(BreakerOrder {
            kind: at.parse(&row.kind)?,
            number: row.number,
            ordered_at: at.moment(row.ordered_at)?,
            operation: row.operation,
        })
    });
    orders.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::stores;

    #[tokio::test]
    async fn the_last_order_about_an_operation_counts_and_has_a_number_of_its_own() {
        for test in stores().await {
            let store = &test.store;
            assert_eq!(list(store).await.unwrap(), []);
            let at = |second| Timestamp::from_second(second).unwrap();
            for (number, kind, ordered_at) in [
                (1, BreakerOrderKind::Trip, 1),
                (2, BreakerOrderKind::Reset, 2),
                (3, BreakerOrderKind::Trip, 3),
                // The calls are stopped since the first of two orders.
                (4, BreakerOrderKind::Trip, 3),
                (5, BreakerOrderKind::Reset, 5),
            ] {
                let tx = store.begin().await.unwrap();
                save(&tx, "sign", kind, at(number)).await.unwrap();
                tx.commit().await.unwrap();
                let expected = BreakerOrder {
                    operation: "sign".into(),
                    kind,
                    number,
                    ordered_at: at(ordered_at),
                };
                assert_eq!(list(store).await.unwrap(), [expected]);
            }
        }
    }
}
