//! Imports the stored pieces of large files, one after the other. What became of a piece is stored with its invoices, so
//! that a process that takes over after a crash goes on with the next piece, and nothing is created twice.

use std::sync::Arc;
use std::time::Duration;

use database::StoreError;
use jiff::tz::Offset;
use timing::clock::SharedClock;

use crate::actors::dispatch::{WorkStatus, release_lane};
use crate::actors::taxpayer::commands::ImportPiece;
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::reference::catalog::SharedCatalog;
use crate::http::import_files::large::PieceReader;
use crate::http::respond::error::ApiError;
use crate::http::state::latest_date;
use crate::store::Store;
use crate::store::accounts::taxpayers;
use crate::store::invoices::import_pieces::{self, ImportKey, NextPiece};
use crate::store::lanes::Lease;
use crate::store::lanes::leases::{self, LaneRelease, NextClaim};

/// The maximum number of files that a process imports concurrently.
pub const IMPORTS_MAX: usize = 2;
/// After this many pieces of a file, another file that waits has its turn.
const PIECES_PER_TURN: usize = 20;
/// What people read of an import that was stopped.
const STOPPED_REASON: &str = "The next invoices of the file could not be read or stored.";
/// How long an import waits whose taxpayer may not create invoices now, or is paused.
const REFUSED_DELAY: Duration = Duration::from_mins(1);

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
    /// Imports the next pieces of the file of this lane, then releases the lane. Stops an import that would fail in the same
    /// way again.
    pub async fn work(&self, lease: &Lease) -> Result<WorkStatus, StoreError> {
        let Some(key) = ImportKey::parse_lane_key(&lease.key) else {
            return release_lane(&self.store, lease, None).await;
        };
        for _ in 0..PIECES_PER_TURN {
            let next = match import_pieces::next(&self.store, key).await {
                Ok(Some(next)) => next,
                Ok(None) => return release_lane(&self.store, lease, None).await,
                Err(error @ StoreError::Corrupt { .. }) => {
                    return self.stop(lease, key, &error.to_string()).await;
                }
                Err(error) => return Err(error),
            };
            match self.import(key.taxpayer, next).await {
                // Stale: another process has imported the piece.
                Ok(()) | Err(PieceError::Command(TaxpayerError::Store(StoreError::Stale))) => {}
                Err(
                    error @ (PieceError::NoTaxpayer
                    | PieceError::Unreadable(_)
                    | PieceError::Command(
                        TaxpayerError::Quarantined { .. }
                        | TaxpayerError::Store(StoreError::Corrupt { .. } | StoreError::Broken(_)),
                    )),
                ) => return self.stop(lease, key, &error.to_string()).await,
                Err(PieceError::Command(TaxpayerError::Store(error))) => return Err(error),
                Err(PieceError::Command(
                    TaxpayerError::Busy { .. }
                    | TaxpayerError::Overloaded { .. }
                    | TaxpayerError::Interrupted { .. },
                )) => return Ok(WorkStatus::Unfinished),
                Err(error) => {
                    let import = &lease.key;
                    tracing::warn!(import, %error, "failed to import a piece of a file; will retry");
                    return release_lane(&self.store, lease, Some(REFUSED_DELAY)).await;
                }
            }
        }
        release_lane(&self.store, lease, Some(Duration::ZERO)).await
    }

    async fn import(&self, id: TaxpayerId, next: NextPiece) -> Result<(), PieceError> {
        let taxpayer = taxpayers::with_id(self.store.reader(), id)
            .await
            .map_err(TaxpayerError::Store)?;
        let taxpayer = taxpayer.ok_or(PieceError::NoTaxpayer)?;
        let reader = PieceReader {
            import_no: next.import.import_no.clone(),
            form: next.import.form,
            source: next.source,
            service_id: taxpayer.service_id,
            today: latest_date(self.clock.now(), self.utc_offset),
            catalog: self.catalog.clone(),
            documents_before: next.import.counts.total(),
        };
        let (invoices, _) = reader
            .read(next.piece)
            .await
            .map_err(|error| PieceError::Unreadable(Box::new(error)))?;
        let command = ImportPiece {
            invoices,
            number: next.number,
            so_far: next.import,
        };
        self.taxpayers.send(id, command).await?;
        Ok(())
    }

    /// Stores that the import is stopped, and deletes the lane.
    async fn stop(
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
        // In one transaction, so that the same file, sent again meanwhile, makes the lane anew.
        let tx = self.store.begin().await?;
        match import_pieces::stop(&tx, key, STOPPED_REASON).await {
            // Nothing can be written into a record that cannot be read.
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

/// Why a piece was not imported.
#[derive(Debug, thiserror::Error)]
enum PieceError {
    #[error(transparent)]
    Command(#[from] TaxpayerError),
    #[error("the taxpayer is gone")]
    NoTaxpayer,
    #[error("the piece cannot be read: {0}")]
    Unreadable(Box<ApiError>),
}
