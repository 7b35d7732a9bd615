//! The open database and its transactions. The statements of a transaction have deadlines. The error of a failed commit
//! says whether the changes may have been stored. A committed change is on disk (SQLite: `synchronous` is FULL).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sea_orm::prelude::async_trait::async_trait;
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, ExecResult, IsolationLevel,
    QueryResult, Statement, TransactionOptions,
};
use tokio::sync::OwnedMappedMutexGuard;
use tokio::time::timeout;

use crate::broken::log_permanent_error_once;
use crate::column::RowRef;
use crate::deadline::{CallGuard, Deadlines, DroppedInRuntime};
use crate::error::{StoreError, proves_rollback};
use crate::group_commit::{CommitGroup, Sharing, TransactionKind, WriterPool};
use crate::log_copies::LogCopyTask;
use crate::metrics::DatabaseMetrics;
use crate::pool::{Pool, WITHOUT_LIMITS};
use crate::pool_settings::PoolSettings;
use crate::readers::Readers;
use crate::sql::dialect;

/// An open database. Clones share its connections.
#[derive(Clone)]
pub struct Database {
    writer: WriterPool,
    readers: Readers,
    /// `None` on PostgreSQL.
    log_copies: Option<LogCopyTask>,
    lock_timeout: Duration,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("backend", &self.backend())
            .finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the database at a URL: `sqlite://path`, which is created if it does not exist, or `postgres://…`.
    pub async fn open(url: &str, settings: &PoolSettings) -> Result<Self, StoreError> {
        Self::connect(url, settings, true).await
    }

    /// Opens the database at a URL. Fails if the database does not exist.
    pub async fn open_existing(url: &str, settings: &PoolSettings) -> Result<Self, StoreError> {
        Self::connect(url, settings, false).await
    }

    async fn connect(
        url: &str,
        settings: &PoolSettings,
        is_created: bool,
    ) -> Result<Self, StoreError> {
        let (writer, readers) = Pool::open(url, settings, is_created).await?;
        let metrics = DatabaseMetrics {
            read_waits: readers.main.read_waits().clone(),
            ..DatabaseMetrics::default()
        };
        let writer = WriterPool::new(writer, settings.busy_wait, metrics);
        let log_copies = match writer.turns() {
            Some(turns) => {
                let pool = Pool::open_for_log_copies(url, settings).await?;
                Some(LogCopyTask::start(pool, turns.clone()))
            }
            None => None,
        };
        let lock_timeout = settings.lock_timeout;
        Ok(Self {
            writer,
            readers,
            log_copies,
            lock_timeout,
        })
    }

    pub async fn begin(&self) -> Result<Transaction, StoreError> {
        self.begin_with_sharing(Sharing::Shared).await
    }

    /// Begins a transaction that has a commit of its own. On SQLite, concurrent transactions of `begin` share a commit.
    pub async fn begin_unshared(&self) -> Result<Transaction, StoreError> {
        self.begin_with_sharing(Sharing::Apart).await
    }

    async fn begin_with_sharing(&self, sharing: Sharing) -> Result<Transaction, StoreError> {
        let (kind, watch) = self.writer.begin(sharing).await?;
        Ok(Transaction::new(kind, self.backend(), watch))
    }

    /// Begins a transaction without timeouts, for a migration.
    pub async fn begin_without_timeouts(&self) -> Result<Transaction, StoreError> {
        let tx = self.begin().await?.without_limits();
        if self.backend() == DbBackend::Postgres {
            tx.execute_unprepared(WITHOUT_LIMITS).await?;
        }
        Ok(tx)
    }

    /// Begins a transaction that reads the database as it is now. On SQLite it neither waits for the writer nor delays
    /// the writer. End the transaction with `rollback`.
    pub async fn begin_snapshot(&self) -> Result<Transaction, StoreError> {
        Transaction::begin_snapshot(&self.readers.snapshots).await
    }

