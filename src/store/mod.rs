//! The database, SQLite or PostgreSQL. Both have the same migrations and nearly the same queries; `database::sql` holds
//! the SQL that differs. A function that finds rows takes their owner as a parameter. A function that writes rows takes
//! the transaction.
//!
//! | Concept | Module |
//! |---|---|
//! | the open database with its schema, and what this process keeps in memory beside it | `Store` |
//! | ids of rows, as callers see them | `ids` |
//! | the API keys and the integrators of taxpayers in memory | `key_cache`, `payers` |
//! | rows of several taxpayers by their identifiers, in one statement | `lookup` |
//! | deleting old rows | `old_rows` |
//! | checks of the database before a start | `inspection` |
//! | sealing all secrets again with a new key | `reseal` |
//! | lanes: one row that is lock, lease, schedule and fence of pending work | `lanes` |
//! | integrators, operators, taxpayers and their keys | `accounts` |
//! | invoices with their customers, items, payments and batches | `invoices` |
//! | responses to requests with an Idempotency-Key | `idempotency` |
//! | runs of the authority pipeline | `runs` |
//! | the event log and its checkpoints | `events` |
//! | endpoints, deliveries, attempts and replays | `webhooks` |
//! | audit, outages, reconciliation, reference lists, pulled invoices | `operations` |
//!
//! Connections, transactions and sealed secrets are in the crate `database`.

pub mod accounts;
pub mod events;
pub mod idempotency;
pub mod ids;
pub mod inspection;
pub mod invoices;
pub mod key_cache;
pub mod lanes;
pub(crate) mod lookup;
mod old_rows;
pub mod operations;
pub(crate) mod payers;
pub mod reseal;
pub mod runs;
#[cfg(test)]
pub(crate) mod testing;
pub mod webhooks;

use std::ops::Deref;
use std::sync::Arc;
use std::thread::available_parallelism;

use database::vault::Vault;
use database::{Database, PoolSettings, StoreError};
use migration::{Migrator, MigratorTrait};
use sea_orm::sea_query::{DeleteStatement, Expr, ExprTrait, InsertStatement, OnConflict, Query};
use sea_orm::{ConnectionTrait, DbBackend};
use timing::clock;

use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::store::ids::IdAllocator;
use crate::store::key_cache::KeyCache;
use crate::store::payers::PayerCache;

/// Takes the lock that lets only one process migrate at a time. The number identifies the lock and is arbitrary.
const LOCK_MIGRATION: &str = "SELECT pg_advisory_xact_lock(7295871046)";
/// The name of the row in `counters` that the health check updates.
const HEALTH_ROW: &str = "health";
/// The rows in `counters` that need new pages: the beginning of their names, their number, and the length of their
/// names. A page of PostgreSQL has room for four of them. A longer name would be compressed.
const PAGE_ROW_PREFIX: &str = "health-page-";
const PAGE_ROWS: usize = 64;
const PAGE_ROW_NAME_LEN: usize = 1_900;

/// The database of the service, with the vault, the assigned ids and the caches of this process.
#[derive(Clone)]
pub struct Store {
    database: Database,
    ids: IdAllocator,
    vault: Arc<Vault>,
    key_cache: Arc<KeyCache>,
    payers: Arc<PayerCache>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("backend", &self.backend())
            .finish_non_exhaustive()
    }
}

impl Deref for Store {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}

impl Store {
    /// Opens the database at a URL: `sqlite://path`, which is created if it does not exist, or `postgres://…`.
    pub async fn open(
        url: &str,
        settings: &PoolSettings,
        vault: Vault,
    ) -> Result<Self, StoreError> {
        Ok(Self::new(Database::open(url, settings).await?, vault))
    }

    /// Opens the database at a URL. Fails if the database does not exist.
    pub async fn open_existing(
        url: &str,
        settings: &PoolSettings,
        vault: Vault,
    ) -> Result<Self, StoreError> {
        let database = Database::open_existing(url, settings).await?;
        Ok(Self::new(database, vault))
    }

    fn new(database: Database, vault: Vault) -> Self {
        Self {
            ids: IdAllocator::new(database.clone()),
            database,
            vault: Arc::new(vault),
            key_cache: Arc::new(KeyCache::new()),
            payers: Arc::new(PayerCache::default()),
        }
    }

