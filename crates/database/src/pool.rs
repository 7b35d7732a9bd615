//! Connection pools. SQLite has one connection for writes and a few for reads, which never wait for the writer (WAL).
//! PostgreSQL has one pool for transactions and others for queries, so that transactions that wait for a lock do not
//! block queries. The queries of pages have a pool of their own, and so have the snapshots of SQLite (`readers`).
//!
//! When one connection is found dead, its whole pool is replaced, because the other connections are probably dead too.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use sea_orm::prelude::async_trait::async_trait;
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbBackend,
    DbErr, ExecResult, QueryResult, Statement, TransactionOptions, TransactionTrait,
};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::broken::log_permanent_error_once;
use crate::deadline::{CallGuard, Deadlines, Liveness, is_pool_closed, is_pool_exhausted};
use crate::kept_connections::keep_connections;
use crate::metrics::ReadWaits;
use crate::pool_generation::PoolGeneration;
use crate::pool_settings::{
    BUSY_WAIT, PoolSettings, SqlitePurpose, postgres_options, sqlite_options,
};
use crate::readers::Readers;

const SQLITE_READERS_MAX: u32 = 4;
const SQLITE_PAGE_READERS_MAX: u32 = 2;
/// The number of SQLite connections for snapshots. Only large commands read snapshots, so they can wait for each other.
const SQLITE_SNAPSHOTS_MAX: u32 = 1;
/// The longest time that closing the connections of a pool may take.
const CLOSE_WAIT: Duration = Duration::from_secs(3);
/// The interval at which `Pool::check` looks whether any other query was answered.
const ANSWER_LOOK_EVERY: Duration = Duration::from_millis(100);

/// Lifts the timeouts of the session for one transaction, since a migration may take longer.
pub(crate) const WITHOUT_LIMITS: &str = "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; \
     SET LOCAL idle_in_transaction_session_timeout = 0";

/// Creates the connection options of a pool. When a connection is tested, the result is recorded in the `Liveness`.
type OptionsFactory = Box<dyn Fn(&Arc<Liveness>) -> ConnectOptions + Send + Sync>;

/// A pool of database connections for single statements and for beginning transactions. Clones share the connections.
#[derive(Clone)]
pub struct Pool(Arc<PoolInner>);

struct PoolInner {
    options: OptionsFactory,
    /// True if the pool only runs queries. Its connections are then kept for the next query (`kept_connections`).
    keeps_connections: bool,
    backend: DbBackend,
    deadlines: Deadlines,
    runtime: Handle,
    current: RwLock<PoolGeneration>,
    waits: ReadWaits,
    /// Held while the connections are replaced, so that only one task replaces them.
    replacing: Mutex<()>,
}

/// Opens connections. The future is boxed, because the drivers nest their futures some 60 levels deep: a program that
/// awaits it in place exceeds the `recursion_limit` of the optimising compiler and is not built.
fn open_connections(
    options: ConnectOptions,
) -> Pin<Box<dyn Future<Output = Result<DatabaseConnection, DbErr>> + Send>> {
    Box::pin(Database::connect(options))
}

impl Pool {
    /// Returns the runtime in which the pool was opened. It lasts as long as the pool.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// Opens the pool for writes and the pools for reads.
    pub(crate) async fn open(
        url: &str,
        settings: &PoolSettings,
        is_created: bool,
    ) -> Result<(Self, Readers), DbErr> {
        let pool = async |connections, keeps_connections| {
            let url = url.to_owned();
            let settings = *settings;
            if url.starts_with("sqlite:") {
                let purpose = if keeps_connections {
                    SqlitePurpose::Queries
                } else {
                    SqlitePurpose::Transactions
                };
                let options: OptionsFactory =
                    Box::new(move |_| sqlite_options(&url, connections, is_created, purpose));
                Self::connect(DbBackend::Sqlite, &settings, options, keeps_connections).await
            } else {
                let options: OptionsFactory = Box::new(move |liveness| {
                    postgres_options(&url, connections, &settings, liveness)
                });
                Self::connect(DbBackend::Postgres, &settings, options, keeps_connections).await
            }
        };
        let sizes = if url.starts_with("sqlite:") {
            [1, SQLITE_READERS_MAX, SQLITE_PAGE_READERS_MAX]
        } else {
            [
                settings.writers_max,
                settings.readers_max,
                settings.page_readers_max,
            ]
        };
        let [writers_max, readers_max, page_readers_max] = sizes;
        let writer = pool(writers_max, false).await?;
        let snapshots = match writer.backend() {
            DbBackend::Postgres => writer.clone(),
            _ => pool(SQLITE_SNAPSHOTS_MAX, false).await?,
        };
        let main = pool(readers_max, true).await?;
        let pages = pool(page_readers_max, true).await?;
        Ok((
            writer,
            Readers {
                main,
                pages,
                snapshots,
            },
        ))
    }

