//! Batches of invoices. The column `items` holds the result of each item as JSON; the counts are columns of their own.

use database::column::{RowRef, json};
use database::page::Page;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;
use sea_orm::{IntoActiveModel, QueryOrder, QuerySelect};

use crate::domain::invoice::batch::{Batch, ItemOutcome};
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "batches")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub batch_no: String,
    pub created: i32,
    pub duplicates: i32,
    pub failed: i32,
    pub items: String,
    pub created_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Batch {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "batches",
            id: format!("{}/{}", row.taxpayer_id, row.batch_no),
        };
        Ok(Self {
            taxpayer_id: TaxpayerId(row.taxpayer_id),
            items: at.parse_json(&row.items)?,
            created_at: at.moment(row.created_at)?,
            batch_no: row.batch_no,
        })
    }
}

impl From<&Batch> for Model {
    fn from(batch: &Batch) -> Self {
        let count = |outcome| i32::try_from(batch.count(outcome)).unwrap_or(i32::MAX);
        Self {
            taxpayer_id: batch.taxpayer_id.0,
            batch_no: batch.batch_no.clone(),
            created: count(ItemOutcome::Created),
            duplicates: count(ItemOutcome::Duplicate),
            failed: count(ItemOutcome::Failed),
            items: json(&batch.items),
            created_at: batch.created_at.as_microsecond(),
        }
    }
}

pub async fn add(tx: &Transaction, batch: &Batch) -> Result<(), StoreError> {
    Entity::insert(Model::from(batch).into_active_model())
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// A batch in a list: its counts, without the results of its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchSummary {
    pub batch_no: String,
    pub created: i32,
    pub duplicates: i32,
    pub failed: i32,
    pub created_at: Timestamp,
}

/// Loads one page of a taxpayer's batches, newest day first, and the number of all of them. They are ordered by the
/// primary key, because a batch number begins with its day.
pub async fn summaries_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    page: Page,
) -> Result<(Vec<BatchSummary>, u64), StoreError> {
    let owned = Entity::find().filter(Column::TaxpayerId.eq(taxpayer.0));
    let total = owned.clone().count(store.reader()).await?;
    let columns = [
        Column::BatchNo,
        Column::Created,
        Column::Duplicates,
        Column::Failed,
        Column::CreatedAt,
    ];
    let rows: Vec<(String, i32, i32, i32, i64)> = owned
        .select_only()
        .columns(columns)
        .order_by_desc(Column::BatchNo)
        .offset(page.offset())
        .limit(page.per_page)
        .into_tuple()
        .all(store.reader())
        .await?;
    let summaries = rows
        .into_iter()
        .map(|(batch_no, created, duplicates, failed, at)| {
            let created_at = RowRef {
                table: "batches",
                id: batch_no.as_str(),
            }
            .moment(at)?;
            Ok(BatchSummary {
                batch_no,
                created,
                duplicates,
                failed,
                created_at,
            })
        });
    Ok((summaries.collect::<Result<_, StoreError>>()?, total))
}

pub async fn find_owned_by_number(
    store: &Store,
    taxpayer: TaxpayerId,
    batch_no: &str,
) -> Result<Option<Batch>, StoreError> {
    let found = Entity::find_by_id((taxpayer.0, batch_no.to_owned()))
        .one(store.reader())
        .await?;
    found.map(Batch::try_from).transpose()
}
