//! The pieces of large files. An import processes one piece after the other. The transaction that creates the invoices
//! of a piece also updates the record of the import and empties the piece, so that each piece is imported once.

use database::column::json;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query, SelectStatement};
use sea_orm::{IntoActiveModel, QueryOrder, QuerySelect};
use serde::{Deserialize, Serialize};

use crate::domain::import::pieces::Piece;
use crate::domain::import::profile::ImportProfile;
use crate::domain::import::record::Import;
use crate::domain::import::source::FileFormat;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::invoices::imports;
use crate::store::lanes::{self, LaneKind, QueuedLane};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "import_pieces")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub import_no: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub piece: i64,
    pub content: String,
    pub places_before: i64,
    pub errors_csv: String,
    pub created_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// The options with which all pieces of a file are parsed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PieceParseOptions {
    pub format: FileFormat,
    /// The import profile at the time of the upload.
    pub profile: ImportProfile,
    /// True if the invoices of the file replace cancelled ones that have their numbers.
    #[serde(default)]
    pub replaces_cancelled: bool,
}

/// A large file to be imported. Its pieces are stored already.
#[derive(Debug)]
pub struct NewImport {
    pub import: Import,
    pub source: PieceParseOptions,
    /// The number of pieces that the file was split into.
    pub pieces: usize,
}

/// The taxpayer and the number that identify an import.
#[derive(Debug, Clone, Copy)]
pub struct ImportKey<'a> {
    pub taxpayer: TaxpayerId,
    pub import_no: &'a str,
}

/// The next piece of an import, with the record of the pieces before it.
#[derive(Debug)]
pub struct NextPiece {
    pub import: Import,
    pub source: PieceParseOptions,
    pub number: i64,
    pub piece: Piece,
}

/// The result of the import of one piece.
#[derive(Debug)]
pub struct ImportedPiece {
    pub number: i64,
    /// The record of the import, including this piece.
    pub import: Import,
    pub errors_header: String,
    pub errors_csv: String,
}

impl<'a> ImportKey<'a> {
    /// Returns the key of the import's lane.
    fn lane_key(self) -> String {
        format!("{}/{}", self.taxpayer, self.import_no)
    }

    /// Parses the key of an import's lane (`<taxpayer id>/<import number>`); `None` if the text has another form.
    pub fn parse_lane_key(key: &'a str) -> Option<Self> {
        let (taxpayer, import_no) = key.split_once('/')?;
        Some(Self {
            taxpayer: TaxpayerId(taxpayer.parse().ok()?),
            import_no,
        })
    }
}

/// Stores a piece of an upload. If an earlier upload of the same file stored it already, only its time is updated, so
/// that it is not swept during this upload.
pub async fn store_piece(
    store: &Store,
    key: ImportKey<'_>,
    number: usize,
    piece: Piece,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = Model {
        taxpayer_id: key.taxpayer.0,
        import_no: key.import_no.to_owned(),
        piece: i64::try_from(number).unwrap_or(i64::MAX),
        content: piece.content,
        places_before: i64::try_from(piece.places_before).unwrap_or(i64::MAX),
        errors_csv: String::new(),
        created_at: now.as_microsecond(),
    };
    let tx = store.begin().await?;
    Entity::insert(row.into_active_model())
        .on_conflict(
            OnConflict::columns([Column::TaxpayerId, Column::ImportNo, Column::Piece])
                .update_column(Column::CreatedAt)
                .to_owned(),
        )
        .exec_without_returning(&tx)
        .await?;
    tx.commit().await
}

