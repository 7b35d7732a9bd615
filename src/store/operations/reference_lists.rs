//! The stored copy of the authority's reference lists. `items` is JSON.

use database::StoreError;
use database::column::RowRef;
use jiff::Timestamp;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::OnConflict;
use sea_orm::{IntoActiveModel, QuerySelect};

use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::store::Store;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "reference_lists")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub list: String,
    pub items: String,
    pub fetched_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Stores the items of a list as the authority served them.
pub async fn save(
    store: &Store,
    list: ReferenceList,
    items: &serde_json::Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = Model {
        list: list.to_string(),
        items: items.to_string(),
        fetched_at: now.as_microsecond(),
    };
    let tx = store.begin().await?;
    Entity::insert(row.into_active_model())
        .on_conflict(
            OnConflict::column(Column::List)
                .update_columns([Column::Items, Column::FetchedAt])
                .to_owned(),
        )
        .exec_without_returning(&tx)
        .await?;
    tx.commit().await
}

/// All stored lists.
pub struct StoredCatalog {
    pub catalog: Catalog,
    /// The time at which the oldest list was fetched; `None` if some list was never fetched.
    pub oldest_fetched_at: Option<Timestamp>,
}

pub async fn load(store: &Store) -> Result<StoredCatalog, StoreError> {
    let mut catalog = Catalog::default();
    let mut oldest = None;
    let rows = Entity::find().all(store.reader()).await?;
    let is_whole = rows.len() == ReferenceList::ALL.len();
    for row in rows {
        let at = RowRef {
            table: "reference_lists",
            id: &row.list,
        };
        let fetched_at = at.moment(row.fetched_at)?;
        let list = at.parse(&row.list)?;
        catalog.load(list, &at.parse_json(&row.items)?);
        oldest = Some(oldest.map_or(fetched_at, |moment: Timestamp| moment.min(fetched_at)));
    }
    Ok(StoredCatalog {
        catalog,
        oldest_fetched_at: oldest.filter(|_| is_whole),
    })
}

/// The age of the stored lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListAges {
    /// The time at which the oldest stored list was fetched; `None` if no list was fetched yet.
    pub oldest_fetched_at: Option<Timestamp>,
    /// The number of lists that were never fetched.
    pub missing: usize,
}

pub async fn find_ages(store: &Store) -> Result<ListAges, StoreError> {
    let rows: Vec<(String, i64)> = Entity::find()
        .select_only()
        .columns([Column::List, Column::FetchedAt])
        .into_tuple()
        .all(store.reader())
        .await?;
    let lists = ReferenceList::ALL.iter();
    let missing = lists.filter(|list| rows.iter().all(|(stored, _)| stored != list.as_str()));
    let missing = missing.count();
    let first = rows.iter().min_by_key(|(_, fetched_at)| *fetched_at);
    let oldest_fetched_at = first
        .map(|(list, micros)| {
            RowRef {
                table: "reference_lists",
                id: list,
            }
            .moment(*micros)
        })
        .transpose()?;
    Ok(ListAges {
        oldest_fetched_at,
        missing,
    })
}
