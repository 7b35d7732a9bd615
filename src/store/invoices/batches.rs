//! Batches of invoices. The column `items` holds the result of each item as JSON; the counts are columns of their own.

use database::column::{RowRef, json};
use database::page::Page;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{IntoActiveModel, QueryOrder, QuerySelect};

use crate::domain::invoice::batch::{Batch, ItemOutcome};
use crate::domain::kernel::codes::WorkflowStatus;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::invoices::invoice_row;

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
    /// True if the batch has created invoices and none of them is left: each is cancelled, or a later import has
    /// replaced it.
    pub is_undone: bool,
}

/// Loads one page of a taxpayer's batches, the newest first, and the number of all of them.
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
        .order_by_desc(Column::CreatedAt)
        .order_by_desc(Column::BatchNo)
        .offset(page.offset())
        .limit(page.per_page)
        .into_tuple()
        .all(store.reader())
        .await?;
    let numbers: Vec<_> = rows.iter().map(|row| row.0.as_str()).collect();
    let undone = find_undone(store, taxpayer, &numbers).await?;
    let summaries = rows
        .into_iter()
        .map(|(batch_no, created, duplicates, failed, at)| {
            let created_at = RowRef {
                table: "batches",
                id: batch_no.as_str(),
            }
            .moment(at)?;
            Ok(BatchSummary {
                is_undone: undone.contains(&batch_no),
                batch_no,
                created,
                duplicates,
                failed,
                created_at,
            })
        });
    Ok((summaries.collect::<Result<_, StoreError>>()?, total))
}

/// Returns those of these batches of whose invoices none is left. The invoices of a batch are read up to the first one
/// that is left.
async fn find_undone(
    store: &Store,
    taxpayer: TaxpayerId,
    numbers: &[&str],
) -> Result<Vec<String>, StoreError> {
    let column = |column: invoice_row::Column| Expr::col((invoice_row::Entity, column));
    let invoices_left = Query::select()
        .expr(Expr::value(1))
        .from(invoice_row::Entity)
        .and_where(column(invoice_row::Column::TaxpayerId).equals((Entity, Column::TaxpayerId)))
        .and_where(column(invoice_row::Column::BatchNo).equals((Entity, Column::BatchNo)))
        .and_where(column(invoice_row::Column::Status).ne(WorkflowStatus::Cancelled.as_str()))
        .to_owned();
    let undone = Entity::find()
        .select_only()
        .column(Column::BatchNo)
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::BatchNo.is_in(numbers.iter().copied()))
        .filter(Column::Created.gt(0))
        .filter(Expr::exists(invoices_left).not());
    Ok(undone.into_tuple().all(store.reader()).await?)
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