/// Starts the import of a file whose pieces are stored, or continues one that was stopped. Returns the import; if it
/// was started before, with its record so far. Fails if a piece was swept meanwhile, so that the file must be sent
/// again.
pub async fn start_import(
    store: &Store,
    taxpayer: TaxpayerId,
    new: NewImport,
    now: Timestamp,
) -> Result<Import, StoreError> {
    let NewImport {
        import,
        source,
        pieces,
    } = new;
    let import_no = import.import_no.clone();
    let lane = QueuedLane {
        key: ImportKey {
            taxpayer,
            import_no: &import_no,
        }
        .lane_key(),
        taxpayer_id: taxpayer.0,
        deadline: now.as_microsecond(),
        next_step: None,
    };
    let row = imports::Model::for_import_in_pieces(taxpayer, import, json(&source), pieces, now);
    let wanted = row.pieces;
    let tx = store.begin().await?;
    imports::insert(&tx, row).await?;
    let stored = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::ImportNo.eq(import_no.as_str()))
        .filter(Column::Piece.lt(wanted))
        .count(&tx)
        .await?;
    if i64::try_from(stored).unwrap_or(i64::MAX) < wanted {
        return Err(StoreError::NotCommitted);
    }
    let found = imports::Entity::find_by_id((taxpayer.0, import_no))
        .one(&tx)
        .await?;
    let row = found.ok_or(StoreError::NotCommitted)?;
    let mut import = row.import()?;
    if import.stopped.take().is_some() {
        write_report(&tx, &row, &import).await?;
    }
    lanes::enqueue(&tx, LaneKind::Import, &[lane]).await?;
    tx.commit().await?;
    Ok(import)
}

/// Stops an import whose next piece fails again and again, and stores this reason. Does nothing if no piece is left.
pub async fn stop_import(
    tx: &Transaction,
    key: ImportKey<'_>,
    reason: &str,
) -> Result<(), StoreError> {
    let found = imports::Entity::find_by_id((key.taxpayer.0, key.import_no.to_owned()))
        .one(tx)
        .await?;
    let Some(row) = found.filter(|row| row.next_piece < row.pieces) else {
        return Ok(());
    };
    let mut import = row.import()?;
    import.stopped = Some(reason.to_owned());
    write_report(tx, &row, &import).await
}

/// Stores the record of an import that its account has cancelled. Only the actor of the taxpayer calls this, and it
/// also imports the pieces, so no piece is imported at the same time.
pub async fn store_cancelled(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    import: &Import,
) -> Result<(), StoreError> {
    imports::Entity::update_many()
        .col_expr(imports::Column::Report, Expr::value(json(import)))
        .filter(imports::Column::TaxpayerId.eq(taxpayer.0))
        .filter(imports::Column::ImportNo.eq(import.import_no.as_str()))
        .exec(tx)
        .await?;
    Ok(())
}

/// Writes the record of an import, unless another piece was imported since `row` was read.
async fn write_report(
    tx: &Transaction,
    row: &imports::Model,
    import: &Import,
) -> Result<(), StoreError> {
    imports::Entity::update_many()
        .col_expr(imports::Column::Report, Expr::value(json(import)))
        .filter(imports::Column::TaxpayerId.eq(row.taxpayer_id))
        .filter(imports::Column::ImportNo.eq(row.import_no.as_str()))
        .filter(imports::Column::NextPiece.eq(row.next_piece))
        .exec(tx)
        .await?;
    Ok(())
}

/// Loads the next piece of an import; `None` if all pieces are imported, or if the import was stopped.
pub async fn next_piece(
    store: &Store,
    key: ImportKey<'_>,
) -> Result<Option<NextPiece>, StoreError> {
    let ImportKey {
        taxpayer,
        import_no,
    } = key;
    let found = imports::Entity::find_by_id((taxpayer.0, import_no.to_owned()))
        .one(store.reader())
        .await?;
    let Some(row) = found.filter(|row| row.next_piece < row.pieces) else {
        return Ok(None);
    };
    let import = row.import()?;
    if import.stopped.is_some() {
        return Ok(None);
    }
    let at = imports::row_ref(taxpayer, import_no);
    let piece = find_piece_by_number(store, key, row.next_piece).await?;
    let piece = piece.ok_or_else(|| at.corrupt(format!("piece {} is gone", row.next_piece)))?;
    Ok(Some(NextPiece {
        import,
        source: at.parse_json(row.source.as_deref().unwrap_or_default())?,
        number: row.next_piece,
        piece,
    }))
}

