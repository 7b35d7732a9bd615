//! Connection pools. SQLite has one connection for writes and a few for reads, which never wait for the writer (WAL).
//! PostgreSQL has one pool for transactions and one for queries, so that transactions that wait for a lock do not block
//! queries.
//!
//! When one connection is found dead, its whole pool is replaced, because the other connections are probably dead too.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use sea_orm::prelude::async_trait::async_trait;
use sea_orm::sqlx::{Connection, Error as SqlxError, PgConnection};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    ExecResult, QueryResult, Statement, TransactionOptions, TransactionTrait,
};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::store::db::deadline::{CallLimit, Deadlines, Liveness, is_exhausted};

/// How long to wait for a free connection, for the lock of the commit group or for a locked database.
pub(crate) const WAIT: Duration = Duration::from_secs(5);
const SQLITE_READERS_MAX: u32 = 4;
/// How many prepared statements a connection keeps. SQL for a different number of rows is a different statement.
const STATEMENTS_KEPT: usize = 256;
/// PostgreSQL ends a slow statement itself. If it has not answered this long after that, the connection counts as dead.
const ANSWER_GRACE: Duration = Duration::from_secs(2);
/// The deadline of an SQLite call. It is long, because a call on a slow disk is not an error.
const SQLITE_CALL_MAX: Duration = Duration::from_mins(1);
/// A transaction may take this many times the deadline of one call.
const CALLS_A_TRANSACTION: u32 = 5;
/// A connection that was idle for longer than this is tested before use, because a firewall may have dropped it.
const TRUSTED_IDLE: Duration = Duration::from_secs(5);
/// How long a test of a connection may take.
const TEST_WAIT: Duration = Duration::from_secs(2);
/// How long closing the connections of a pool may take.
const CLOSE_WAIT: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy)]
pub struct PoolSettings {
    /// The maximum number of PostgreSQL connections for transactions.
    pub writers_max: u32,
    /// The maximum number of PostgreSQL connections for queries.
    pub readers_max: u32,
    /// How long a PostgreSQL statement waits for a lock.
    pub lock_timeout: Duration,
    /// How long a PostgreSQL statement may take.
    pub statement_timeout: Duration,
    /// How long a PostgreSQL transaction may be idle between two statements.
    pub idle_in_transaction_timeout: Duration,
    /// How long to wait while another process writes to the SQLite database.
    pub busy_wait: Duration,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            writers_max: 16,
            readers_max: 8,
            lock_timeout: Duration::from_secs(3),
            statement_timeout: Duration::from_secs(10),
            idle_in_transaction_timeout: Duration::from_secs(5),
            busy_wait: WAIT,
        }
    }
}

impl PoolSettings {
    fn deadlines(&self, backend: DbBackend) -> Deadlines {
        let call = match backend {
            DbBackend::Postgres => self.statement_timeout + ANSWER_GRACE,
            _ => SQLITE_CALL_MAX,
        };
        Deadlines { call, transaction: call * CALLS_A_TRANSACTION }
    }

    /// The settings of each PostgreSQL session. `jit` is off, since compiling our queries takes longer than running
    /// them. `enable_seqscan` is off: a plan made for a small table would scan it after it has grown. The `tcp_`
    /// settings end sessions of dead client machines, which hold locks.
    fn session(&self) -> [(&'static str, String); 9] {
        let millis = |duration: Duration| duration.as_millis().to_string();
        [
            ("jit", "off".into()),
            ("enable_seqscan", "off".into()),
            ("lock_timeout", millis(self.lock_timeout)),
            ("statement_timeout", millis(self.statement_timeout)),
            ("idle_in_transaction_session_timeout", millis(self.idle_in_transaction_timeout)),
            ("tcp_keepalives_idle", "10".into()),
            ("tcp_keepalives_interval", "5".into()),
            ("tcp_keepalives_count", "3".into()),
            ("tcp_user_timeout", "15000".into()),
        ]
    }
}

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
    backend: DbBackend,
    deadlines: Deadlines,
    runtime: Handle,
    current: RwLock<Generation>,
    /// Held while the connections are replaced, so that only one task replaces them.
    replacing: Mutex<()>,
}

/// The connections of the pool since it was last replaced. `liveness` records whether they still answer.
#[derive(Clone)]
struct Generation {
    connections: DatabaseConnection,
    liveness: Arc<Liveness>,
}

