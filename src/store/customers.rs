//! Customers of a taxpayer, matched by number, then by tax number.

use jiff::Timestamp;
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ColumnTrait, Condition, DatabaseTransaction, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
};

use crate::domain::ids::TaxpayerId;
use crate::domain::party::Customer;
use crate::store::database::ROWS_PER_STATEMENT;
use crate::store::entity::customer::{Column, Entity, Model};
use crate::store::failure::StoreError;

/// The customers that have any of these numbers or tax numbers, the oldest first.
pub async fn owned_by_with_numbers(
    tx: &DatabaseTransaction,
    taxpayer: TaxpayerId,
    numbers: Vec<String>,
    tins: Vec<String>,
) -> Result<Vec<Customer>, StoreError> {
    if numbers.is_empty() && tins.is_empty() {
        return Ok(Vec::new());
    }
    let any = Condition::any().add(Column::No.is_in(numbers)).add(Column::Tin.is_in(tins));
    let rows = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(any)
        .order_by_asc(Column::Id)
        .all(tx)
        .await?;
    rows.into_iter().map(Customer::try_from).collect()
}

/// Writes customers as they are now, new and changed ones alike.
pub async fn save(
    tx: &DatabaseTransaction,
    taxpayer: TaxpayerId,
    customers: &[&Customer],
    now: Timestamp,
) -> Result<(), StoreError> {
    for chunk in customers.chunks(ROWS_PER_STATEMENT) {
        let rows = chunk.iter().map(|customer| Model::of(taxpayer, customer, now).into_active_model());
        Entity::insert_many(rows)
            .on_conflict(
                OnConflict::columns([Column::TaxpayerId, Column::Id])
                    .update_columns([Column::Tin, Column::Details])
                    .to_owned(),
            )
            .exec_without_returning(tx)
            .await?;
    }
    Ok(())
}
