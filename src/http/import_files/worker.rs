//! Imports the stored pieces of large files, one after the other. While a piece is stored, the next one is already
//! read. The outcome of a piece is stored in the same transaction as its invoices. So another process can continue with
//! the next piece after a crash, and no invoice is created twice.

use std::sync::Arc;
use std::time::Duration;

use database::StoreError;
use futures_util::join;
use jiff::tz::Offset;
use timing::clock::SharedClock;

use crate::actors::dispatch::{WorkStatus, release_lane};
use crate::actors::taxpayer::commands::{ImportInvoices, ImportPiece};
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::domain::import::pieces::Piece;
use crate::domain::import::source::ImportForm;
use crate::domain::import::ubl_parties::ImportAccount;
use crate::domain::reference::catalog::SharedCatalog;
use crate::http::import_files::large::PieceReader;
use crate::http::respond::error::ApiError;
use crate::http::state::later_current_date;
use crate::store::Store;
use crate::store::accounts::taxpayers;
use crate::store::invoices::import_pieces::{self, ImportKey, NextPiece, PieceParseOptions};
use crate::store::lanes::Lease;
use crate::store::lanes::leases::{self, LaneRelease, NextClaim};

/// The maximum number of files that a process imports concurrently.
pub const IMPORTS_MAX: usize = 2;
/// After this many pieces of a file, its lane is released, so that another waiting file has its turn.
const PIECES_PER_TURN: usize = 20;
/// The reason that people see for a stopped import. The log has the cause.
const STOPPED_REASON: &str = "The next invoices of the file could not be read or stored.";
/// The delay before a retry if the command of a piece is refused, for example because the taxpayer may not create
/// invoices now.
const REFUSED_RETRY_DELAY: Duration = Duration::from_mins(1);
/// The interval at which an import checks whether its taxpayer is still paused.
const PAUSED_RECHECK_DELAY: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct ImportWorker {
    pub store: Store,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub catalog: SharedCatalog,
    pub clock: SharedClock,
    /// The offset of the authority's time zone from UTC.
    pub utc_offset: Offset,
}

impl ImportWorker {
    /// Imports up to `PIECES_PER_TURN` pieces of the file that the lane belongs to, then releases the lane. Stops the
    /// import if a piece would fail in the same way again.
    pub async fn work(&self, lease: &Lease) -> Result<WorkStatus, StoreError> {
        let Some(key) = ImportKey::parse_lane_key(&lease.key) else {
            return release_lane(&self.store, lease, None).await;
        };
        let mut prepared = None;
        for _ in 0..PIECES_PER_TURN {
            if self
                .taxpayers
                .paused_taxpayers()
                .find(key.taxpayer)
                .is_some()
            {
                return release_lane(&self.store, lease, Some(PAUSED_RECHECK_DELAY)).await;
            }
            let next = match import_pieces::next_piece(&self.store, key).await {
                Ok(Some(next)) => next,
                Ok(None) => return release_lane(&self.store, lease, None).await,
                Err(error @ StoreError::Corrupt { .. }) => {
                    return self.stop_with_cause(lease, key, &error.to_string()).await;
                }
                Err(error) => return Err(error),
            };
            match self.import_piece(key, next, &mut prepared).await {
                // Stale: another process has imported the piece.
                Ok(()) | Err(PieceError::Command(TaxpayerError::Store(StoreError::Stale))) => {}
                Err(
                    error @ (PieceError::NoTaxpayer
                    | PieceError::Unreadable(_)
                    | PieceError::Command(
                        TaxpayerError::Quarantined { .. }
                        | TaxpayerError::Store(StoreError::Corrupt { .. } | StoreError::Broken(_)),
                    )),
                ) => return self.stop_with_cause(lease, key, &error.to_string()).await,
                Err(PieceError::Command(TaxpayerError::Store(error))) => return Err(error),
                Err(PieceError::Command(
                    TaxpayerError::Busy { .. }
                    | TaxpayerError::Overloaded { .. }
                    | TaxpayerError::Interrupted { .. },
                )) => return Ok(WorkStatus::Unfinished),
                Err(error) => {
                    let import = &lease.key;
                    tracing::warn!(import, %error, "failed to import a piece of a file; will retry");
                    return release_lane(&self.store, lease, Some(REFUSED_RETRY_DELAY)).await;
                }
            }
        }
        release_lane(&self.store, lease, Some(Duration::ZERO)).await
    }

