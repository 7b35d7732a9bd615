//! A transaction, as its users see it: statements with deadlines, and a commit that tells what is known of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sea_orm::prelude::async_trait::async_trait;
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, ExecResult, IsolationLevel,
    QueryResult, Statement, TransactionOptions,
};
use tokio::sync::OwnedMappedMutexGuard;
use tokio::time::timeout;

use crate::broken::log_once;
use crate::deadline::{Deadlines, DroppedInRuntime};
use crate::error::{StoreError, is_rolled_back};
use crate::group_commit::CommitGroup;
use crate::pool::{CallGuard, Pool};

/// A transaction: one that writes, or a snapshot for reading. If it is dropped without a commit, its changes are rolled back.
pub struct Transaction {
    kind: DroppedInRuntime<TransactionKind>,
    backend: DbBackend,
    watch: CallGuard,
    ends_at: Instant,
    /// True if a statement has failed. `commit` then returns an error; PostgreSQL would roll back and report success.
    has_failed: AtomicBool,
}

/// The database transaction that the statements run in.
pub(super) enum TransactionKind {
    /// Its own.
    Dedicated(DatabaseTransaction),
    /// A member of a commit group, which nobody else uses before the member has ended.
    Grouped(OwnedMappedMutexGuard<Option<CommitGroup>, CommitGroup>),
}

impl Transaction {
    pub(super) fn new(kind: TransactionKind, backend: DbBackend, watch: CallGuard) -> Self {
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
    pub(crate) async fn snapshot(pool: &Pool) -> Result<Self, StoreError> {
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
    pub(crate) fn without_limits(self) -> Self {
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

    /// Commits. The changes are on disk when this returns.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        match self.kind.take() {
            Some(TransactionKind::Dedicated(own)) if self.has_failed.load(Ordering::Relaxed) => {
                own.rollback().await?;
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
                group.keep_member();
                self.wait_for_commit(group).await
            }
            None => Err(StoreError::Unsettled),
        }
    }

    /// Rolls back. A member of a group waits for the group's commit, because it may have read changes of others.
    pub async fn rollback(mut self) -> Result<(), StoreError> {
        match self.kind.take() {
            Some(TransactionKind::Dedicated(own)) => {
                Ok(self.watch.call(Duration::MAX, own.rollback()).await?)
            }
            Some(TransactionKind::Grouped(group)) => self.wait_for_commit(group).await,
            None => Ok(()),
        }
    }

    /// Lets the next member run and waits for the group's commit.
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

    fn database(&self) -> Result<&DatabaseTransaction, DbErr> {
        match self.kind.get() {
            Some(TransactionKind::Dedicated(own)) => Ok(own),
            Some(TransactionKind::Grouped(group)) => Ok(&group.whole),
            None => Err(given_up_error("the transaction has ended")),
        }
    }

    /// Returns the driver's transaction, which has no deadlines. Migrations need this type.
    pub fn driver_transaction(&self) -> Result<&DatabaseTransaction, DbErr> {
        self.database()
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
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
        self.call(self.database()?.execute_raw(statement))
            .await
            .inspect_err(|error| log_once(&sql, error))
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.call(self.database()?.execute_unprepared(sql))
            .await
            .inspect_err(|error| log_once(sql, error))
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        let sql = statement.sql.clone();
        self.call(self.database()?.query_one_raw(statement))
            .await
            .inspect_err(|error| log_once(&sql, error))
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let sql = statement.sql.clone();
        self.call(self.database()?.query_all_raw(statement))
            .await
            .inspect_err(|error| log_once(&sql, error))
    }
}

fn given_up_error(reason: &str) -> DbErr {
    DbErr::Custom(reason.to_owned())
}

/// Converts the error of a failed commit. Unless the error proves a rollback, the commit may have happened.
fn commit_error(error: DbErr) -> StoreError {
    if is_rolled_back(&error) {
        return error.into();
    }
    tracing::warn!(%error, "the outcome of a commit is unknown");
    StoreError::Unsettled
}