    /// Migrates the schema in one transaction. If several processes start at once, one migrates while the others wait.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let tx = self.begin_without_timeouts().await?;
        if self.backend() == DbBackend::Postgres {
            tx.execute_unprepared(LOCK_MIGRATION).await?;
        }
        Migrator::up(tx.driver_transaction()?, None).await?;
        tx.commit().await
    }

    pub fn ids(&self) -> &IdAllocator {
        &self.ids
    }

    /// Signs a text for this purpose with a key of this deployment. Fails if no signing key can be derived.
    pub(crate) fn sign(&self, purpose: &str, text: &[u8]) -> Result<Vec<u8>, StoreError> {
        let signature = self.vault.sign(purpose, text);
        signature.ok_or_else(|| StoreError::Corrupt {
            table: "secrets",
            id: purpose.to_owned(),
            reason: "no signing key can be derived".to_owned(),
        })
    }

    /// Returns true if `sign` made this signature, with the current key or an older one.
    pub(crate) fn verifies(&self, purpose: &str, text: &[u8], signature: &[u8]) -> bool {
        self.vault.verifies(purpose, text, signature)
    }

    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    pub(crate) fn key_cache(&self) -> &KeyCache {
        &self.key_cache
    }

    /// Returns the integrator of a taxpayer from memory; `None` if this process has not read it yet.
    /// `taxpayers::load_payer` reads it.
    pub fn known_payer(&self, taxpayer: TaxpayerId) -> Option<IntegratorId> {
        self.payers.find(taxpayer)
    }

    pub(crate) fn payers(&self) -> &PayerCache {
        &self.payers
    }

    /// Returns how many groups of commands may run at once; each group is one transaction for several taxpayers. SQLite
    /// has only one writer. On PostgreSQL, more groups than cores would only make the groups smaller, and each group
    /// costs the same statements.
    pub fn concurrent_groups(&self) -> usize {
        match self.backend() {
            DbBackend::Postgres => {
                available_parallelism().map_or(2, |cores| cores.get().clamp(2, 4))
            }
            _ => 1,
        }
    }

    /// Returns the number of large commands that may run at once. The limit leaves most connections and cores to other
    /// commands.
    pub fn concurrent_large(&self) -> usize {
        match self.backend() {
            DbBackend::Postgres => 2,
            _ => 1,
        }
    }

    /// Checks that the database commits a write, because a database with a full disk still answers queries. If a write
    /// has met a full disk, also checks that there is room for new pages again: the update of one row needs none.
    pub async fn check_writes(&self) -> Result<(), StoreError> {
        self.execute_and_commit(self.backend().build(&health_write()))
            .await?;
        if self.has_met_full_disk() {
            self.write_new_pages().await?;
            self.forget_full_disk();
        }
        self.reader().check().await?;
        Ok(())
    }

    /// Commits rows that need new pages, and deletes them again. They are committed because SQLite writes nothing to
    /// the disk before.
    async fn write_new_pages(&self) -> Result<(), StoreError> {
        let backend = self.backend();
        self.execute_and_commit(backend.build(&insert_page_rows()))
            .await?;
        self.execute_and_commit(backend.build(&delete_page_rows()))
            .await?;
        Ok(())
    }

    pub async fn close(self) {
        self.database.close().await;
    }
}

/// Returns a write to a row that nobody reads.
fn health_write() -> InsertStatement {
    Query::insert()
        .into_table("counters")
        .columns(["name", "next"])
        .values_panic([HEALTH_ROW.into(), 1_i64.into()])
        .on_conflict(
            OnConflict::column("name")
                .value("next", Expr::col(("counters", "next")).add(1_i64))
                .to_owned(),
        )
        .returning_col("next")
        .to_owned()
}

/// Returns the insert of rows that need new pages. Their names are new, so that replicas do not wait for each other.
fn insert_page_rows() -> InsertStatement {
    let id = clock::new_id().simple();
    let mut insert = Query::insert();
    insert.into_table("counters").columns(["name", "next"]);
    for number in 0..PAGE_ROWS {
        let name = format!("{PAGE_ROW_PREFIX}{id}-{number}-");
        let name = format!("{name:x<PAGE_ROW_NAME_LEN$}");
        insert.values_panic([name.into(), 1_i64.into()]);
    }
    insert
}

/// Returns the deletion of all such rows, also of those that an earlier check could not delete.
fn delete_page_rows() -> DeleteStatement {
    Query::delete()
        .from_table("counters")
        .and_where(Expr::col("name").like(format!("{PAGE_ROW_PREFIX}%")))
        .to_owned()
}

#[cfg(test)]
mod tests {
    use database::sql::{AliasedTable, Join, dialect};
    use sea_orm::Statement;

    use super::*;
    use crate::store::lanes::{IfLocked, LaneKind, LaneName, LanesToWake};
    use crate::store::testing::{query_plan, stores};

    #[tokio::test]
    async fn a_schema_of_a_newer_version_is_refused() {
        for test in stores().await {
            let tx = test.store.begin().await.unwrap();
            let newer =
                "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m9999_newer', 0)";
            tx.execute_unprepared(newer).await.unwrap();
            tx.commit().await.unwrap();
            let refused = test.store.migrate().await.unwrap_err().to_string();
            assert!(refused.contains("m9999_newer"), "{refused}");
        }
    }