/// Runs the calls on a connection with deadlines, and records in `liveness` if they were answered.
#[derive(Clone)]
pub(crate) struct CallGuard {
    liveness: Arc<Liveness>,
    runtime: Handle,
    pub(crate) deadlines: Deadlines,
}

impl CallGuard {
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Awaits a call on the connection, for at most `most` and never longer than the usual deadline.
    pub(crate) fn call<T>(
        &self,
        most: Duration,
        call: impl Future<Output = Result<T, DbErr>>,
    ) -> impl Future<Output = Result<T, DbErr>> {
        let duration = most.min(self.deadlines.call);
        let limit = CallLimit { duration, tells_silence: duration == self.deadlines.call };
        self.liveness.watch(limit, &self.runtime, call)
    }

    pub(crate) fn with(self, deadlines: Deadlines) -> Self {
        Self { deadlines, ..self }
    }
}

impl Pool {
    /// Opens two pools: the first for writes, the second for reads.
    pub(crate) async fn open(
        url: &str,
        settings: &PoolSettings,
        is_created: bool,
    ) -> Result<(Self, Self), DbErr> {
        let pool = async |connections| {
            let (url, settings) = (url.to_owned(), *settings);
            if url.starts_with("sqlite:") {
                let options = move |_: &_| sqlite(&url, connections, is_created);
                Self::connect(DbBackend::Sqlite, &settings, Box::new(options)).await
            } else {
                let options = move |liveness: &_| postgres(&url, connections, &settings, liveness);
                Self::connect(DbBackend::Postgres, &settings, Box::new(options)).await
            }
        };
        let sizes = if url.starts_with("sqlite:") {
            (1, SQLITE_READERS_MAX)
        } else {
            (settings.writers_max, settings.readers_max)
        };
        Ok((pool(sizes.0).await?, pool(sizes.1).await?))
    }

    async fn connect(
        backend: DbBackend,
        settings: &PoolSettings,
        options: OptionsFactory,
    ) -> Result<Self, DbErr> {
        let liveness = Arc::new(Liveness::new());
        let connections = Database::connect(options(&liveness)).await?;
        Ok(Self(Arc::new(PoolInner {
            options,
            backend,
            deadlines: settings.deadlines(backend),
            runtime: Handle::current(),
            current: RwLock::new(Generation { connections, liveness }),
            replacing: Mutex::default(),
        })))
    }

    pub(crate) async fn begin(
        &self,
        options: TransactionOptions,
    ) -> Result<(DatabaseTransaction, CallGuard), DbErr> {
        let (connections, watch) = self.connections().await?;
        let begun = Box::pin(async { connections.begin_with_options(options).await });
        let begun = self.heard(&watch, watch.call(Duration::MAX, begun).await)?;
        Ok((begun, watch))
    }

    async fn call<T, F>(&self, call: impl FnOnce(DatabaseConnection) -> F) -> Result<T, DbErr>
    where
        F: Future<Output = Result<T, DbErr>> + Send,
    {
        let (connections, watch) = self.connections().await?;
        self.heard(&watch, watch.call(Duration::MAX, call(connections)).await)
    }

    /// Marks the pool as silent, so that it is replaced, if it had no free connection and answered no call.
    fn heard<T>(&self, watch: &CallGuard, result: Result<T, DbErr>) -> Result<T, DbErr> {
        let is_stuck =
            result.as_ref().err().is_some_and(is_exhausted) && watch.liveness.is_unanswered_for(WAIT);
        if is_stuck && self.0.backend == DbBackend::Postgres {
            watch.liveness.silent();
        }
        result
    }

    async fn connections(&self) -> Result<(DatabaseConnection, CallGuard), DbErr> {
        let mut current = self.current();
        if current.liveness.is_silent() && self.0.backend == DbBackend::Postgres {
            tracing::warn!("database connections do not answer; replacing the pool");
            current = Box::pin(self.replaced()).await?;
        }
        let Generation { connections, liveness } = current;
        let watch = CallGuard { liveness, runtime: self.0.runtime.clone(), deadlines: self.0.deadlines };
        Ok((connections, watch))
    }

