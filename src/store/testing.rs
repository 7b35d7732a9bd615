//! Databases for tests: an SQLite file, and also a PostgreSQL database if `EINVOICE_TEST_POSTGRES` names a server.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::sync::Once;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use database::vault::{KEY_LEN, Vault};
use database::{PoolSettings, StoreError, sql};
use sea_orm::{ConnectionTrait, Database, DbBackend, Order, Statement, Value};
use tempfile::TempDir;
use timing::clock;
use tokio::sync::OnceCell;

use crate::store::Store;
use crate::store::lanes::{LaneKind, Lease, claim};

static SKIPPED: Once = Once::new();
/// The files of a migrated SQLite database, by their names, and the name of a migrated PostgreSQL database. Each test
/// gets a copy, because to migrate takes longer than most tests do.
static MIGRATED_FILES: OnceCell<Vec<(OsString, Vec<u8>)>> = OnceCell::const_new();
static MIGRATED_DATABASE: OnceCell<String> = OnceCell::const_new();

/// A database for one test. Dropping it removes the SQLite file; a PostgreSQL database stays.
pub(crate) struct TestStore {
    pub(crate) store: Store,
    pub(crate) url: String,
    _directory: TempDir,
}

/// Creates a fresh SQLite database and, if a PostgreSQL server is configured, a fresh PostgreSQL database.
pub(crate) async fn stores() -> Vec<TestStore> {
    let mut stores = vec![sqlite_store().await];
    if let Ok(server) = std::env::var("EINVOICE_TEST_POSTGRES") {
        stores.push(postgres_store(&server).await);
    } else {
        SKIPPED.call_once(|| {
            // Written to stderr directly, because the test harness hides the output of `eprintln!`.
            let line = "SKIPPED: the PostgreSQL half of the tests of the store: EINVOICE_TEST_POSTGRES names no server\n";
            std::io::stderr().write_all(line.as_bytes()).unwrap();
        });
    }
    stores
}

pub(crate) async fn sqlite_store() -> TestStore {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in MIGRATED_FILES.get_or_init(migrated_files).await {
        fs::write(directory.path().join(name), content).unwrap();
    }
    open(sqlite_url(&directory), directory).await
}

/// Migrates an SQLite database, and returns what it leaves in its directory when it is closed.
async fn migrated_files() -> Vec<(OsString, Vec<u8>)> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let test = open(sqlite_url(&directory), directory).await;
    test.store.migrate().await.unwrap();
    test.store.close().await;
    let files = fs::read_dir(path).unwrap();
    files
        .map(Result::unwrap)
        .map(|file| (file.file_name(), fs::read(file.path()).unwrap()))
        .collect()
}

fn sqlite_url(directory: &TempDir) -> String {
    format!("sqlite://{}", directory.path().join("test.db").display())
}

async fn postgres_store(server: &str) -> TestStore {
    let migrated = MIGRATED_DATABASE
        .get_or_init(|| migrated_database(server))
        .await;
    let name = create_database(server, migrated).await;
    open(postgres_url(server, &name), tempfile::tempdir().unwrap()).await
}

/// Migrates a PostgreSQL database, and returns its name when nobody is connected to it any more.
async fn migrated_database(server: &str) -> String {
    let name = create_database(server, "template1").await;
    let test = open(postgres_url(server, &name), tempfile::tempdir().unwrap()).await;
    test.store.migrate().await.unwrap();
    test.store.close().await;
    name
}

async fn open(url: String, directory: TempDir) -> TestStore {
    let vault = Vault::new(&STANDARD.encode([7; KEY_LEN])).unwrap();
    let store = Store::open(&url, &PoolSettings::default(), vault)
        .await
        .unwrap();
    TestStore {
        store,
        url,
        _directory: directory,
    }
}

/// Creates a copy of a database that nobody is connected to, and returns its name.
async fn create_database(server: &str, template: &str) -> String {
    let name = format!("t_{}", clock::new_id().simple());
    let admin = Database::connect(server).await.unwrap();
    admin
        .execute_unprepared(&format!("CREATE DATABASE {name} TEMPLATE {template}"))
        .await
        .unwrap();
    admin.close().await.unwrap();
    name
}

fn postgres_url(server: &str, name: &str) -> String {
    let (root, _) = server.rsplit_once('/').unwrap();
    format!("{root}/{name}")
}

/// Claims lanes that are due and free, in the order of their due times and without regard to fairness.
pub(crate) async fn claim_due(
    store: &Store,
    kind: LaneKind,
    owner: &str,
    lease: Duration,
    limit: u64,
) -> Result<Vec<Lease>, StoreError> {
    let mut free = claim::select_free_lanes(kind, &sql::now(store.backend()));
    free.order_by("next_due_at", Order::Asc).limit(limit);
    let claimed = claim::claim_selected(store, kind, owner, lease, free).await?;
    Ok(claimed.into_iter().map(|one| one.lease).collect())
}

/// Adds the bare row of a taxpayer.
pub(crate) async fn add_taxpayer(store: &Store, id: i64, integrator: i64) {
    let names = [
        "name",
        "email",
        "email_key",
        "tin",
        "tin_normal",
        "service_id",
        "service_id_key",
        "business_id",
        "business_id_key",
        "address",
        "search_text",
    ];
    let columns = names.join(", ");
    let values = names.map(|_| format!("'{id}'")).join(", ");
    let sql = format!(
        "INSERT INTO taxpayers (id, integrator_id, subscription, verification, created_at, updated_at, {columns}) \
         VALUES ({id}, {integrator}, 'active', 'pending', 0, 0, {values})"
    );
    let tx = store.begin().await.unwrap();
    tx.execute_unprepared(&sql).await.unwrap();
    tx.commit().await.unwrap();
}

/// Returns the steps of the query plan of this SQL statement.
pub(crate) async fn query_plan(
    store: &Store,
    sql: &str,
    values: impl IntoIterator<Item = Value>,
) -> Vec<String> {
    let (explain, column) = match store.backend() {
        DbBackend::Postgres => ("EXPLAIN", "QUERY PLAN"),
        _ => ("EXPLAIN QUERY PLAN", "detail"),
    };
    let statement =
        Statement::from_sql_and_values(store.backend(), format!("{explain} {sql}"), values);
    let steps = store.reader().query_all_raw(statement).await.unwrap();
    steps
        .iter()
        .map(|step| step.try_get("", column).unwrap())
        .collect()
}
