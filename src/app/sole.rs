//! Whether this process is the only one that serves an embedded database. Then the leases it finds there are of
//! a process that has died, and what that was at can go on at once instead of when the leases end.

use std::fs::File;

use secrecy::ExposeSecret;

use crate::app::error::StartError;
use crate::config::Settings;
use crate::store::db::connections::Store;
use crate::store::lanes::leases;

const LOCK_FILE: &str = "serve.lock";

/// Held for as long as the process serves; the system lets go of it however the process ends.
pub(super) struct Sole {
    _lock: File,
}

impl Sole {
    /// None where others may serve the same database.
    pub(super) async fn claim(settings: &Settings, store: &Store) -> Result<Option<Self>, StartError> {
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
