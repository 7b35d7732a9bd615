//! Databases for tests, with one small table: an SQLite file, and also a PostgreSQL database if
//! `EINVOICE_TEST_POSTGRES` names a server.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Once;

use sea_orm::ConnectionTrait;
use tempfile::TempDir;
use timing::clock;

use crate::database::Database;
use crate::pool_settings::PoolSettings;

const CREATE_COUNTERS: &str =
    "CREATE TABLE counters (name varchar NOT NULL, next bigint NOT NULL, PRIMARY KEY (name))";

const FILE: &str = "test.db";

static SKIPPED: Once = Once::new();

/// A database for one test. Dropping it removes the SQLite file; a PostgreSQL database stays.
pub(crate) struct TestStore {
    pub(crate) store: Database,
    directory: TempDir,
}

impl TestStore {
    /// Returns the path of an SQLite database.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join(FILE)
    }
}

/// Creates an SQLite database and, if a PostgreSQL server is configured, a PostgreSQL database. Each has the empty
/// table `counters`.
pub(crate) async fn stores() -> Vec<TestStore> {
    let mut stores = vec![open(None).await];
    if let Ok(server) = std::env::var("EINVOICE_TEST_POSTGRES") {
        stores.push(open(Some(&server)).await);
    } else {
        SKIPPED.call_once(|| {
            // Written to stderr directly, because the test harness hides the output of `eprintln!`.
            let line = "SKIPPED: the PostgreSQL half of the tests of the database: EINVOICE_TEST_POSTGRES names no server\n";
            std::io::stderr().write_all(line.as_bytes()).unwrap();
        });
    }
    stores
}

/// Creates an SQLite database with the empty table `counters`.
pub(crate) async fn sqlite() -> TestStore {
    open(None).await
}

async fn open(server: Option<&str>) -> TestStore {
    let directory = tempfile::tempdir().unwrap();
    let url = match server {
        Some(server) => postgres(server).await,
        None => format!("sqlite://{}", directory.path().join(FILE).display()),
    };
    let store = Database::open(&url, &PoolSettings::default())
        .await
        .unwrap();
    let tx = store.begin().await.unwrap();
    tx.execute_unprepared(CREATE_COUNTERS).await.unwrap();
    tx.commit().await.unwrap();
    TestStore { store, directory }
}

async fn postgres(server: &str) -> String {
    let name = format!("t_{}", clock::new_id().simple());
    let admin = sea_orm::Database::connect(server).await.unwrap();
    admin
        .execute_unprepared(&format!("CREATE DATABASE {name}"))
        .await
        .unwrap();
    admin.close().await.unwrap();
    let (root, _) = server.rsplit_once('/').unwrap();
    format!("{root}/{name}")
}
