//! Periodically signs the newest event (the head) of each taxpayer's hash chain of events, and appends the signed heads
//! to a file. A chain that no longer contains its last signed head is logged as an error and gets no new signature.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use database::StoreError;
use jiff::Timestamp;
use timing::clock::SharedClock;
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::domain::events::checkpoint::{CheckpointPublicKey, LastCheckpointLine, TaxpayerLogHead};
use crate::domain::events::event::LogHead;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::accounts::taxpayers;
use crate::store::events;
use crate::store::events::checkpoint_file::{CheckpointFile, CheckpointFileError};

/// The number of taxpayers read in one batch, and so the maximum number of heads in one checkpoint.
const TAXPAYERS_PER_BATCH: u64 = 1_000;
/// The pause between two batches of taxpayers. It leaves the database free for other work.
const PAUSE: Duration = Duration::from_millis(20);
/// The first checkpoint after a start is delayed by at most this time.
pub const FIRST_DELAY_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    File(#[from] CheckpointFileError),
    #[error("the process ended while it wrote the checkpoint file")]
    Interrupted,
}

/// Signs chain heads and appends the checkpoints to a file.
#[derive(Clone)]
pub struct Checkpointer {
    pub store: Store,
    pub clock: SharedClock,
    pub file: Arc<Mutex<CheckpointFile>>,
    pub last: Arc<LastCheckpoint>,
}

/// The time at which this process last signed the heads of all chains; `None` before the first time.
#[derive(Debug, Default)]
pub struct LastCheckpoint(std::sync::Mutex<Option<Timestamp>>);

impl LastCheckpoint {
    pub fn get(&self) -> Option<Timestamp> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, at: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }
}

/// The result of one run over the event chains of all taxpayers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointResult {
    /// The number of chains that had grown and were signed.
    pub heads: usize,
    /// The taxpayers whose chain no longer contains the head that was signed last.
    pub broken: Vec<TaxpayerId>,
    /// The number and hash of the last checkpoint in the file.
    pub tail: LastCheckpointLine,
    pub public_key: CheckpointPublicKey,
}

impl Checkpointer {
    /// Signs the heads of all chains that have grown since they were last signed.
    pub async fn sign_grown_heads(&self) -> Result<CheckpointResult, CheckpointError> {
        let mut heads = 0;
        let mut broken = Vec::new();
        let mut after = TaxpayerId(0);
        self.run_blocking_with_file(CheckpointFile::read_new_checkpoints)
            .await?;
        loop {
            let ids = taxpayers::ids_after(&self.store, after, TAXPAYERS_PER_BATCH).await?;
            let Some(last) = ids.last() else { break };
            after = *last;
            let grown = self.find_grown_heads(&ids, &mut broken).await?;
            if !grown.is_empty() {
                heads += grown.len();
                let at = self.clock.now();
                self.run_blocking_with_file(move |file| file.append(at, grown))
                    .await?;
            }
            sleep(PAUSE).await;
        }
        self.last.set(self.clock.now());
        let file = self.file.lock().await;
        Ok(CheckpointResult {
            heads,
            broken,
            tail: file.last_line().clone(),
            public_key: file.public_key(),
        })
    }

    /// Returns the heads of the chains that have grown since their last checkpoint. A chain that no longer contains its
    /// last signed head is left out, and its taxpayer is added to `broken`.
    async fn find_grown_heads(
        &self,
        ids: &[TaxpayerId],
        broken: &mut Vec<TaxpayerId>,
    ) -> Result<Vec<TaxpayerLogHead>, CheckpointError> {
        let found = events::log_heads(self.store.reader(), ids).await?;
        let signed: Vec<_> = {
            let file = self.file.lock().await;
            let signed = |id: &TaxpayerId| {
                Some(TaxpayerLogHead {
                    taxpayer_id: *id,
                    head: file.head(*id)?.clone(),
                })
            };
            ids.iter().filter_map(signed).collect()
        };
        let kept = events::stored_hashes_at(&self.store, &signed).await?;
        for lost in signed
            .iter()
            .filter(|one| kept.get(&one.taxpayer_id) != Some(&one.head))
        {
            let TaxpayerLogHead {
                taxpayer_id,
                head: LogHead { sequence, .. },
            } = lost;
            tracing::error!(%taxpayer_id, sequence, "the event log contradicts its checkpoint; run verify");
            broken.push(*taxpayer_id);
        }
        let signed: HashMap<_, _> = signed
            .iter()
            .map(|one| (one.taxpayer_id, &one.head))
            .collect();
        let grown = ids.iter().filter_map(|id| {
            let head = found
                .get(id)
                .filter(|head| signed.get(id) != Some(head) && !broken.contains(id))?;
            Some(TaxpayerLogHead {
                taxpayer_id: *id,
                head: head.clone(),
            })
        });
        Ok(grown.collect())
    }

    /// Runs `work` on a blocking thread, because locking, reading and writing the file may block.
    async fn run_blocking_with_file(
        &self,
        work: impl FnOnce(&mut CheckpointFile) -> Result<(), CheckpointFileError> + Send + 'static,
    ) -> Result<(), CheckpointError> {
        let mut file = Arc::clone(&self.file).lock_owned().await;
        let worked = tokio::task::spawn_blocking(move || work(&mut file)).await;
        Ok(worked.map_err(|_| CheckpointError::Interrupted)??)
    }

    /// Signs the heads of all chains that have grown. If there are such chains, logs the number and the hash of the
    /// last checkpoint.
    pub async fn checkpoint(&self) -> Result<(), CheckpointError> {
        let CheckpointResult { heads, tail, .. } = self.sign_grown_heads().await?;
        if heads > 0 {
            tracing::info!(
                heads,
                number = tail.number,
                hash = tail.hash,
                "checkpointed the event log"
            );
        }
        Ok(())
    }
}