    /// Opens the connection that copies the log of an SQLite database.
    pub(crate) async fn open_for_log_copies(
        url: &str,
        settings: &PoolSettings,
    ) -> Result<Self, DbErr> {
        let url = url.to_owned();
        let options: OptionsFactory =
            Box::new(move |_| sqlite_options(&url, 1, false, SqlitePurpose::LogCopies));
        Self::connect(DbBackend::Sqlite, settings, options, false).await
    }

    async fn connect(
        backend: DbBackend,
        settings: &PoolSettings,
        options: OptionsFactory,
        keeps_connections: bool,
    ) -> Result<Self, DbErr> {
        let liveness = Arc::new(Liveness::new());
        let connections = open_connections(options(&liveness)).await?;
        let deadlines = settings.deadlines(backend);
        let runtime = Handle::current();
        let waits = ReadWaits::default();
        let kept =
            keeps_connections.then(|| keep_connections(&connections, &liveness, &waits, &runtime));
        let current = RwLock::new(PoolGeneration {
            connections,
            kept,
            liveness,
        });
        let replacing = Mutex::default();
        let inner = PoolInner {
            options,
            keeps_connections,
            backend,
            deadlines,
            runtime,
            current,
            waits,
            replacing,
        };
        Ok(Self(Arc::new(inner)))
    }

    pub(crate) fn read_waits(&self) -> &ReadWaits {
        &self.0.waits
    }

    pub(crate) fn has_met_full_disk(&self) -> bool {
        self.current_generation().liveness.has_met_full_disk()
    }

    pub(crate) fn forget_full_disk(&self) {
        self.current_generation().liveness.forget_full_disk();
    }

    pub(crate) async fn begin(
        &self,
        options: TransactionOptions,
    ) -> Result<(DatabaseTransaction, CallGuard), DbErr> {
        self.run(|current| {
            Box::pin(async move { current.connections.begin_with_options(options).await })
        })
        .await
    }

    async fn call<T, F>(&self, call: impl Fn(PoolGeneration) -> F) -> Result<T, DbErr>
    where
        F: Future<Output = Result<T, DbErr>> + Send,
    {
        self.run(call).await.map(|(value, _)| value)
    }

    /// Runs a call on the connections that the pool uses now, and returns its value and the guard of these connections.
    /// Another task may replace the connections while the call waits for one of them. The call was not sent then, so it
    /// runs once more, on the new connections.
    async fn run<T, F>(&self, call: impl Fn(PoolGeneration) -> F) -> Result<(T, CallGuard), DbErr>
    where
        F: Future<Output = Result<T, DbErr>> + Send,
    {
        match self.run_once(&call).await {
            Err(error) if is_pool_closed(&error) => self.run_once(&call).await,
            result => result,
        }
    }

    async fn run_once<T, F>(
        &self,
        call: &impl Fn(PoolGeneration) -> F,
    ) -> Result<(T, CallGuard), DbErr>
    where
        F: Future<Output = Result<T, DbErr>> + Send,
    {
        let (current, watch) = self.usable_connections().await?;
        let result = watch.call(Duration::MAX, call(current)).await;
        let value = self.mark_silent_if_stuck(&watch, result)?;
        Ok((value, watch))
    }

    /// Returns `result` unchanged. If the pool had no free connection and answered no call for `BUSY_WAIT`, marks it as
    /// silent, so that its connections are replaced.
    fn mark_silent_if_stuck<T>(
        &self,
        watch: &CallGuard,
        result: Result<T, DbErr>,
    ) -> Result<T, DbErr> {
        let is_stuck = result.as_ref().err().is_some_and(is_pool_exhausted)
            && watch.liveness.is_unanswered_for(BUSY_WAIT);
        if is_stuck && self.0.backend == DbBackend::Postgres {
            watch.liveness.mark_silent();
        }
        result
    }

    /// Checks that the database answers: sends a query, and waits until this or any other query on the pool is
    /// answered. Other queries may take all connections, so that this one waits although the database works.
    pub async fn check(&self) -> Result<(), DbErr> {
        let mut query = pin!(self.execute_unprepared("SELECT 1"));
        while self
            .current_generation()
            .liveness
            .is_unanswered_for(BUSY_WAIT)
        {
            if let Ok(answer) = timeout(ANSWER_LOOK_EVERY, &mut query).await {
                return answer.map(drop);
            }
        }
        Ok(())
    }

    async fn usable_connections(&self) -> Result<(PoolGeneration, CallGuard), DbErr> {
        let mut current = self.current_generation();
        if current.liveness.is_silent() && self.0.backend == DbBackend::Postgres {
            tracing::warn!("database connections do not answer; replacing the pool");
            current = Box::pin(self.replace_silent_connections()).await?;
        }
        let liveness = Arc::clone(&current.liveness);
        let watch = CallGuard {
            liveness,
            runtime: self.0.runtime.clone(),
            deadlines: self.0.deadlines,
        };
        Ok((current, watch))
    }

