//! Connections that stay open for queries. Whenever a connection is returned to the driver's pool, the pool starts a
//! task and sends another request to the database, which costs as much as a short query. So a connection that has
//! answered is kept here for the next query. Any other connection goes back to the driver's pool, which tests or closes
//! it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sea_orm::sqlx::pool::PoolConnection;
use sea_orm::sqlx::{
    AssertSqlSafe, Connection, Database, Error as SqlxError, Executor, IntoArguments, Pool,
    Postgres, Sqlite, query_with, raw_sql,
};
use sea_orm::{
    ConnAcquireErr, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, RuntimeErr,
    Statement, Values,
};
use sea_query_sqlx::SqlxValues;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::deadline::{DroppedInRuntime, Liveness};
use crate::metrics::ReadWaits;
use crate::pool_settings::{BUSY_WAIT, TEST_WAIT, UNTESTED_IDLE_MAX};

/// After this time, a kept connection goes back to the driver's pool, which closes connections that are too old.
const KEPT_FOR: Duration = Duration::from_mins(5);

/// The connections of one pool that are kept for queries.
pub(crate) enum KeptConnections {
    Sqlite(DriverConnections<Sqlite>),
    Postgres(DriverConnections<Postgres>),
}

/// Connections of one driver. Only this type may use the driver's pool, because it may keep all connections of the pool
/// and leave none for others.
pub(crate) struct DriverConnections<DB: Database> {
    pool: Pool<DB>,
    liveness: Arc<Liveness>,
    waits: ReadWaits,
    /// One permit for each connection of the pool.
    places: Semaphore,
    /// The connections that no query uses. `None` after `close`.
    free: Mutex<Option<Vec<KeptConnection<DB>>>>,
}

struct KeptConnection<DB: Database> {
    connection: PoolConnection<DB>,
    taken_at: Instant,
    used_at: Instant,
}

/// Returns an empty `KeptConnections` for the pool `connections`. When it is dropped, it closes what it keeps in
/// `runtime`, because the driver needs a runtime to do that.
pub(crate) fn keep_connections(
    connections: &DatabaseConnection,
    liveness: &Arc<Liveness>,
    waits: &ReadWaits,
    runtime: &Handle,
) -> Arc<DroppedInRuntime<KeptConnections>> {
    Arc::new(DroppedInRuntime::new(
        KeptConnections::new(connections, liveness, waits),
        runtime.clone(),
    ))
}

impl KeptConnections {
    pub(crate) fn new(
        connections: &DatabaseConnection,
        liveness: &Arc<Liveness>,
        waits: &ReadWaits,
    ) -> Self {
        match connections.get_database_backend() {
            DbBackend::Postgres => Self::Postgres(DriverConnections::new(
                connections.get_postgres_connection_pool(),
                liveness,
                waits,
            )),
            _ => Self::Sqlite(DriverConnections::new(
                connections.get_sqlite_connection_pool(),
                liveness,
                waits,
            )),
        }
    }

    pub(crate) async fn query_one(
        &self,
        statement: Statement,
    ) -> Result<Option<QueryResult>, DbErr> {
        match self {
            Self::Sqlite(kept) => kept.query_one(statement).await,
            Self::Postgres(kept) => kept.query_one(statement).await,
        }
    }

    pub(crate) async fn query_all(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        match self {
            Self::Sqlite(kept) => kept.query_all(statement).await,
            Self::Postgres(kept) => kept.query_all(statement).await,
        }
    }

    pub(crate) async fn execute(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        match self {
            Self::Sqlite(kept) => kept.execute(statement).await.map(ExecResult::from),
            Self::Postgres(kept) => kept.execute(statement).await.map(ExecResult::from),
        }
    }

    pub(crate) async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        match self {
            Self::Sqlite(kept) => kept.execute_unprepared(sql).await.map(ExecResult::from),
            Self::Postgres(kept) => kept.execute_unprepared(sql).await.map(ExecResult::from),
        }
    }

    /// Returns the free connections to the driver's pool, and makes every other connection return there after its
    /// query. Call this while the pool closes.
    pub(crate) fn close(&self) {
        match self {
            Self::Sqlite(kept) => drop(kept.lock_free_connections().take()),
            Self::Postgres(kept) => drop(kept.lock_free_connections().take()),
        }
    }
}

