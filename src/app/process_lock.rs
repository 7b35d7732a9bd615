//! A lock file: no other process serves the same SQLite file, so all leases in it can be ended at once.

use std::fs::File;

use secrecy::ExposeSecret;

use crate::app::error::StartError;
use crate::config::Settings;
use crate::store::db::connections::Store;
use crate::store::lanes::leases;

const LOCK_FILE: &str = "serve.lock";

/// The lock, held while the process serves. The operating system releases it however the process ends.
pub(super) struct ProcessLock {
    _lock: File,
}

impl ProcessLock {
    /// Takes the lock and ends all leases in the database. Returns `None` and keeps the leases if another process holds
    /// the lock, or if `database.url` is set: other processes may serve that database.
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