    fn current_generation(&self) -> PoolGeneration {
        self.0
            .current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Replaces the connections if they are marked as silent. Closes the old connections in the background.
    async fn replace_silent_connections(&self) -> Result<PoolGeneration, DbErr> {
        let _one = self.0.replacing.lock().await;
        let old = self.current_generation();
        if !old.liveness.is_silent() {
            return Ok(old);
        }
        let liveness = Arc::new(Liveness::new());
        let options = (self.0.options)(&liveness).connect_lazy(true).to_owned();
        let connections = open_connections(options).await?;
        let kept = self
            .0
            .keeps_connections
            .then(|| keep_connections(&connections, &liveness, &self.0.waits, &self.0.runtime));
        let new = PoolGeneration {
            connections,
            kept,
            liveness,
        };
        *self
            .0
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner) = new.clone();
        self.0
            .runtime
            .spawn(async move { timeout(CLOSE_WAIT, old.close()).await });
        Ok(new)
    }

    /// Replaces the PostgreSQL connections. Call this after the runtime in which they were opened has ended.
    pub(crate) async fn replace_connections(&self) -> Result<(), DbErr> {
        if self.0.backend == DbBackend::Postgres {
            self.current_generation().liveness.mark_silent();
            self.replace_silent_connections().await?;
        }
        Ok(())
    }

    pub(crate) fn backend(&self) -> DbBackend {
        self.0.backend
    }

    /// Closes the connections. Returns an error if some connections did not close in time and were dropped.
    pub(crate) async fn close(&self) -> Result<(), DbErr> {
        let closed = timeout(CLOSE_WAIT, self.current_generation().close()).await;
        closed.unwrap_or_else(|_| {
            Err(DbErr::Custom(format!(
                "connections were not closed within {CLOSE_WAIT:?}"
            )))
        })
    }
}

#[async_trait]
impl ConnectionTrait for Pool {
    fn get_database_backend(&self) -> DbBackend {
        self.0.backend
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.call(|current| {
            let statement = statement.clone();
            async move {
                match current.kept_connections() {
                    Some(kept) => kept.execute(statement).await,
                    None => current.connections.execute_raw(statement).await,
                }
            }
        })
        .await
        .inspect_err(|error| log_permanent_error_once(&statement.sql, error))
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.call(|current| async move {
            match current.kept_connections() {
                Some(kept) => kept.execute_unprepared(sql).await,
                None => current.connections.execute_unprepared(sql).await,
            }
        })
        .await
        .inspect_err(|error| log_permanent_error_once(sql, error))
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.call(|current| {
            let statement = statement.clone();
            async move {
                match current.kept_connections() {
                    Some(kept) => kept.query_one(statement).await,
                    None => current.connections.query_one_raw(statement).await,
                }
            }
        })
        .await
        .inspect_err(|error| log_permanent_error_once(&statement.sql, error))
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.call(|current| {
            let statement = statement.clone();
            async move {
                match current.kept_connections() {
                    Some(kept) => kept.query_all(statement).await,
                    None => current.connections.query_all_raw(statement).await,
                }
            }
        })
        .await
        .inspect_err(|error| log_permanent_error_once(&statement.sql, error))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use tokio::time::sleep;

    use super::*;
    use crate::testing::stores;

    /// Long enough for all connections of a pool to be taken.
    const TAKING: Duration = Duration::from_millis(300);

    #[tokio::test]
    async fn who_waits_while_the_pool_is_replaced_gets_a_new_connection() {
        for test in stores()
            .await
            .iter()
            .filter(|test| test.store.backend() == DbBackend::Postgres)
        {
            let store = &test.store;
            let settings = PoolSettings::default();
            let mut held = Vec::new();
            for _ in 0..settings.writers_max {
                held.push(store.begin().await.unwrap());
            }
            let replace = async {
                sleep(TAKING).await;
                store.replace_write_connections().await
            };
            let (begun, replaced) = tokio::join!(store.begin(), replace);
            replaced.unwrap();
            let tx = begun.unwrap();
            tx.execute_unprepared("SELECT 1").await.unwrap();
            tx.commit().await.unwrap();
            let reader = store.reader();
            let slow =
                (0..settings.readers_max).map(|_| reader.execute_unprepared("SELECT pg_sleep(1)"));
            let wait = async {
                sleep(TAKING).await;
                reader.execute_unprepared("SELECT 1").await
            };
            let replace = async {
                sleep(TAKING * 2).await;
                reader.replace_connections().await
            };
            let (slow, waited, replaced) = tokio::join!(join_all(slow), wait, replace);
            replaced.unwrap();
            waited.unwrap();
            assert!(slow.iter().all(Result::is_ok), "{slow:?}");
        }
    }
}
