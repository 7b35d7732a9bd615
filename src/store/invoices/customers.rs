use std::collections::{BTreeMap, BTreeSet};

use database::column::{caseless, contains_pattern};
use database::insert::{Insert, update_on_conflict};
use database::page::{self, Page};
use database::sql::SqlOnce;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::domain::kernel::ids::{CustomerId, TaxpayerId};
use crate::domain::party::Customer;
use crate::store::Store;
use crate::store::invoices::customer_row::{Column, Entity, Model};
use crate::store::lookup::{NameColumn, NameList, find, lookup_sql};

/// Numbers and tax numbers of customers. A customer matches if it has at least one of them.
#[derive(Debug, Clone, Default)]
pub struct CustomerNames {
    pub numbers: BTreeSet<String>,
    pub tins: BTreeSet<String>,
}

pub(crate) static LOOKUP: SqlOnce = SqlOnce::new(|dialect| {
    lookup_sql(
        dialect,
        "customers",
        &[NameColumn::Text("no"), NameColumn::Text("tin")],
    )
});

/// Loads, for each taxpayer, its customers that have any of the numbers or tax numbers given for this taxpayer, oldest
/// first.
pub async fn with_names(
    connection: &impl ConnectionTrait,
    wanted: impl IntoIterator<Item = (TaxpayerId, CustomerNames)>,
) -> Result<Vec<(TaxpayerId, Customer)>, StoreError> {
    let mut numbers = NameList::default();
    let mut tins = NameList::default();
    for (taxpayer, names) in wanted {
        numbers.extend(taxpayer, names.numbers);
        tins.extend(taxpayer, names.tins);
    }
    if numbers.is_empty() && tins.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<Model> = find(connection, &LOOKUP, [numbers.json(), tins.json()]).await?;
    let found: BTreeMap<_, _> = rows.into_iter().map(|row| (row.id, row)).collect();
    found
        .into_values()
        .map(|row| Ok((TaxpayerId(row.taxpayer_id), Customer::try_from(row)?)))
        .collect()
}

pub async fn owned_by_with_id(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    id: CustomerId,
) -> Result<Option<Customer>, StoreError> {
    let row = Entity::find_by_id((taxpayer.0, id.0))
        .one(connection)
        .await?;
    row.map(Customer::try_from).transpose()
}

/// Loads the customers of a taxpayer that have one of these ids.
pub async fn owned_by_with_ids(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    ids: impl IntoIterator<Item = CustomerId>,
) -> Result<Vec<Customer>, StoreError> {
    let rows = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Id.is_in(ids.into_iter().map(|id| id.0)))
        .all(connection)
        .await?;
    rows.into_iter().map(Customer::try_from).collect()
}

/// Loads a page of the customers of a taxpayer, ordered by name. With a search, only those whose name, number or TIN
/// contains it.
pub async fn page_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    search: Option<&str>,
    page: Page,
) -> Result<(Vec<Customer>, u64), StoreError> {
    let mut found = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .order_by_asc(Column::SearchText)
        .order_by_asc(Column::Id);
    if let Some(text) = search {
        let pattern = contains_pattern(&caseless(text));
        found = found.filter(Expr::col(Column::SearchText).like(pattern));
    }
    page::load(store, found, page).await
}

static SAVE: Insert<Entity> = Insert::with_conflict(|| {
    update_on_conflict(
        &[Column::TaxpayerId, Column::Id],
        &[Column::Tin, Column::Details, Column::SearchText],
    )
});

/// Writes the current state of these customers. Inserts new customers and updates existing ones.
pub async fn save(
    tx: &Transaction,
    customers: &[(TaxpayerId, &Customer)],
    now: Timestamp,
) -> Result<(), StoreError> {
    SAVE.execute(
        tx,
        customers
            .iter()
            .map(|(taxpayer, customer)| Model::from_customer(*taxpayer, customer, now)),
    )
    .await?;
    Ok(())
}