    /// Returns the time that the clock of the database shows.
    pub async fn database_now(&self) -> Result<Timestamp, StoreError> {
        let backend = self.backend();
        let sql = format!("SELECT {} AS present", dialect(backend).clock());
        let row = self
            .reader()
            .query_one_raw(Statement::from_string(backend, sql))
            .await?;
        let present = row.ok_or(StoreError::Stale)?.try_get("", "present")?;
        RowRef {
            table: "clock",
            id: "now",
        }
        .moment(present)
    }

    /// Executes and commits one statement, and returns its first row, if it returns rows. Use this only for a statement
    /// that may be executed twice: after an error, the statement may have been committed. On PostgreSQL this needs one
    /// request, because the statement is its own transaction.
    pub async fn execute_and_commit(
        &self,
        statement: Statement,
    ) -> Result<Option<QueryResult>, StoreError> {
        if self.backend() == DbBackend::Postgres {
            return Ok(self.writer.pool().query_one_raw(statement).await?);
        }
        let tx = self.begin().await?;
        let row = tx.query_one_raw(statement).await?;
        tx.commit().await?;
        Ok(row)
    }

    /// Replaces the write connections of PostgreSQL; does nothing on SQLite. Call this after the end of a thread with
    /// its own runtime: connections that were opened in that runtime may have ended with it.
    pub async fn replace_write_connections(&self) -> Result<(), StoreError> {
        self.writer.replace_connections().await
    }

    /// True if a write has failed because the disk is full, and `forget_full_disk` was not called since. Other writes
    /// may have succeeded meanwhile: a write that needs no new page succeeds on a full disk, too.
    pub fn has_met_full_disk(&self) -> bool {
        self.writer.pool().has_met_full_disk()
    }

    /// Forgets that the disk was full. Call this after a write that needed new pages has succeeded.
    pub fn forget_full_disk(&self) {
        self.writer.pool().forget_full_disk();
    }

    pub fn metrics(&self) -> &DatabaseMetrics {
        self.writer.metrics()
    }

    /// Returns the pool for queries. A task that renders a page (`run_with_page_pool`) gets the pool for pages.
    pub fn reader(&self) -> &Pool {
        self.readers.pool()
    }

    pub fn backend(&self) -> DbBackend {
        self.writer.backend()
    }

    /// Returns how long a caller waits for a row that another transaction has locked.
    pub fn lock_timeout(&self) -> Duration {
        self.lock_timeout
    }

    pub async fn close(self) {
        let Readers {
            main,
            pages,
            snapshots,
        } = &self.readers;
        let (main, pages, snapshots) = tokio::join!(main.close(), pages.close(), snapshots.close());
        let readers = [main, pages, snapshots].map(|closed| closed.map_err(StoreError::from));
        let log_copies = match &self.log_copies {
            Some(copies) => copies.close().await.map_err(StoreError::from),
            None => Ok(()),
        };
        let writer = self.writer.close().await;
        for closed in readers.into_iter().chain([log_copies, writer]) {
            if let Err(error) = closed {
                tracing::warn!(%error, "failed to close a database pool");
            }
        }
    }
}

/// A transaction: one that writes, or a snapshot for reading. If it is dropped without a commit, its changes are rolled
/// back.
pub struct Transaction {
    kind: DroppedInRuntime<TransactionKind>,
    backend: DbBackend,
    watch: CallGuard,
    ends_at: Instant,
    /// True if a statement has failed. `commit` then returns an error; PostgreSQL would roll back and report success.
    has_failed: AtomicBool,
}

impl Transaction {
    fn new(kind: TransactionKind, backend: DbBackend, watch: CallGuard) -> Self {
        let kind = DroppedInRuntime::new(kind, watch.runtime().clone());
        let ends_at = Instant::now() + watch.deadlines.transaction;
        Self {
            kind,
            backend,
            watch,
            ends_at,
            has_failed: AtomicBool::new(false),
        }
    }