impl<DB> DriverConnections<DB>
where
    DB: Database,
    SqlxValues: IntoArguments<DB>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    QueryResult: From<DB::Row>,
{
    fn new(pool: &Pool<DB>, liveness: &Arc<Liveness>, waits: &ReadWaits) -> Self {
        Self {
            places: Semaphore::new(
                usize::try_from(pool.options().get_max_connections()).unwrap_or(usize::MAX),
            ),
            pool: pool.clone(),
            liveness: Arc::clone(liveness),
            waits: waits.clone(),
            free: Mutex::new(Some(Vec::new())),
        }
    }

    async fn query_one(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        let (mut held, _place) = self.take_connection().await?;
        let query = query_with(AssertSqlSafe(statement.sql), bound_values(statement.values));
        let row = query
            .fetch_optional(&mut *held.connection)
            .await
            .map_err(query_error)?;
        self.keep_connection(held);
        Ok(row.map(QueryResult::from))
    }

    async fn query_all(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let (mut held, _place) = self.take_connection().await?;
        let query = query_with(AssertSqlSafe(statement.sql), bound_values(statement.values));
        let rows = query
            .fetch_all(&mut *held.connection)
            .await
            .map_err(query_error)?;
        self.keep_connection(held);
        Ok(rows.into_iter().map(QueryResult::from).collect())
    }

    // `execute` and `execute_unprepared` return their connection to the driver's pool instead of keeping it, because
    // the statement may have changed the state of the connection.

    async fn execute(&self, statement: Statement) -> Result<DB::QueryResult, DbErr> {
        let (mut held, _place) = self.take_connection().await?;
        let query = query_with(AssertSqlSafe(statement.sql), bound_values(statement.values));
        query
            .execute(&mut *held.connection)
            .await
            .map_err(query_error)
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<DB::QueryResult, DbErr> {
        let (mut held, _place) = self.take_connection().await?;
        Executor::execute(
            &mut *held.connection,
            raw_sql(AssertSqlSafe(sql.to_owned())),
        )
        .await
        .map_err(query_error)
    }

    async fn take_connection(&self) -> Result<(KeptConnection<DB>, SemaphorePermit<'_>), DbErr> {
        let started = Instant::now();
        let taken = self.acquire().await;
        self.waits.record(started.elapsed());
        taken
    }

    async fn acquire(&self) -> Result<(KeptConnection<DB>, SemaphorePermit<'_>), DbErr> {
        let place = timeout(BUSY_WAIT, self.places.acquire())
            .await
            .map_err(|_| acquire_timeout_error())?;
        let place = place.map_err(|_| acquire_timeout_error())?;
        let free = self.lock_free_connections().as_mut().and_then(Vec::pop);
        let tested = match free {
            Some(held) if held.used_at.elapsed() > UNTESTED_IDLE_MAX => {
                self.test_connection(held).await
            }
            free => free,
        };
        if let Some(held) = tested {
            return Ok((held, place));
        }
        let connection = self.pool.acquire().await.map_err(acquire_error)?;
        let now = Instant::now();
        Ok((
            KeptConnection {
                connection,
                taken_at: now,
                used_at: now,
            },
            place,
        ))
    }

    /// Returns the connection if it still answers, otherwise `None`.
    async fn test_connection(&self, mut held: KeptConnection<DB>) -> Option<KeptConnection<DB>> {
        let Ok(answer) = timeout(TEST_WAIT, held.connection.ping()).await else {
            self.liveness.mark_silent();
            return None;
        };
        answer.ok().map(|()| held)
    }

    fn keep_connection(&self, mut held: KeptConnection<DB>) {
        if self.liveness.is_doubted() || held.taken_at.elapsed() > KEPT_FOR {
            return;
        }
        held.used_at = Instant::now();
        if let Some(free) = self.lock_free_connections().as_mut() {
            free.push(held);
        }
    }
}

impl<DB: Database> DriverConnections<DB> {
    fn lock_free_connections(&self) -> std::sync::MutexGuard<'_, Option<Vec<KeptConnection<DB>>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bound_values(values: Option<Values>) -> SqlxValues {
    SqlxValues(values.unwrap_or(Values(Vec::new())))
}

fn query_error(error: SqlxError) -> DbErr {
    DbErr::Query(RuntimeErr::SqlxError(error.into()))
}

fn acquire_timeout_error() -> DbErr {
    DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)
}

fn acquire_error(error: SqlxError) -> DbErr {
    match error {
        SqlxError::PoolTimedOut => acquire_timeout_error(),
        SqlxError::PoolClosed => DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed),
        error => DbErr::Conn(RuntimeErr::SqlxError(error.into())),
    }
}
