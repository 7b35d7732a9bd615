//! A lock file in `data_dir`, held while a process serves. A process that gets the lock knows that the process that
//! held it before is gone. So it ends the leases of that process at once, instead of waiting until they expire.
//!
//! A further process on the same embedded database takes a shared lock on a second file. So a process that gets the
//! first lock can find out whether it is the only one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use secrecy::ExposeSecret;

use crate::app::error::StartError;
use crate::config::Settings;
use crate::store::Store;
use crate::store::lanes::leases::{self, LeasesToEnd};

const LOCK_FILE: &str = "serve.lock";
/// The lock file that all processes share that serve an embedded database in addition to the first process.
const FURTHER_LOCK_FILE: &str = "serve.further.lock";

/// The held lock. The operating system releases the lock when the process ends, even after a crash.
pub(super) struct ProcessLock {
    _lock: File,
}

impl ProcessLock {
    /// Takes the lock and ends the leases of processes that are gone. In an embedded database that no other process
    /// serves, these are all leases. In any other database, these are the leases of the process that held the lock
    /// before.
    ///
    /// Ends no lease if another process holds the lock, or if the database has a URL and the lock file cannot be
    /// opened. Then returns `None`, unless the database is embedded. `owner` is the name that this process writes
    /// into its leases.
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
            return is_embedded
                .then(|| lock_as_further_process(settings))
                .transpose();
        }
        let mut earlier_owner = String::new();
        lock.read_to_string(&mut earlier_owner).unwrap_or_default();
        if is_embedded && is_only_process(settings)? {
            leases::end_leases(store, LeasesToEnd::AllCrashed).await?;
        } else if !earlier_owner.is_empty() {
            leases::end_leases(store, LeasesToEnd::Crashed(&earlier_owner)).await?;
        }
        write_owner(&mut lock, owner).map_err(|source| StartError::File { path, source })?;
        Ok(Some(Self { _lock: lock }))
    }
}

/// Takes the shared lock of `FURTHER_LOCK_FILE`, for a process that is not the first to serve an embedded database.
fn lock_as_further_process(settings: &Settings) -> Result<ProcessLock, StartError> {
    let path = settings.data_dir.join(FURTHER_LOCK_FILE);
    let locked_file = open_lock_file(&path).and_then(|file| file.lock_shared().map(|()| file));
    let file = locked_file.map_err(|source| StartError::File { path, source })?;
    Ok(ProcessLock { _lock: file })
}

/// Returns true if no process holds the shared lock of `FURTHER_LOCK_FILE`, so that this one serves the database alone.
fn is_only_process(settings: &Settings) -> Result<bool, StartError> {
    let path = settings.data_dir.join(FURTHER_LOCK_FILE);
    let file = open_lock_file(&path).map_err(|source| StartError::File { path, source })?;
    Ok(file.try_lock().is_ok())
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

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait as _, Statement};

    use super::*;
    use crate::app::database::open_store;

    async fn load_lease_ends(store: &Store) -> Vec<i64> {
        let sql = "SELECT lease_until FROM lanes ORDER BY key";
        let statement = Statement::from_string(store.backend(), sql);
        let rows = store.reader().query_all_raw(statement).await.unwrap();
        rows.iter()
            .map(|row| row.try_get("", "lease_until").unwrap())
            .collect()
    }

    #[actix_web::test]
    async fn a_start_ends_the_leases_of_processes_that_are_gone_and_of_no_other() {
        const LEASE_END: i64 = 9_000_000_000_000_000;
        let directory = tempfile::tempdir().unwrap();
        let data_dir = directory.path().to_str().unwrap().to_owned();
        let variable = ("EINVOICE__DATA_DIR".to_owned(), data_dir);
        let key = (
            "EINVOICE__SECRETS__ENCRYPTION_KEY".to_owned(),
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".to_owned(),
        );
        let settings = Settings::load(None, [variable, key].into_iter()).unwrap();
        let store = open_store(&settings).await.unwrap();
        let lock = async |owner: &str| {
            ProcessLock::acquire(&settings, &store, owner)
                .await
                .unwrap()
        };
        let first = lock("first").await;
        let second = lock("second").await;
        let insert_lanes = format!(
            "INSERT INTO lanes (kind, key, epoch, version, owner, lease_until) \
             VALUES ('run', '1', 1, 0, 'first', {LEASE_END}), ('run', '2', 1, 0, 'second', {LEASE_END})"
        );
        let tx = store.begin().await.unwrap();
        tx.execute_unprepared(&insert_lanes).await.unwrap();
        tx.commit().await.unwrap();
        drop(first);
        let third = lock("third").await;
        assert_eq!(
            load_lease_ends(&store).await,
            [0, LEASE_END],
            "second is alive"
        );
        drop((second, third));
        lock("fourth").await;
        assert_eq!(load_lease_ends(&store).await, [0, 0]);
    }
}