    /// Imports a piece. Meanwhile reads the following piece into `prepared`, for the next call.
    async fn import_piece(
        &self,
        key: ImportKey<'_>,
        next: NextPiece,
        prepared: &mut Option<PreparedPiece>,
    ) -> Result<(), PieceError> {
        let NextPiece {
            import,
            source: parse_options,
            number,
            piece,
        } = next;
        let mut invoices = match prepared.take().filter(|piece| piece.number == number) {
            Some(prepared) => prepared.invoices,
            None => {
                self.read_piece(key, import.form, parse_options.clone(), piece)
                    .await?
            }
        };
        invoices.file.documents_before = import.counts.total();
        let read_ahead = self.read_ahead(key, import.form, parse_options, number + 1);
        let command = ImportPiece {
            invoices,
            number,
            so_far: import,
        };
        let results = join!(self.taxpayers.send(key.taxpayer, command), read_ahead);
        // If the following piece could not be read now, it is read again when it is imported, and a failure is reported
        // then.
        *prepared = results.1.ok().flatten();
        results.0?;
        Ok(())
    }

    /// Reads the piece with this number before it is needed; `None` after the last piece.
    async fn read_ahead(
        &self,
        key: ImportKey<'_>,
        form: ImportForm,
        parse_options: PieceParseOptions,
        number: i64,
    ) -> Result<Option<PreparedPiece>, PieceError> {
        let piece = import_pieces::find_piece_by_number(&self.store, key, number)
            .await
            .map_err(TaxpayerError::Store)?;
        let Some(piece) = piece else {
            return Ok(None);
        };
        let invoices = self.read_piece(key, form, parse_options, piece).await?;
        Ok(Some(PreparedPiece { number, invoices }))
    }

    async fn read_piece(
        &self,
        key: ImportKey<'_>,
        form: ImportForm,
        parse_options: PieceParseOptions,
        piece: Piece,
    ) -> Result<ImportInvoices, PieceError> {
        let taxpayer = taxpayers::find_by_id(self.store.reader(), key.taxpayer)
            .await
            .map_err(TaxpayerError::Store)?;
        let taxpayer = taxpayer.ok_or(PieceError::NoTaxpayer)?;
        let reader = PieceReader {
            import_no: key.import_no.to_owned(),
            form,
            parse_options,
            account: ImportAccount::from(&taxpayer),
            today: later_current_date(self.clock.now(), self.utc_offset),
            catalog: self.catalog.clone(),
            documents_before: 0,
        };
        let result = reader.read(piece).await;
        let (invoices, _) = result.map_err(|error| PieceError::Unreadable(Box::new(error)))?;
        Ok(invoices)
    }

    /// Stores that the import is stopped, and deletes the lane.
    async fn stop_with_cause(
        &self,
        lease: &Lease,
        key: ImportKey<'_>,
        cause: &str,
    ) -> Result<WorkStatus, StoreError> {
        let import = &lease.key;
        tracing::error!(
            import,
            cause,
            "stopped the import of a file, whose next piece fails each time"
        );
        // Both changes are one transaction: if the same file is sent again, that request finds the import stopped and
        // creates a new lane.
        let tx = self.store.begin().await?;
        match import_pieces::stop_import(&tx, key, STOPPED_REASON).await {
            // The state of a corrupt record cannot be stored, but its lane is deleted, so that the import is not
            // retried for ever.
            Ok(()) | Err(StoreError::Corrupt { .. }) => {}
            Err(error) => return Err(error),
        }
        let release = LaneRelease {
            next_claim: NextClaim::Never,
            ..LaneRelease::new(lease, None)
        };
        leases::release(&tx, &[release]).await?;
        tx.commit().await?;
        Ok(WorkStatus::Released)
    }
}

/// A piece that was read while the piece before it was stored.
struct PreparedPiece {
    number: i64,
    invoices: ImportInvoices,
}

/// The reason why a piece was not imported.
#[derive(Debug, thiserror::Error)]
enum PieceError {
    #[error(transparent)]
    Command(#[from] TaxpayerError),
    #[error("the taxpayer is gone")]
    NoTaxpayer,
    #[error("the piece cannot be read: {0}")]
    Unreadable(Box<ApiError>),
}