    fn current(&self) -> Generation {
        self.0.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the connections if they are marked as silent. Closes the old connections in the background.
    async fn replaced(&self) -> Result<Generation, DbErr> {
        let _one = self.0.replacing.lock().await;
        let old = self.current();
        if !old.liveness.is_silent() {
            return Ok(old);
        }
        let liveness = Arc::new(Liveness::new());
        let connections =
            Database::connect((self.0.options)(&liveness).connect_lazy(true).to_owned()).await?;
        let new = Generation { connections, liveness };
        *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = new.clone();
        self.0.runtime.spawn(async move { timeout(CLOSE_WAIT, old.connections.close()).await });
        Ok(new)
    }

    /// Replaces the PostgreSQL connections. Call this after the runtime in which they were opened has ended.
    pub(crate) async fn renew(&self) -> Result<(), DbErr> {
        if self.0.backend == DbBackend::Postgres {
            self.current().liveness.silent();
            self.replaced().await?;
        }
        Ok(())
    }

    pub(crate) fn backend(&self) -> DbBackend {
        self.0.backend
    }

    /// Closes the connections. Returns an error if some connections did not close in time and were dropped.
    pub(crate) async fn close(&self) -> Result<(), DbErr> {
        let closed = timeout(CLOSE_WAIT, self.current().connections.close()).await;
        closed.unwrap_or_else(|_| {
            Err(DbErr::Custom(format!("connections were not closed within {CLOSE_WAIT:?}")))
        })
    }
}

#[async_trait]
impl ConnectionTrait for Pool {
    fn get_database_backend(&self) -> DbBackend {
        self.0.backend
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.call(|connections| async move { connections.execute_raw(statement).await }).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.call(|connections| async move { connections.execute_unprepared(sql).await }).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.call(|connections| async move { connections.query_one_raw(statement).await }).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.call(|connections| async move { connections.query_all_raw(statement).await }).await
    }
}

fn sqlite(url: &str, connections: u32, is_created: bool) -> ConnectOptions {
    let mut options = common(url, connections);
    options.map_sqlx_sqlite_opts(move |sqlite| {
        sqlite
            .create_if_missing(is_created)
            .foreign_keys(true)
            .busy_timeout(WAIT)
            .statement_cache_capacity(STATEMENTS_KEPT)
            .pragma("journal_mode", "WAL")
            .pragma("synchronous", "FULL")
            .pragma("cache_size", "-65536")
            .pragma("temp_store", "MEMORY")
    });
    options.map_sqlx_sqlite_pool_opts(|pool| {
        // Drop a connection on which SQLite has rolled back: for the driver the transaction is still open.
        pool.after_release(|connection, _| Box::pin(async { Ok(!connection.is_in_transaction()) }))
    });
    options
}

fn postgres(
    url: &str,
    connections: u32,
    settings: &PoolSettings,
    liveness: &Arc<Liveness>,
) -> ConnectOptions {
    let mut options = common(url, connections);
    let session = settings.session();
    options.map_sqlx_postgres_opts(move |postgres| {
        postgres.statement_cache_capacity(STATEMENTS_KEPT).options(session.clone())
    });
    let liveness = Arc::clone(liveness);
    options.map_sqlx_postgres_pool_opts(move |pool| {
        let (before, after) = (Arc::clone(&liveness), Arc::clone(&liveness));
        pool.before_acquire(move |connection, idle| {
            let liveness = Arc::clone(&before);
            Box::pin(async move {
                if idle.idle_for > TRUSTED_IDLE { test(connection, &liveness).await } else { Ok(true) }
            })
        })
        // Test a returned connection if the pool is in doubt (`is_doubted`): the driver's own test has no time limit.
        .after_release(move |connection, _| {
            let liveness = Arc::clone(&after);
            Box::pin(async move {
                if liveness.is_doubted() { test(connection, &liveness).await } else { Ok(true) }
            })
        })
    });
    options
}

/// Tests whether a connection still answers. After an error the driver drops the connection.
async fn test(connection: &mut PgConnection, liveness: &Liveness) -> Result<bool, SqlxError> {
    let answer = timeout(TEST_WAIT, connection.ping()).await;
    let answer = answer.unwrap_or_else(|_| {
        liveness.silent();
        Err(SqlxError::PoolTimedOut)
    });
    answer.map(|()| true)
}

fn common(url: &str, connections: u32) -> ConnectOptions {
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(connections)
        .min_connections(1)
        .acquire_timeout(WAIT)
        .connect_timeout(WAIT)
        .sqlx_logging(false)
        .test_before_acquire(false);
    options
}
