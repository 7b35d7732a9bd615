//! Errors of the database. The variant tells the caller whether to retry.

use sea_orm::sqlx::Error as SqlxError;
use sea_orm::{DbErr, RuntimeErr};

#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, is locked or aborted the call. A retry may succeed.
    #[error("the database is not available: {0}")]
    Unavailable(DbErr),
    /// A unique index refused a row.
    #[error("the row exists already: {0}")]
    Duplicate(String),
    /// A row has a value that this program never writes.
    #[error("{table} row {id} is corrupt: {reason}")]
    Corrupt { table: &'static str, id: String, reason: String },
    /// A commit may have taken effect or not, because its answer is missing or unclear.
    #[error("whether the commit happened is not known")]
    Unsettled,
    /// Another process has claimed the lane. The caller no longer holds it and must stop without changes.
    #[error("the lane was taken over by another owner")]
    Stale,
}

impl From<DbErr> for StoreError {
    fn from(error: DbErr) -> Self {
        match error.sql_err() {
            Some(sea_orm::SqlErr::UniqueConstraintViolation(what)) => Self::Duplicate(what),
            _ => Self::Unavailable(error),
        }
    }
}

impl StoreError {
    /// True if PostgreSQL aborted a statement because another transaction held a lock that the statement needed.
    pub(crate) fn is_lock_conflict(&self) -> bool {
        let Self::Unavailable(error) = self else { return false };
        code(error).is_some_and(|code| LOCK_CONFLICTS.contains(&code.as_str()))
    }
}

/// The SQLSTATE codes of a lock that was not granted in time and of a deadlock.
const LOCK_CONFLICTS: [&str; 2] = ["55P03", "40P01"];
/// The SQLSTATE classes of errors after which PostgreSQL has rolled back the transaction.
const ROLLED_BACK: [&str; 3] = ["23", "25", "40"];
/// SQLite's code for a locked database. An extended result code holds this basic code in its lowest byte.
const SQLITE_BUSY: u32 = 5;

/// Returns the error code that the database reported, if it reported one.
fn code(error: &DbErr) -> Option<String> {
    let (DbErr::Conn(RuntimeErr::SqlxError(cause))
    | DbErr::Exec(RuntimeErr::SqlxError(cause))
    | DbErr::Query(RuntimeErr::SqlxError(cause))) = error
    else {
        return None;
    };
    match &**cause {
        SqlxError::Database(error) => error.code().map(Into::into),
        _ => None,
    }
}

/// True if this error of a commit proves that the transaction was rolled back.
pub(crate) fn is_rolled_back(error: &DbErr) -> bool {
    code(error).is_some_and(|code| ROLLED_BACK.iter().any(|class| code.starts_with(class)))
}

/// True if a statement failed because another connection has locked the SQLite database.
pub(crate) fn is_busy(error: &DbErr) -> bool {
    code(error).and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xff == SQLITE_BUSY)
}

#[cfg(test)]
mod tests {
    use sea_orm::DbBackend;

    use crate::store::lanes::{self, LaneKind};
    use crate::store::testing::stores;

    #[tokio::test]
    async fn a_lock_that_is_not_granted_in_time_is_told_from_a_database_that_is_gone() {
        for test in stores().await.iter().filter(|test| test.store.backend() == DbBackend::Postgres) {
            let tx = test.store.begin().await.unwrap();
            lanes::make_due(&tx, LaneKind::Endpoint, &["7".to_owned()]).await.unwrap();
            tx.commit().await.unwrap();
            let holder = test.store.begin().await.unwrap();
            lanes::lock(&holder, LaneKind::Endpoint, "7").await.unwrap();
            let waiting = test.store.begin().await.unwrap();
            let refused = lanes::lock(&waiting, LaneKind::Endpoint, "7").await.unwrap_err();
            assert!(refused.is_lock_conflict(), "{refused}");
            drop(waiting);
            let tx = test.store.begin().await.unwrap();
            let other = lanes::lock_unversioned(&tx, LaneKind::Endpoint, "8").await;
            assert!(other.is_ok(), "another lane is free");
        }
    }
}