/// Loads a piece of an import by its number, counted from 0.
pub async fn find_piece_by_number(
    store: &Store,
    key: ImportKey<'_>,
    number: i64,
) -> Result<Option<Piece>, StoreError> {
    let found = Entity::find_by_id((key.taxpayer.0, key.import_no.to_owned(), number))
        .one(store.reader())
        .await?;
    Ok(found.map(|row| Piece {
        content: row.content,
        places_before: u64::try_from(row.places_before).unwrap_or_default(),
    }))
}

/// Stores the result of a piece, empties the piece and advances the import. Fails with `Stale` if the piece is no
/// longer the next one.
pub async fn finish_piece(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    done: &ImportedPiece,
) -> Result<(), StoreError> {
    let import_no = done.import.import_no.as_str();
    let advanced = imports::Entity::update_many()
        .col_expr(imports::Column::Report, Expr::value(json(&done.import)))
        .col_expr(
            imports::Column::ErrorsCsv,
            Expr::value(done.errors_header.as_str()),
        )
        .col_expr(imports::Column::NextPiece, Expr::value(done.number + 1))
        .filter(imports::Column::TaxpayerId.eq(taxpayer.0))
        .filter(imports::Column::ImportNo.eq(import_no))
        .filter(imports::Column::NextPiece.eq(done.number))
        .exec(tx)
        .await?;
    if advanced.rows_affected == 0 {
        return Err(StoreError::Stale);
    }
    Entity::update_many()
        .col_expr(Column::Content, Expr::value(""))
        .col_expr(Column::ErrorsCsv, Expr::value(done.errors_csv.as_str()))
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::ImportNo.eq(import_no))
        .filter(Column::Piece.eq(done.number))
        .exec(tx)
        .await?;
    Ok(())
}

/// Finds the first piece with errors, from piece `number` on. Returns its error rows and the number of the piece that
/// follows it; `None` if no piece from `number` on has errors.
pub async fn error_rows_from_piece(
    store: &Store,
    key: ImportKey<'_>,
    number: i64,
) -> Result<Option<(String, i64)>, StoreError> {
    let found: Option<(String, i64)> = Entity::find()
        .select_only()
        .columns([Column::ErrorsCsv, Column::Piece])
        .filter(Column::TaxpayerId.eq(key.taxpayer.0))
        .filter(Column::ImportNo.eq(key.import_no))
        .filter(Column::Piece.gte(number))
        .filter(Column::ErrorsCsv.ne(""))
        .order_by_asc(Column::Piece)
        .into_tuple()
        .one(store.reader())
        .await?;
    Ok(found.map(|(csv, piece)| (csv, piece + 1)))
}

/// Deletes up to `limit` pieces that were stored before this time and whose import was never started, because the
/// upload was interrupted. Returns true if more such pieces may be left.
pub async fn sweep(store: &Store, before: Timestamp, limit: u64) -> Result<bool, StoreError> {
    let started = select_started_import();
    let abandoned: Vec<(i64, String, i64)> = Entity::find()
        .select_only()
        .columns([Column::TaxpayerId, Column::ImportNo, Column::Piece])
        .filter(Column::CreatedAt.lt(before.as_microsecond()))
        // Pieces without content belong to started imports. The condition is that of the partial index, word for word.
        .filter(Expr::cust("content <> ''"))
        .filter(Expr::exists(started.clone()).not())
        .order_by_asc(Column::CreatedAt)
        .limit(limit)
        .into_tuple()
        .all(store.reader())
        .await?;
    if abandoned.is_empty() {
        return Ok(false);
    }
    let has_more = abandoned.len() as u64 == limit;
    let tx = store.begin().await?;
    for (taxpayer_id, import_no, piece) in abandoned {
        // The same file may have been uploaded again meanwhile.
        Entity::delete_many()
            .filter(Column::TaxpayerId.eq(taxpayer_id))
            .filter(Column::ImportNo.eq(import_no))
            .filter(Column::Piece.eq(piece))
            .filter(Column::CreatedAt.lt(before.as_microsecond()))
            .filter(Expr::exists(started.clone()).not())
            .exec(&tx)
            .await?;
    }
    tx.commit().await?;
    Ok(has_more)
}

