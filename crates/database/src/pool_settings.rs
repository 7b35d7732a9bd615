//! The settings of a pool, and how its connections are opened and tested.

use std::sync::Arc;
use std::time::Duration;

use sea_orm::sqlx::{Connection, Error as SqlxError, PgConnection};
use sea_orm::{ConnectOptions, DbBackend};
use tokio::time::timeout;

use crate::deadline::{Deadlines, Liveness};

/// The longest wait for a free connection, for the lock of the commit group or for a locked database.
pub(crate) const BUSY_WAIT: Duration = Duration::from_secs(5);
/// The number of prepared statements that a connection keeps. SQL for a different number of rows is a different
/// statement.
const STATEMENTS_KEPT: usize = 256;
/// PostgreSQL itself ends a statement after `statement_timeout`. If no answer has come this long after that, the
/// connection counts as dead.
const ANSWER_GRACE: Duration = Duration::from_secs(2);
/// The deadline of an SQLite call. It is long, because a call on a slow disk is not an error.
const SQLITE_CALL_MAX: Duration = Duration::from_mins(1);
/// A transaction may take this many times the deadline of one call.
const CALL_DEADLINES_PER_TRANSACTION: u32 = 5;
/// A connection that was idle for longer than this is tested before use, because a firewall may have dropped it.
pub(crate) const UNTESTED_IDLE_MAX: Duration = Duration::from_secs(5);
/// The longest time that a test of a connection may take.
pub(crate) const TEST_WAIT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
pub struct PoolSettings {
    /// The maximum number of PostgreSQL connections for transactions.
    pub writers_max: u32,
    /// The maximum number of PostgreSQL connections for queries.
    pub readers_max: u32,
    /// The maximum number of PostgreSQL connections for the queries of pages.
    pub page_readers_max: u32,
    /// The longest time that a PostgreSQL statement waits for a lock.
    pub lock_timeout: Duration,
    /// The longest time that a PostgreSQL statement may take.
    pub statement_timeout: Duration,
    /// The longest time that a PostgreSQL transaction may be idle between two statements.
    pub idle_in_transaction_timeout: Duration,
    /// The longest time to wait while another process writes to the SQLite database.
    pub busy_wait: Duration,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            writers_max: 16,
            readers_max: 8,
            page_readers_max: 4,
            lock_timeout: Duration::from_secs(3),
            statement_timeout: Duration::from_secs(10),
            idle_in_transaction_timeout: Duration::from_secs(5),
            busy_wait: BUSY_WAIT,
        }
    }
}

impl PoolSettings {
    pub(super) fn deadlines(&self, backend: DbBackend) -> Deadlines {
        let call = match backend {
            DbBackend::Postgres => self.statement_timeout + ANSWER_GRACE,
            _ => SQLITE_CALL_MAX,
        };
        Deadlines {
            call,
            transaction: call * CALL_DEADLINES_PER_TRANSACTION,
        }
    }

    /// Returns the settings of each PostgreSQL session. `jit` is off, since compiling our queries takes longer than
    /// running them. `enable_seqscan` is off, because a plan that was made for a small table would still scan the table
    /// after it has grown. The `tcp_` settings end sessions of dead client machines, which hold locks. Every write is
    /// read-write whatever the default of the database, so that a single statement and a transaction do the same.
    fn session_settings(&self) -> [(&'static str, String); 10] {
        [
            ("default_transaction_read_only", "off".into()),
            ("jit", "off".into()),
            ("enable_seqscan", "off".into()),
            ("lock_timeout", milliseconds(self.lock_timeout)),
            ("statement_timeout", milliseconds(self.statement_timeout)),
            (
                "idle_in_transaction_session_timeout",
                milliseconds(self.idle_in_transaction_timeout),
            ),
            ("tcp_keepalives_idle", "10".into()),
            ("tcp_keepalives_interval", "5".into()),
            ("tcp_keepalives_count", "3".into()),
            ("tcp_user_timeout", "15000".into()),
        ]
    }
}

/// The maximum number of rows of a query that are buffered for the caller. When the buffer is full, the thread of the
/// SQLite connection waits. A large invoice reads thousands of items, and each wait costs two switches between threads.
const ROWS_BUFFERED: usize = 1_024;

/// The purpose of the connections of a pool on SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SqlitePurpose {
    /// Transactions: writes, or a read of everything as it was at one moment.
    Transactions,
    Queries,
    LogCopies,
}

