//! Customers of a taxpayer. Commands find a customer first by number, then by tax number.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, Select};

use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::Customer;
use crate::store::db::connections::{Transaction, portions};
use crate::store::db::error::StoreError;
use crate::store::db::union::union_all;
use crate::store::invoices::customer_row::{Column, Entity, Model};

/// Loads the customers that have any of these numbers or tax numbers, ordered by id.
pub async fn owned_by_with_numbers(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    numbers: Vec<String>,
    tins: Vec<String>,
) -> Result<Vec<Customer>, StoreError> {
    let mut found = BTreeMap::new();
    for finders in finders(taxpayer, numbers, tins) {
        found.extend(union_all(tx, finders).await?.into_iter().map(|row| (row.id, row)));
    }
    found.into_values().map(Customer::try_from).collect()
}

/// Builds the queries. Duplicates are removed first, because invoices of a batch often share a customer.
fn finders(taxpayer: TaxpayerId, numbers: Vec<String>, tins: Vec<String>) -> Vec<Vec<Select<Entity>>> {
    let once = |texts: Vec<String>| Vec::from_iter(texts.into_iter().collect::<BTreeSet<_>>());
    let (numbers, tins) = (once(numbers), once(tins));
    let (mut numbers, mut tins) = (portions(&numbers), portions(&tins));
    let owned = |named| Entity::find().filter(Column::TaxpayerId.eq(taxpayer.0)).filter(named);
    let mut all = Vec::new();
    loop {
        let any = [
            numbers.next().map(|some| Column::No.is_in(some)),
            tins.next().map(|some| Column::Tin.is_in(some)),
        ];
        let finders: Vec<_> = any.into_iter().flatten().map(owned).collect();
        if finders.is_empty() {
            return all;
        }
        all.push(finders);
    }
}

/// Writes the current state of these customers. Inserts new customers and updates existing ones.
pub async fn save(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    customers: &[&Customer],
    now: Timestamp,
) -> Result<(), StoreError> {
    for chunk in portions(customers) {
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
