//! Errors of the database. The variant determines whether to retry.

use sea_orm::sqlx::Error as SqlxError;
use sea_orm::{DbErr, RuntimeErr};

/// A failure of the store.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, is locked or gave up. A retry may succeed.
    #[error("the database is not available: {0}")]
    Unavailable(DbErr),
    /// A unique index refused the row.
    #[error("the row exists already: {0}")]
    Duplicate(String),
    /// The row is invalid: damaged, or written by something else.
    #[error("{table} row {id} is corrupt: {reason}")]
    Corrupt { table: &'static str, id: String, reason: String },
    /// A commit failed and its outcome could not be determined.
    #[error("whether the commit happened is not known")]
    Unsettled,
    /// Another owner has claimed the lane: stop without changes.
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

/// Classes of SQLSTATE with which PostgreSQL reports a rolled-back transaction: integrity, invalid state,
/// rollback.
const ROLLED_BACK: [&str; 3] = ["23", "25", "40"];
/// SQLite's code for a database locked by another connection; extended codes hold it in their last byte.
const SQLITE_BUSY: u32 = 5;

/// The error code of the database.
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

/// True if the database reports that a failed commit was rolled back.
pub(crate) fn is_rolled_back(error: &DbErr) -> bool {
    code(error).is_some_and(|code| ROLLED_BACK.iter().any(|class| code.starts_with(class)))
}

/// True if another process has locked an SQLite database.
pub(crate) fn is_busy(error: &DbErr) -> bool {
    code(error).and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xff == SQLITE_BUSY)
}