    /// Returns the size of the table of the check, in bytes; of SQLite, that of all pages in use.
    async fn check_table_size(store: &Store) -> i64 {
        let backend = store.backend();
        let sql = match backend {
            DbBackend::Postgres => "SELECT pg_relation_size('counters') AS size",
            _ => {
                "SELECT (page_count - freelist_count) * page_size AS size \
                 FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()"
            }
        };
        let statement = Statement::from_string(backend, sql);
        let row = store.reader().query_one_raw(statement).await.unwrap();
        row.unwrap().try_get("", "size").unwrap()
    }

    async fn count_page_rows(store: &Store) -> i64 {
        let sql =
            format!("SELECT count(*) AS found FROM counters WHERE name LIKE '{PAGE_ROW_PREFIX}%'");
        let statement = Statement::from_string(store.backend(), sql);
        let row = store.reader().query_one_raw(statement).await.unwrap();
        row.unwrap().try_get("", "found").unwrap()
    }

    #[tokio::test]
    async fn the_check_for_room_needs_new_pages_and_leaves_no_row() {
        for test in stores().await {
            let store = &test.store;
            let size_before = check_table_size(store).await;
            let insert = store.backend().build(&insert_page_rows());
            store.execute_and_commit(insert).await.unwrap();
            assert_eq!(
                count_page_rows(store).await,
                i64::try_from(PAGE_ROWS).unwrap()
            );
            let grown = check_table_size(store).await - size_before;
            assert!(grown >= 100_000, "{grown} bytes");
            store.write_new_pages().await.unwrap();
            assert_eq!(count_page_rows(store).await, 0);
        }
    }

    #[tokio::test]
    async fn a_full_disk_is_forgotten_when_there_is_room_for_new_pages() {
        for test in stores().await {
            let store = &test.store;
            if store.backend() != DbBackend::Postgres {
                continue;
            }
            let tx = store.begin().await.unwrap();
            let full = "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '53100'; END $$";
            tx.execute_unprepared(full).await.unwrap_err();
            tx.rollback().await.unwrap();
            assert!(store.has_met_full_disk());
            store.check_writes().await.unwrap();
            assert!(!store.has_met_full_disk());
            assert_eq!(count_page_rows(store).await, 0);
        }
    }

    #[tokio::test]
    async fn a_lock_that_is_not_granted_in_time_is_told_from_a_database_that_is_gone() {
        for test in stores()
            .await
            .iter()
            .filter(|test| test.store.backend() == DbBackend::Postgres)
        {
            let tx = test.store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &["7".to_owned()], LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let holder = test.store.begin().await.unwrap();
            let lane = |key: &str| [LaneName::new(LaneKind::Endpoint, key)];
            lanes::lock(&holder, &lane("7"), IfLocked::Await)
                .await
                .unwrap();
            let waiting = test.store.begin().await.unwrap();
            let refused = lanes::lock(&waiting, &lane("7"), IfLocked::Await)
                .await
                .unwrap_err();
            assert!(
                refused.is_timeout() && refused.may_concern_one_member(),
                "{refused}"
            );
            drop(waiting);
            let tx = test.store.begin().await.unwrap();
            let other = lanes::lock(&tx, &lane("8"), IfLocked::Await).await;
            assert!(other.is_ok(), "another lane is free");
        }
    }

    #[tokio::test]
    async fn a_lateral_join_uses_the_index_for_each_row_of_a_list() {
        for test in stores().await {
            let backend = test.store.backend();
            let keys: Vec<_> = (0..1_000).map(|number| number.to_string()).collect();
            let tx = test.store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let condition = "l.kind = 'endpoint' AND l.key = CAST(given.value AS TEXT)";
            let by_key = match backend {
                DbBackend::Postgres => "using lanes_pkey",
                _ => "(kind=? AND key=?)",
            };
            for (join, found) in [(Join::Inner, 2), (Join::Left, 3)] {
                let dialect = dialect(backend);
                let joined = dialect.lateral_join(
                    join,
                    AliasedTable {
                        table: "lanes",
                        alias: "l",
                    },
                    condition,
                );
                let sql = format!(
                    "SELECT l.epoch FROM {} AS given {joined}",
                    dialect.json_numbers("$1")
                );
                let given = || ["[7, 999, 1000]".into()];
                let steps = query_plan(&test.store, &sql, given()).await;
                assert!(steps.iter().any(|step| step.contains(by_key)), "{steps:#?}");
                let statement = Statement::from_sql_and_values(backend, sql, given());
                assert_eq!(
                    test.store
                        .reader()
                        .query_all_raw(statement)
                        .await
                        .unwrap()
                        .len(),
                    found
                );
            }
        }
    }
}
