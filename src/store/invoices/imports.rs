//! What became of files of invoices. The column `report` holds the outcome of each document as JSON.

use database::column::{RowRef, json};
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::OnConflict;
use sea_orm::{IntoActiveModel, QuerySelect};

use crate::domain::import::record::Import;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "imports")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub import_no: String,
    pub report: String,
    pub errors_csv: String,
    pub created_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// An import with its file of errors.
#[derive(Debug, Clone)]
pub struct StoredImport {
    pub import: Import,
    pub errors_csv: String,
}

/// Adds an import. Of two imports of one file at the same time the first one stays.
pub async fn add(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    stored: &StoredImport,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = Model {
        taxpayer_id: taxpayer.0,
        import_no: stored.import.import_no.clone(),
        report: json(&stored.import),
        errors_csv: stored.errors_csv.clone(),
        created_at: now.as_microsecond(),
    };
    Entity::insert(row.into_active_model())
        .on_conflict(
            OnConflict::columns([Column::TaxpayerId, Column::ImportNo])
                .do_nothing()
                .to_owned(),
        )
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

pub async fn owned_by_with_number(
    store: &Store,
    taxpayer: TaxpayerId,
    import_no: &str,
) -> Result<Option<Import>, StoreError> {
    let report: Option<String> = import_column(store, taxpayer, import_no, Column::Report).await?;
    let at = RowRef {
        table: "imports",
        id: format!("{taxpayer}/{import_no}"),
    };
    report.map(|report| at.json(&report)).transpose()
}

/// Returns the file of errors of an import, as CSV.
pub async fn errors_owned_by_with_number(
    store: &Store,
    taxpayer: TaxpayerId,
    import_no: &str,
) -> Result<Option<String>, StoreError> {
    import_column(store, taxpayer, import_no, Column::ErrorsCsv).await
}

async fn import_column(
    store: &Store,
    taxpayer: TaxpayerId,
    import_no: &str,
    column: Column,
) -> Result<Option<String>, StoreError> {
    let found = Entity::find_by_id((taxpayer.0, import_no.to_owned()))
        .select_only()
        .column(column)
        .into_tuple()
        .one(store.reader())
        .await?;
    Ok(found)
}
