//! Databases for tests: an SQLite file, and also a PostgreSQL database if `EINVOICE_TEST_POSTGRES` names a server.

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

use crate::store::Store;
use crate::store::lanes::{LaneKind, Lease, claim};

static SKIPPED: Once = Once::new();

/// A database for one test. Dropping it removes the SQLite file; a PostgreSQL database stays.
pub(crate) struct TestStore {
    pub(crate) store: Store,
    pub(crate) url: String,
    _directory: TempDir,
}

/// Creates an empty SQLite database and, if a PostgreSQL server is configured, an empty PostgreSQL database.
pub(crate) async fn stores() -> Vec<TestStore> {
    let mut stores = vec![open(None).await];
    if let Ok(server) = std::env::var("EINVOICE_TEST_POSTGRES") {
        stores.push(open(Some(&server)).await);
    } else {
        SKIPPED.call_once(|| {
            // Written to stderr directly, because the test harness hides the output of `eprintln!`.
            let line = "SKIPPED: the PostgreSQL half of the tests of the store: EINVOICE_TEST_POSTGRES names no server\n";
            std::io::stderr().write_all(line.as_bytes()).unwrap();
        });
    }
    for test in &stores {
        test.store.migrate().await.unwrap();
    }
    stores
}

pub(crate) async fn sqlite_store() -> TestStore {
    let test = open(None).await;
    test.store.migrate().await.unwrap();
    test
}

async fn open(server: Option<&str>) -> TestStore {
    let directory = tempfile::tempdir().unwrap();
    let url = match server {
        Some(server) => postgres(server).await,
        None => format!("sqlite://{}", directory.path().join("test.db").display()),
    };
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

async fn postgres(server: &str) -> String {
    let name = format!("t_{}", clock::new_id().simple());
    let admin = Database::connect(server).await.unwrap();
    admin
        .execute_unprepared(&format!("CREATE DATABASE {name}"))
        .await
        .unwrap();
    admin.close().await.unwrap();
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
    let mut free = claim::select_free(kind, &sql::now(store.backend()));
    free.order_by("next_due_at", Order::Asc).limit(limit);
    let claimed = claim::claim_where(store, kind, owner, lease, free).await?;
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