    /// Begins a transaction that reads what was committed until now, and nothing that is committed later.
    async fn begin_snapshot(pool: &Pool) -> Result<Self, StoreError> {
        let mut options = TransactionOptions::default();
        if pool.backend() == DbBackend::Postgres {
            options.isolation_level = Some(IsolationLevel::RepeatableRead);
            options.access_mode = Some(AccessMode::ReadOnly);
        }
        let (own, watch) = pool.begin(options).await?;
        Ok(Self::new(
            TransactionKind::Dedicated(own),
            pool.backend(),
            watch,
        ))
    }

    /// Sets all deadlines to one day, because a migration may take long.
    fn without_limits(self) -> Self {
        let forever = Duration::from_hours(24);
        let deadlines = Deadlines {
            call: forever,
            transaction: forever,
        };
        Self {
            ends_at: Instant::now() + forever,
            watch: self.watch.with_deadlines(deadlines),
            ..self
        }
    }

    /// Commits. After success the changes are on disk. After the error `Unsettled` they may be; after other errors they
    /// are not.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        match self.kind.take() {
            Some(TransactionKind::Dedicated(own)) if self.has_failed.load(Ordering::Relaxed) => {
                self.watch.call(Duration::MAX, own.rollback()).await?;
                Err(StoreError::Unavailable(given_up_error(
                    "a statement of the transaction has failed",
                )))
            }
            Some(TransactionKind::Dedicated(own)) => self
                .watch
                .call(Duration::MAX, own.commit())
                .await
                .map_err(commit_error),
            Some(TransactionKind::Grouped(mut group)) => {
                group.keep_member_changes();
                self.wait_for_commit(group).await
            }
            None => Err(StoreError::Unsettled),
        }
    }

    /// Rolls back. A member of a commit group also waits for the group's commit, because it may have read changes of
    /// other members that are committed only then.
    pub async fn rollback(mut self) -> Result<(), StoreError> {
        match self.kind.take() {
            Some(TransactionKind::Dedicated(own)) => {
                Ok(self.watch.call(Duration::MAX, own.rollback()).await?)
            }
            Some(TransactionKind::Grouped(group)) => self.wait_for_commit(group).await,
            None => Ok(()),
        }
    }

    /// Lets the next member of the group run its statements, and waits for the group's commit.
    async fn wait_for_commit(
        &self,
        group: OwnedMappedMutexGuard<Option<CommitGroup>, CommitGroup>,
    ) -> Result<(), StoreError> {
        let mut outcome = group.outcome.subscribe();
        drop(group);
        let deadline = self.watch.deadlines.call;
        let settled = timeout(deadline, outcome.wait_for(Option::is_some)).await;
        let settled = settled
            .ok()
            .and_then(Result::ok)
            .ok_or(StoreError::Unsettled)?;
        settled.clone().unwrap_or(Err(StoreError::Unsettled))
    }

    /// Returns the driver's transaction, whose own calls have no deadlines. Migrations need this type. Fails if this
    /// transaction has ended.
    pub fn driver_transaction(&self) -> Result<&DatabaseTransaction, DbErr> {
        match self.kind.get() {
            Some(TransactionKind::Dedicated(own)) => Ok(own),
            Some(TransactionKind::Grouped(group)) => Ok(&group.whole),
            None => Err(given_up_error("the transaction has ended")),
        }
    }

    async fn call_with_deadline<T>(
        &self,
        call: impl Future<Output = Result<T, DbErr>>,
    ) -> Result<T, DbErr> {
        let left = self.ends_at.saturating_duration_since(Instant::now());
        let result = if left.is_zero() {
            Err(given_up_error("the transaction takes too long"))
        } else {
            self.watch.call(left, call).await
        };
        if result.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        result
    }
}

