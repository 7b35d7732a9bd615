//! The open database. A committed change is on disk (SQLite: `synchronous` is FULL).

use std::time::Duration;

use jiff::Timestamp;
use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement};

use crate::column::RowRef;
use crate::error::StoreError;
use crate::group_commit::{Sharing, WriterPool};
use crate::log_copies::LogCopies;
use crate::metrics::StoreMetrics;
use crate::pool::{Pool, WITHOUT_LIMITS};
use crate::pool_settings::PoolSettings;
use crate::readers::Readers;
use crate::sql::dialect;
use crate::transaction::Transaction;

/// The maximum number of rows in one statement. More rows could need more bound values than the database allows.
const ROWS_PER_STATEMENT: usize = 256;
/// Statements take a multiple of this number of rows, except the last. So each connection prepares only few statements.
const ROWS_PER_STATEMENT_STEP: usize = 64;

/// Splits rows or keys into slices that are small enough for one statement.
pub fn statement_portions<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let count = match rest.len() {
            0 => return None,
            few if few <= ROWS_PER_STATEMENT_STEP => few,
            many => {
                many.min(ROWS_PER_STATEMENT) / ROWS_PER_STATEMENT_STEP * ROWS_PER_STATEMENT_STEP
            }
        };
        let (portion, others) = rest.split_at(count);
        rest = others;
        Some(portion)
    })
}

/// An open database. Clones share its connections.
#[derive(Clone)]
pub struct Database {
    writer: WriterPool,
    readers: Readers,
    /// `None` on PostgreSQL.
    log_copies: Option<LogCopies>,
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
        let metrics = StoreMetrics {
            read_waits: readers.main.waits().clone(),
            ..StoreMetrics::default()
        };
        let writer = WriterPool::new(writer, settings.busy_wait, metrics);
        let log_copies = match writer.turns() {
            Some(turns) => {
                let pool = Pool::open_for_log_copies(url, settings).await?;
                Some(LogCopies::begin(pool, turns.clone()))
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
        self.writer.begin(Sharing::Shared).await
    }

    /// Begins a transaction that shares its commit with no other, even on SQLite.
    pub async fn begin_apart(&self) -> Result<Transaction, StoreError> {
        self.writer.begin(Sharing::Apart).await
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
    pub async fn snapshot(&self) -> Result<Transaction, StoreError> {
        Transaction::snapshot(&self.readers.snapshots).await
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

    /// Executes one statement and commits it. After an error the statement may still have been committed.
    pub async fn execute_and_commit(
        &self,
        statement: Statement,
    ) -> Result<Option<QueryResult>, StoreError> {
        self.writer.query_one_and_commit(statement).await
    }

    /// Replaces the write connections of PostgreSQL. Call this after the end of a thread with its own runtime:
    /// connections that were opened in that runtime may have ended with it.
    pub async fn renew_writers(&self) -> Result<(), StoreError> {
        self.writer.renew().await
    }

    pub fn metrics(&self) -> &StoreMetrics {
        self.writer.metrics()
    }

    /// Returns the pool for queries. A task that makes a page gets the pool of pages.
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

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;
    use crate::readers::run_as_page;
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
            assert!(run_as_page(query()).await.is_ok());
            test.store.readers.pages.close().await.unwrap();
            assert!(run_as_page(query()).await.is_err());
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

    #[test]
    fn rows_are_written_in_statements_of_few_sizes() {
        let sizes = |count| {
            statement_portions(&vec![(); count])
                .map(<[()]>::len)
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes(0), [0; 0]);
        assert_eq!(
            (sizes(1), sizes(63), sizes(64)),
            (vec![1], vec![63], vec![64])
        );
        assert_eq!((sizes(65), sizes(130)), (vec![64, 1], vec![128, 2]));
        assert_eq!(sizes(1_001), [256, 256, 256, 192, 41]);
    }
}
