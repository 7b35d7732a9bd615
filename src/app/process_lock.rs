//! A lock file in `data_dir`, held while a process serves. A process that gets the lock knows that the process that
//! held it before is gone. So it ends the leases of that process at once, instead of waiting until they expire.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use secrecy::ExposeSecret;

use crate::app::error::StartError;
use crate::config::Settings;
use crate::store::Store;
use crate::store::lanes::leases::{self, LeasesToEnd};

const LOCK_FILE: &str = "serve.lock";

/// The held lock. The operating system releases the lock when the process ends, even after a crash.
pub(super) struct ProcessLock {
    _lock: File,
}

impl ProcessLock {
    /// Takes the lock and ends the leases of earlier processes. In an embedded database, which no other process serves,
    /// these are all leases. In a database with a URL, which other processes may serve, these are the leases of the
    /// process that held the lock before. Returns `None` and ends no lease if another process holds the lock, or if the
    /// database has a URL and the lock file cannot be opened. `owner` is the name that this process writes into its
    /// leases.
    pub(super) async fn acquire(
        settings: &Settings,
        store: &Store,
        owner: &str,
    ) -> Result<Option<Self>, StartError> {
        let is_embedded = settings.database.url.expose_secret().is_empty();
        let path = settings.data_dir.join(LOCK_FILE);
        let mut lock = match open_lock_file(&path) {
            Ok(lock) => lock,
            Err(source) if is_embedded => return Err(StartError::File { path, source }),
            Err(error) => {
                let path = path.display();
                tracing::info!(%path, %error, "no lock file; leases of an earlier process end by themselves");
                return Ok(None);
            }
        };
        if lock.try_lock().is_err() {
            tracing::warn!("another process serves with the same data_dir");
            return Ok(None);
        }
        let mut before = String::new();
        lock.read_to_string(&mut before).unwrap_or_default();
        if is_embedded {
            leases::end_leases(store, LeasesToEnd::AllCrashed).await?;
        } else if !before.is_empty() {
            leases::end_leases(store, LeasesToEnd::Crashed(&before)).await?;
        }
        write_owner(&mut lock, owner).map_err(|source| StartError::File { path, source })?;
        Ok(Some(Self { _lock: lock }))
    }
}

fn open_lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// Writes the name of the process that holds the lock.
fn write_owner(lock: &mut File, owner: &str) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    lock.write_all(owner.as_bytes())
}
