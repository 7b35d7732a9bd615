//! Items of a taxpayer's catalog. An invoice line refers to an item by id, by number, or by name if it has no number.

use std::collections::BTreeSet;

use database::insert::{Insert, update_on_conflict};
use database::sql::SqlOnce;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::ConnectionTrait;

use crate::domain::invoice::item::Item;
use crate::domain::kernel::ids::{ItemId, TaxpayerId};
use crate::store::invoices::item_row::{Column, Entity, Model};
use crate::store::lookup::{NameColumn, NameList, find, lookup_sql};

/// Ids, numbers and names of items. An item matches if it has at least one of them.
#[derive(Debug, Clone, Default)]
pub struct ItemNames {
    pub ids: BTreeSet<ItemId>,
    pub numbers: BTreeSet<String>,
    pub names: BTreeSet<String>,
}

pub(crate) static LOOKUP: SqlOnce = SqlOnce::new(|dialect| {
    let columns = [
        NameColumn::Number("id"),
        NameColumn::Text("item_no"),
        NameColumn::Text("name"),
    ];
    lookup_sql(dialect, "items", &columns)
});

/// Loads, for each taxpayer, its items that have any of the identifiers given for this taxpayer, oldest first.
pub async fn with_names(
    connection: &impl ConnectionTrait,
    wanted: impl IntoIterator<Item = (TaxpayerId, ItemNames)>,
) -> Result<Vec<(TaxpayerId, Item)>, StoreError> {
    let mut ids = NameList::default();
    let mut numbers = NameList::default();
    let mut texts = NameList::default();
    for (taxpayer, names) in wanted {
        ids.extend(taxpayer, names.ids.into_iter().map(|id| id.0));
        numbers.extend(taxpayer, names.numbers);
        texts.extend(taxpayer, names.names);
    }
    if ids.is_empty() && numbers.is_empty() && texts.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows: Vec<Model> = find(
        connection,
        &LOOKUP,
        [ids.json(), numbers.json(), texts.json()],
    )
    .await?;
    rows.sort_by_key(|row| row.id);
    rows.dedup_by_key(|row| row.id);
    rows.into_iter()
        .map(|row| Ok((TaxpayerId(row.taxpayer_id), Item::try_from(row)?)))
        .collect()
}

static SAVE: Insert<Entity> = Insert::with_conflict(|| {
    let changing = [
        Column::ProductCategory,
        Column::ServiceCategory,
        Column::UpdatedAt,
    ];
    update_on_conflict(&[Column::TaxpayerId, Column::Id], &changing)
});

/// Writes the current state of these items. Inserts new items and updates existing ones.
pub async fn save(
    tx: &Transaction,
    items: &[(TaxpayerId, &Item)],
    now: Timestamp,
) -> Result<(), StoreError> {
    SAVE.execute(
        tx,
        items
            .iter()
            .map(|(taxpayer, item)| Model::from_item(*taxpayer, item, now)),
    )
    .await?;
    Ok(())
}
