//! A lock file that shows that this process alone serves an embedded database. Leases found there then belong to a dead
//! process, and their work can continue at once instead of after they expire.

use std::fs::File;

use secrecy::ExposeSecret;

use crate::app::error::StartError;
use crate::config::Settings;
use crate::store::db::connections::Store;
use crate::store::lanes::leases;

const LOCK_FILE: &str = "serve.lock";

/// Held while the process serves; the operating system releases it however the process ends.
pub(super) struct ProcessLock {
    _lock: File,
}

impl ProcessLock {
    /// Returns `None` if other processes may serve the same database.
    pub(super) async fn acquire(settings: &Settings, store: &Store) -> Result<Option<Self>, StartError> {
        if !settings.database.url.expose_secret().is_empty() {
            return Ok(None);
        }
        let path = settings.data_dir.join(LOCK_FILE);
        let lock = File::create(&path).map_err(|source| StartError::File { path, source })?;
        if lock.try_lock().is_err() {
            tracing::warn!("another process serves the same data_dir");
            return Ok(None);
        }
        leases::expire_all(store).await?;
        Ok(Some(Self { _lock: lock }))
    }
}
