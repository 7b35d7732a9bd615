//! What can go wrong between us and the database. Whether to try again follows from the variant.

use sea_orm::DbErr;

/// A failure of the store.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, is locked or gave up: the same may work in a moment.
    #[error("the database is not available: {0}")]
    Unavailable(DbErr),
    /// A unique index refused the row.
    #[error("the row exists already: {0}")]
    Duplicate(String),
    /// A row makes no sense: it was written by something else, or damaged.
    #[error("{table} row {id} is corrupt: {reason}")]
    Corrupt { table: &'static str, id: String, reason: String },
    /// A commit failed and the database could not be asked whether it happened.
    #[error("whether the commit happened is not known")]
    Unsettled,
    /// Another owner has taken the lane: stop, and change nothing.
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