impl SqlitePurpose {
    /// Returns the value of SQLite's `cache_size` for each connection; a negative number is a size in KiB. The
    /// operating system caches the file, too, so readers keep little: otherwise a list of large invoices would fill the
    /// cache of every reader.
    fn cache_size(self) -> &'static str {
        match self {
            Self::Transactions => "-65536",
            Self::Queries => "-8192",
            Self::LogCopies => "-64",
        }
    }

    /// Returns how long a statement waits while another connection has locked the database.
    fn busy_wait(self) -> Duration {
        match self {
            Self::Transactions | Self::Queries => BUSY_WAIT,
            Self::LogCopies => LOG_READERS_WAIT,
        }
    }
}

/// The longest time that the last round of copying the log waits for transactions that still read from the log. The
/// writer waits meanwhile.
const LOG_READERS_WAIT: Duration = Duration::from_millis(20);
/// If the log has this many pages (256 MiB), SQLite copies it in the next commit: the task that should do so has
/// failed, or long reads hold it up.
const LOG_PAGES_MAX: &str = "65536";

pub(super) fn sqlite_options(
    url: &str,
    connections: u32,
    is_created: bool,
    purpose: SqlitePurpose,
) -> ConnectOptions {
    let mut options = common_options(url, connections);
    options.map_sqlx_sqlite_opts(move |sqlite| {
        sqlite
            .create_if_missing(is_created)
            .foreign_keys(true)
            .busy_timeout(purpose.busy_wait())
            .statement_cache_capacity(STATEMENTS_KEPT)
            .row_buffer_size(ROWS_BUFFERED)
            .pragma("journal_mode", "WAL")
            .pragma("synchronous", "FULL")
            .pragma("cache_size", purpose.cache_size())
            .pragma("wal_autocheckpoint", LOG_PAGES_MAX)
            .pragma("temp_store", "MEMORY")
    });
    options.map_sqlx_sqlite_pool_opts(|pool| {
        // A connection on which SQLite itself has rolled back is dropped, because the driver believes that the
        // transaction is still open.
        pool.after_release(|connection, _| Box::pin(async { Ok(!connection.is_in_transaction()) }))
    });
    options
}

pub(super) fn postgres_options(
    url: &str,
    connections: u32,
    settings: &PoolSettings,
    liveness: &Arc<Liveness>,
) -> ConnectOptions {
    let mut options = common_options(url, connections);
    let session = settings.session_settings();
    options.map_sqlx_postgres_opts(move |postgres| {
        postgres
            .statement_cache_capacity(STATEMENTS_KEPT)
            .options(session.clone())
    });
    let liveness = Arc::clone(liveness);
    options.map_sqlx_postgres_pool_opts(move |pool| {
        let before = Arc::clone(&liveness);
        let after = Arc::clone(&liveness);
        pool.before_acquire(move |connection, idle| {
            let liveness = Arc::clone(&before);
            Box::pin(async move {
                if idle.idle_for > UNTESTED_IDLE_MAX {
                    test_connection(connection, &liveness).await
                } else {
                    Ok(true)
                }
            })
        })
        // A returned connection is tested if the pool is in doubt (`is_doubted`), because the driver's own test has
        // no time limit.
        .after_release(move |connection, _| {
            let liveness = Arc::clone(&after);
            Box::pin(async move {
                if liveness.is_doubted() {
                    test_connection(connection, &liveness).await
                } else {
                    Ok(true)
                }
            })
        })
    });
    options
}

/// Tests whether a connection still answers. After an error the driver drops the connection.
async fn test_connection(
    connection: &mut PgConnection,
    liveness: &Liveness,
) -> Result<bool, SqlxError> {
    let answer = timeout(TEST_WAIT, connection.ping()).await;
    let answer = answer.unwrap_or_else(|_| {
        liveness.mark_silent();
        Err(SqlxError::PoolTimedOut)
    });
    answer.map(|()| true)
}

fn milliseconds(duration: Duration) -> String {
    duration.as_millis().to_string()
}

fn common_options(url: &str, connections: u32) -> ConnectOptions {
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(connections)
        .min_connections(1)
        .acquire_timeout(BUSY_WAIT)
        .connect_timeout(BUSY_WAIT)
        .sqlx_logging(false)
        .test_before_acquire(false);
    options
}
