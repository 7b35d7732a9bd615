//! Items of a taxpayer's catalog. An invoice line refers to an item by id or by number, or by name if it has no
//! number.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, Value};

use crate::domain::invoice::item::{Item, Items};
use crate::domain::kernel::ids::{ItemId, TaxpayerId};
use crate::store::db::connections::{Transaction, portions};
use crate::store::db::error::StoreError;
use crate::store::invoices::item_row::{Column, Entity, Model};

/// The maximum number of values in one query, below the bind limits of both databases. An invoice can have many
/// lines, so one load may need several queries.
const VALUES_PER_QUERY: usize = 5_000;

/// Identifiers of items. An item matches if it has any one of them.
#[derive(Debug, Clone, Default)]
pub struct ItemNames {
    pub ids: BTreeSet<ItemId>,
    pub numbers: BTreeSet<String>,
    pub names: BTreeSet<String>,
}

/// Loads the items that have any of these identifiers, ordered by id.
pub async fn owned_by_with_names(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    names: ItemNames,
) -> Result<Items, StoreError> {
    let ids = names.ids.into_iter().map(|id| id.0.into()).collect();
    let numbers = names.numbers.into_iter().map(Value::from).collect();
    let texts = names.names.into_iter().map(Value::from).collect();
    let mut rows = Vec::new();
    for (column, values) in [(Column::Id, ids), (Column::ItemNo, numbers), (Column::Name, texts)] {
        rows.extend(with_any(tx, taxpayer, column, values).await?);
    }
    rows.sort_by_key(|row| row.id);
    rows.dedup_by_key(|row| row.id);
    rows.into_iter().map(Item::try_from).collect()
}

async fn with_any(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    column: Column,
    values: Vec<Value>,
) -> Result<Vec<Model>, StoreError> {
    let mut rows = Vec::new();
    for chunk in values.chunks(VALUES_PER_QUERY) {
        let found = Entity::find()
            .filter(Column::TaxpayerId.eq(taxpayer.0))
            .filter(column.is_in(chunk.to_vec()))
            .all(tx)
            .await?;
        rows.extend(found);
    }
    Ok(rows)
}

/// Writes the current state of these items. Inserts new items and updates existing ones.
pub async fn save(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    items: &[&Item],
    now: Timestamp,
) -> Result<(), StoreError> {
    for chunk in portions(items) {
        let rows = chunk.iter().map(|item| Model::of(taxpayer, item, now).into_active_model());
        Entity::insert_many(rows)
            .on_conflict(
                OnConflict::columns([Column::TaxpayerId, Column::Id])
                    .update_columns([Column::ProductCategory, Column::ServiceCategory, Column::UpdatedAt])
                    .to_owned(),
            )
            .exec_without_returning(tx)
            .await?;
    }
    Ok(())
}
