//! The customers and items that occur in a taxpayer's invoices. Commands look them up by the identifiers that an
//! invoice states, and save those that are new or have changed. An invoice refers to its customer by number or tax
//! number. A line refers to an item by id, by number or, if it has no number, by name.

use std::collections::{BTreeMap, BTreeSet};

use database::insert::{Insert, update_on_conflict};
use database::sql::SqlOnce;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::ConnectionTrait;

use crate::domain::invoice::item::Item;
use crate::domain::kernel::ids::{ItemId, TaxpayerId};
use crate::domain::party::Customer;
use crate::store::invoices::{customer_row, item_row};
use crate::store::lookup::{LookupColumn, LookupValues, find, lookup_sql};

/// Numbers and tax numbers of customers. A customer matches if it has at least one of them.
#[derive(Debug, Clone, Default)]
pub struct CustomerIdentifiers {
    pub numbers: BTreeSet<String>,
    pub tins: BTreeSet<String>,
}

/// Ids, numbers and names of items. An item matches if it has at least one of them.
#[derive(Debug, Clone, Default)]
pub struct ItemIdentifiers {
    pub ids: BTreeSet<ItemId>,
    pub numbers: BTreeSet<String>,
    pub names: BTreeSet<String>,
}

pub(crate) static CUSTOMER_LOOKUP: SqlOnce = SqlOnce::new(|dialect| {
    lookup_sql::<customer_row::Entity>(
        dialect,
        "customers",
        &[LookupColumn::Text("no"), LookupColumn::Text("tin")],
    )
});

/// Loads, for each taxpayer, its customers that have any of the numbers or tax numbers given for this taxpayer, oldest
/// first.
pub async fn find_customers(
    connection: &impl ConnectionTrait,
    wanted: impl IntoIterator<Item = (TaxpayerId, CustomerIdentifiers)>,
) -> Result<Vec<(TaxpayerId, Customer)>, StoreError> {
    let mut numbers = LookupValues::default();
    let mut tins = LookupValues::default();
    for (taxpayer, names) in wanted {
        numbers.extend(taxpayer, names.numbers);
        tins.extend(taxpayer, names.tins);
    }
    if numbers.is_empty() && tins.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<customer_row::Model> = find(
        connection,
        &CUSTOMER_LOOKUP,
        [numbers.to_json(), tins.to_json()],
    )
    .await?;
    let found: BTreeMap<_, _> = rows.into_iter().map(|row| (row.id, row)).collect();
    found
        .into_values()
        .map(|row| Ok((TaxpayerId(row.taxpayer_id), Customer::try_from(row)?)))
        .collect()
}

static SAVE_CUSTOMERS: Insert<customer_row::Entity> = Insert::with_conflict(|| {
    update_on_conflict(
        &[customer_row::Column::TaxpayerId, customer_row::Column::Id],
        &[
            customer_row::Column::Tin,
            customer_row::Column::Details,
            customer_row::Column::SearchText,
        ],
    )
});

/// Writes the current state of these customers. Inserts new customers and updates existing ones.
pub async fn save_customers(
    tx: &Transaction,
    customers: &[(TaxpayerId, &Customer)],
    now: Timestamp,
) -> Result<(), StoreError> {
    SAVE_CUSTOMERS
        .execute(
            tx,
            customers.iter().map(|(taxpayer, customer)| {
                customer_row::Model::from_customer(*taxpayer, customer, now)
            }),
        )
        .await?;
    Ok(())
}

pub(crate) static ITEM_LOOKUP: SqlOnce = SqlOnce::new(|dialect| {
    let columns = [
        LookupColumn::Number("id"),
        LookupColumn::Text("item_no"),
        LookupColumn::Text("name"),
    ];
    lookup_sql::<item_row::Entity>(dialect, "items", &columns)
});

/// Loads, for each taxpayer, its items that have any of the identifiers given for this taxpayer, oldest first.
pub async fn find_items(
    connection: &impl ConnectionTrait,
    wanted: impl IntoIterator<Item = (TaxpayerId, ItemIdentifiers)>,
) -> Result<Vec<(TaxpayerId, Item)>, StoreError> {
    let mut ids = LookupValues::default();
    let mut numbers = LookupValues::default();
    let mut texts = LookupValues::default();
    for (taxpayer, names) in wanted {
        ids.extend(taxpayer, names.ids.into_iter().map(|id| id.0));
        numbers.extend(taxpayer, names.numbers);
        texts.extend(taxpayer, names.names);
    }
    if ids.is_empty() && numbers.is_empty() && texts.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows: Vec<item_row::Model> = find(
        connection,
        &ITEM_LOOKUP,
        [ids.to_json(), numbers.to_json(), texts.to_json()],
    )
    .await?;
    rows.sort_by_key(|row| row.id);
    rows.dedup_by_key(|row| row.id);
    rows.into_iter()
        .map(|row| Ok((TaxpayerId(row.taxpayer_id), Item::try_from(row)?)))
        .collect()
}

static SAVE_ITEMS: Insert<item_row::Entity> = Insert::with_conflict(|| {
    let changing = [
        item_row::Column::ProductCategory,
        item_row::Column::ServiceCategory,
        item_row::Column::UpdatedAt,
    ];
    update_on_conflict(
        &[item_row::Column::TaxpayerId, item_row::Column::Id],
        &changing,
    )
});

/// Writes the current state of these items. Inserts new items and updates existing ones.
pub async fn save_items(
    tx: &Transaction,
    items: &[(TaxpayerId, &Item)],
    now: Timestamp,
) -> Result<(), StoreError> {
    SAVE_ITEMS
        .execute(
            tx,
            items
                .iter()
                .map(|(taxpayer, item)| item_row::Model::from_item(*taxpayer, item, now)),
        )
        .await?;
    Ok(())
}