#[async_trait]
impl ConnectionTrait for Transaction {
    fn get_database_backend(&self) -> DbBackend {
        self.backend
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        let sql = statement.sql.clone();
        self.call_with_deadline(self.driver_transaction()?.execute_raw(statement))
            .await
            .inspect_err(|error| log_permanent_error_once(&sql, error))
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.call_with_deadline(self.driver_transaction()?.execute_unprepared(sql))
            .await
            .inspect_err(|error| log_permanent_error_once(sql, error))
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        let sql = statement.sql.clone();
        self.call_with_deadline(self.driver_transaction()?.query_one_raw(statement))
            .await
            .inspect_err(|error| log_permanent_error_once(&sql, error))
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let sql = statement.sql.clone();
        self.call_with_deadline(self.driver_transaction()?.query_all_raw(statement))
            .await
            .inspect_err(|error| log_permanent_error_once(&sql, error))
    }
}

fn given_up_error(reason: &str) -> DbErr {
    DbErr::Custom(reason.to_owned())
}

/// Converts the error of a failed commit. Returns `Unsettled` unless the error proves a rollback, because the commit
/// may have happened.
fn commit_error(error: DbErr) -> StoreError {
    if proves_rollback(&error) {
        return error.into();
    }
    tracing::warn!(%error, "the outcome of a commit is unknown");
    StoreError::Unsettled
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;
    use crate::readers::run_with_page_pool;
    use crate::testing::stores;

    /// Our build of sqlx can load SQLite extensions. This test proves that loading stays disabled.
    #[tokio::test]
    async fn sqlite_loads_no_extension() {
        let test = &stores().await[0];
        for text in [
            "SELECT load_extension('libm.so.6')",
            "SELECT load_extension('libm.so.6', 'sqlite3_init')",
        ] {
            let statement = Statement::from_string(test.store.backend(), text);
            let refused = test
                .store
                .reader()
                .query_one_raw(statement)
                .await
                .unwrap_err()
                .to_string();
            assert!(refused.contains("not authorized"), "{refused}");
        }
    }

    #[tokio::test]
    async fn every_session_has_its_limits_and_its_way_to_plan() {
        for test in stores()
            .await
            .iter()
            .filter(|test| test.store.backend() == DbBackend::Postgres)
        {
            for (setting, value) in [
                ("default_transaction_read_only", "off"),
                ("jit", "off"),
                ("enable_seqscan", "off"),
                ("lock_timeout", "3s"),
                ("statement_timeout", "10s"),
                ("idle_in_transaction_session_timeout", "5s"),
                ("tcp_keepalives_idle", "10"),
                ("tcp_keepalives_interval", "5"),
                ("tcp_keepalives_count", "3"),
                ("tcp_user_timeout", "15000"),
            ] {
                let show =
                    || Statement::from_string(DbBackend::Postgres, format!("SHOW {setting}"));
                let row = test
                    .store
                    .reader()
                    .query_one_raw(show())
                    .await
                    .unwrap()
                    .unwrap();
                assert_eq!(row.try_get_by_index::<String>(0).unwrap(), value);
                let tx = test.store.begin().await.unwrap();
                let row = tx.query_one_raw(show()).await.unwrap().unwrap();
                assert_eq!(row.try_get_by_index::<String>(0).unwrap(), value);
            }
        }
    }

    #[tokio::test]
    async fn pages_have_connections_of_their_own() {
        for test in stores().await {
            let query = async || test.store.reader().execute_unprepared("SELECT 1").await;
            assert!(run_with_page_pool(query()).await.is_ok());
            test.store.readers.pages.close().await.unwrap();
            assert!(run_with_page_pool(query()).await.is_err());
            assert!(query().await.is_ok(), "the API goes on");
        }
    }

    #[tokio::test]
    async fn a_database_whose_connections_are_all_in_use_answers() {
        let slow = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) \
                    SELECT count(*) FROM n";
        for test in stores().await {
            let reader = test.store.reader();
            let queries = (0..100).map(|_| reader.execute_unprepared(slow));
            tokio::select! {
                biased;
                _ = join_all(queries) => panic!("the check waited for a connection"),
                answer = reader.check() => answer.unwrap(),
            }
        }
    }
}
