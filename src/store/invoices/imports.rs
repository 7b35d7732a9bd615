//! The imports of files of invoices. The column `report` holds the record of an import, with the outcome of each
//! document, as JSON. A large file is imported in pieces (`import_pieces`).

use database::column::{RowRef, json};
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ConnectionTrait, IntoActiveModel, QuerySelect};

use crate::domain::import::record::{Import, import_no_prefix};
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
    /// The error file; only its header if the file is imported in pieces.
    pub errors_csv: String,
    pub created_at: i64,
    pub source: Option<String>,
    pub pieces: i64,
    pub next_piece: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// An import with its error file.
#[derive(Debug, Clone)]
pub struct StoredImport {
    pub import: Import,
    pub errors_csv: String,
}

/// The error file of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportErrorFile {
    /// The whole error file, or only its header if the rows are stored with the pieces.
    pub csv: String,
    pub has_pieces: bool,
}

impl Model {
    /// Creates the row of a file that is imported at once.
    fn new(taxpayer: TaxpayerId, stored: &StoredImport, now: Timestamp) -> Self {
        Self {
            taxpayer_id: taxpayer.0,
            import_no: stored.import.import_no.clone(),
            report: json(&stored.import),
            errors_csv: stored.errors_csv.clone(),
            created_at: now.as_microsecond(),
            source: None,
            pieces: 0,
            next_piece: 0,
        }
    }

    /// Creates the row of a file that is imported in pieces, of which none is imported yet.
    pub(super) fn for_import_in_pieces(
        taxpayer: TaxpayerId,
        import: Import,
        source: String,
        pieces: usize,
        now: Timestamp,
    ) -> Self {
        let stored = StoredImport {
            import,
            errors_csv: String::new(),
        };
        Self {
            source: Some(source),
            pieces: i64::try_from(pieces).unwrap_or(i64::MAX),
            ..Self::new(taxpayer, &stored, now)
        }
    }

    pub(super) fn import(&self) -> Result<Import, StoreError> {
        parse_report(TaxpayerId(self.taxpayer_id), &self.import_no, &self.report)
    }
}

fn parse_report(taxpayer: TaxpayerId, import_no: &str, report: &str) -> Result<Import, StoreError> {
    row_ref(taxpayer, import_no)
        .parse_json(report)
        .map(Import::complete_older_record)
}

pub(super) fn row_ref(taxpayer: TaxpayerId, import_no: &str) -> RowRef<String> {
    RowRef {
        table: "imports",
        id: format!("{taxpayer}/{import_no}"),
    }
}

/// Adds an import, unless another request has stored an import of the same file meanwhile.
pub async fn add(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    stored: &StoredImport,
    now: Timestamp,
) -> Result<(), StoreError> {
    insert(tx, Model::new(taxpayer, stored, now)).await
}

pub(super) async fn insert(tx: &Transaction, row: Model) -> Result<(), StoreError> {
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

pub async fn find_owned_by_number(
    store: &Store,
    taxpayer: TaxpayerId,
    import_no: &str,
) -> Result<Option<Import>, StoreError> {
    let found: Option<String> = Entity::find_by_id((taxpayer.0, import_no.to_owned()))
        .select_only()
        .column(Column::Report)
        .into_tuple()
        .one(store.reader())
        .await?;
    found
        .map(|report| parse_report(taxpayer, import_no, &report))
        .transpose()
}

/// Returns the time at which a file was imported; `None` if it was not imported.
pub async fn load_import_time(
    store: &Store,
    taxpayer: TaxpayerId,
    import_no: &str,
) -> Result<Option<Timestamp>, StoreError> {
    let found: Option<i64> = Entity::find_by_id((taxpayer.0, import_no.to_owned()))
        .select_only()
        .column(Column::CreatedAt)
        .into_tuple()
        .one(store.reader())
        .await?;
    row_ref(taxpayer, import_no).optional_moment(found)
}

/// Loads the imports of a taxpayer with these numbers.
pub async fn find_owned_by_numbers(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    import_numbers: &[String],
) -> Result<Vec<Import>, StoreError> {
    if import_numbers.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<(String, String)> = select_reports(taxpayer)
        .filter(Column::ImportNo.is_in(import_numbers))
        .into_tuple()
        .all(connection)
        .await?;
    rows.iter()
        .map(|(import_no, report)| parse_report(taxpayer, import_no, report))
        .collect()
}

/// Finds the import of a large file that creates, or has created, the invoices of this batch.
pub async fn find_owned_by_batch(
    store: &Store,
    taxpayer: TaxpayerId,
    batch_no: &str,
) -> Result<Option<Import>, StoreError> {
    let Some(prefix) = import_no_prefix(batch_no) else {
        return Ok(None);
    };
    // A range of the primary key finds the import: after the prefix come only hexadecimal digits, which sort before G.
    let rows: Vec<(String, String)> = select_reports(taxpayer)
        .filter(Column::ImportNo.gte(prefix.as_str()))
        .filter(Column::ImportNo.lt(format!("{prefix}G")))
        .into_tuple()
        .all(store.reader())
        .await?;
    for (import_no, report) in rows {
        let import = parse_report(taxpayer, &import_no, &report)?;
        if import.batch_no.as_deref() == Some(batch_no) {
            return Ok(Some(import));
        }
    }
    Ok(None)
}

fn select_reports(taxpayer: TaxpayerId) -> Select<Entity> {
    Entity::find()
        .select_only()
        .columns([Column::ImportNo, Column::Report])
        .filter(Column::TaxpayerId.eq(taxpayer.0))
}

/// Loads the error file of an import.
pub async fn find_errors_owned_by_number(
    store: &Store,
    taxpayer: TaxpayerId,
    import_no: &str,
) -> Result<Option<ImportErrorFile>, StoreError> {
    let found: Option<(String, i64)> = Entity::find_by_id((taxpayer.0, import_no.to_owned()))
        .select_only()
        .columns([Column::ErrorsCsv, Column::Pieces])
        .into_tuple()
        .one(store.reader())
        .await?;
    Ok(found.map(|(csv, pieces)| ImportErrorFile {
        csv,
        has_pieces: pieces > 0,
    }))
}
