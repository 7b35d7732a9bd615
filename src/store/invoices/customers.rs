//! Finders of the customers of a taxpayer, for pages and exports.

use database::StoreError;
use database::column::{contains_pattern, fold_case};
use database::page::{self, Page};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::domain::kernel::ids::{CustomerId, TaxpayerId};
use crate::domain::party::Customer;
use crate::store::Store;
use crate::store::invoices::customer_row::{Column, Entity};

pub async fn find_owned_by_id(
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
pub async fn find_owned_by_ids(
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

/// Loads a page of the customers of a taxpayer, ordered by name, and the number of all matches. With a search, only
/// those whose name, number or TIN contains it.
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
        let pattern = contains_pattern(&fold_case(text));
        found = found.filter(Expr::col(Column::SearchText).like(pattern));
    }
    page::load(store, found, page).await
}