/// Builds the subquery that finds the import to which a piece of the outer query belongs, if the import was started.
fn select_started_import() -> SelectStatement {
    Query::select()
        .expr(Expr::value(1))
        .from(imports::Entity)
        .and_where(
            Expr::col((imports::Entity, imports::Column::TaxpayerId))
                .equals((Entity, Column::TaxpayerId)),
        )
        .and_where(
            Expr::col((imports::Entity, imports::Column::ImportNo))
                .equals((Entity, Column::ImportNo)),
        )
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::import::source::ImportForm;
    use crate::store::invoices::running_imports;
    use crate::store::testing::stores;

    const ID: TaxpayerId = TaxpayerId(1);
    const IMPORT_NO: &str = "I0123456789ABCDEF0123456789ABCDEF";
    const BATCH_NO: &str = "B19700101-0123456789ABCDEF";
    const KEY: ImportKey<'_> = ImportKey {
        taxpayer: ID,
        import_no: IMPORT_NO,
    };

    fn piece(content: &str) -> Piece {
        Piece {
            content: content.to_owned(),
            places_before: 7,
        }
    }

    fn import() -> Import {
        let batch = Some(BATCH_NO.to_owned());
        Import::start(IMPORT_NO.to_owned(), ImportForm::Standard, batch, 2)
    }

    fn new_import(pieces: usize) -> NewImport {
        let source = PieceParseOptions {
            format: FileFormat::Ndjson,
            profile: ImportProfile::default(),
            replaces_cancelled: false,
        };
        NewImport {
            import: import(),
            source,
            pieces,
        }
    }

    async fn finish_once(store: &Store, number: i64, errors: &str) -> Result<(), StoreError> {
        let done = ImportedPiece {
            number,
            import: import(),
            errors_header: "h\n".to_owned(),
            errors_csv: errors.to_owned(),
        };
        let tx = store.begin().await?;
        finish_piece(&tx, ID, &done).await?;
        tx.commit().await
    }

    #[actix_rt::test]
    async fn each_piece_is_finished_once_and_its_errors_stay() {
        for test in stores().await {
            let store = &test.store;
            let now = Timestamp::UNIX_EPOCH;
            for (number, content) in ["a", "b"].into_iter().enumerate() {
                store_piece(store, KEY, number, piece(content), now)
                    .await
                    .unwrap();
            }
            let missing = start_import(store, ID, new_import(3), now).await;
            assert!(
                matches!(missing, Err(StoreError::NotCommitted)),
                "{missing:?}"
            );
            // The same upload again changes nothing.
            store_piece(store, KEY, 0, piece("other"), now)
                .await
                .unwrap();
            assert!(next_piece(store, KEY).await.unwrap().is_none());
            start_import(store, ID, new_import(2), now).await.unwrap();
            let first = next_piece(store, KEY).await.unwrap().unwrap();
            assert_eq!((first.number, first.piece), (0, piece("a")));
            finish_once(store, 0, "").await.unwrap();
            let stale = finish_once(store, 0, "x\n").await;
            assert!(matches!(stale, Err(StoreError::Stale)), "{stale:?}");
            finish_once(store, 1, "y\n").await.unwrap();
            assert!(next_piece(store, KEY).await.unwrap().is_none());
            let errors = error_rows_from_piece(store, KEY, 0).await.unwrap();
            assert_eq!(errors, Some(("y\n".to_owned(), 2)));
            assert_eq!(error_rows_from_piece(store, KEY, 2).await.unwrap(), None);
            let other = ImportKey {
                taxpayer: TaxpayerId(2),
                ..KEY
            };
            assert_eq!(error_rows_from_piece(store, other, 0).await.unwrap(), None);
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_stopped_import_goes_on_when_its_file_is_sent_again() {
        for test in stores().await {
            let store = &test.store;
            let now = Timestamp::UNIX_EPOCH;
            store_piece(store, KEY, 0, piece("a"), now).await.unwrap();
            start_import(store, ID, new_import(1), now).await.unwrap();
            let tx = store.begin().await.unwrap();
            stop_import(&tx, KEY, "it failed").await.unwrap();
            tx.commit().await.unwrap();
            assert!(next_piece(store, KEY).await.unwrap().is_none());
            let stopped = imports::find_owned_by_number(store, ID, IMPORT_NO).await;
            let stopped = stopped.unwrap().unwrap().stopped;
            assert_eq!(stopped.as_deref(), Some("it failed"));
            let mut again = new_import(1);
            again.import.batch_no = Some("B2".to_owned());
            let import = start_import(store, ID, again, now).await.unwrap();
            assert_eq!(
                (import.stopped, import.batch_no.as_deref()),
                (None, Some(BATCH_NO))
            );
            assert_eq!(next_piece(store, KEY).await.unwrap().unwrap().number, 0);
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn an_import_is_found_by_its_batch() {
        for test in stores().await {
            let store = &test.store;
            let now = Timestamp::UNIX_EPOCH;
            let find_running = async |taxpayer: TaxpayerId, batch_no: &str| {
                let found = running_imports::find_by_batch(store, taxpayer, batch_no).await;
                found.unwrap().map(|import| import.import_no)
            };
            for (number, content) in ["a", "b"].into_iter().enumerate() {
                store_piece(store, KEY, number, piece(content), now)
                    .await
                    .unwrap();
            }
            assert_eq!(find_running(ID, BATCH_NO).await, None, "it has not started");
            let running = start_import(store, ID, new_import(2), now).await.unwrap();
            let found = find_running(ID, BATCH_NO).await;
            assert_eq!(found.as_deref(), Some(IMPORT_NO));
            for (max, count) in [(0, 0), (1, 1), (5, 1)] {
                let running = running_imports::load_owned_by(store, ID, max).await;
                assert_eq!(running.unwrap().len(), count, "{max}");
            }
            for other in [
                "B19700102-0123456789ABCDEF",
                "B19700101-0123456789ABCDEE",
                "b19700101-0123456789ABCDEF",
                "B19700101-0123456789abcdef",
                "B19700101-",
                "%",
                "",
            ] {
                assert_eq!(find_running(ID, other).await, None, "{other}");
            }
            assert_eq!(find_running(TaxpayerId(2), BATCH_NO).await, None);
            let tx = store.begin().await.unwrap();
            store_cancelled(&tx, ID, &running.cancel()).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(find_running(ID, BATCH_NO).await, None, "it is cancelled");
            let ended = imports::find_owned_by_batch(store, ID, BATCH_NO).await;
            assert_eq!(ended.unwrap().unwrap().import_no, IMPORT_NO);
            let running = running_imports::load_owned_by(store, ID, 5).await;
            assert!(running.unwrap().is_empty(), "it is cancelled");
            assert!(next_piece(store, KEY).await.unwrap().is_none());
            start_import(store, ID, new_import(2), now).await.unwrap();
            let found = find_running(ID, BATCH_NO).await;
            assert_eq!(found.as_deref(), Some(IMPORT_NO), "sent again");
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn pieces_of_an_upload_that_is_sent_again_are_not_swept() {
        for test in stores().await {
            let store = &test.store;
            let later = Timestamp::from_second(60).unwrap();
            for now in [Timestamp::UNIX_EPOCH, later] {
                store_piece(store, KEY, 0, piece("a"), now).await.unwrap();
            }
            assert!(!sweep(store, later, 9).await.unwrap());
            let import = start_import(store, ID, new_import(1), later).await;
            assert!(import.is_ok(), "{import:?}");
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn pieces_of_an_upload_that_broke_off_are_swept() {
        for test in stores().await {
            let store = &test.store;
            let now = Timestamp::UNIX_EPOCH;
            let later = Timestamp::from_second(60).unwrap();
            for import_no in [IMPORT_NO, "I2"] {
                let key = ImportKey { import_no, ..KEY };
                store_piece(store, key, 0, piece("a"), now).await.unwrap();
            }
            start_import(store, ID, new_import(1), now).await.unwrap();
            assert!(!sweep(store, now, 9).await.unwrap(), "nothing is old");
            assert!(sweep(store, later, 1).await.unwrap());
            assert!(!sweep(store, later, 1).await.unwrap());
            let left = Entity::find().all(store.reader()).await.unwrap();
            let left: Vec<_> = left.iter().map(|row| row.import_no.as_str()).collect();
            assert_eq!(left, [IMPORT_NO]);
            test.store.close().await;
        }
    }
}
