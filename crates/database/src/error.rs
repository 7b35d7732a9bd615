//! Errors of the database. The variant tells the caller whether to retry, and whether the error may concern only one of
//! several callers that share a transaction.

use sea_orm::sqlx::Error as SqlxError;
use sea_orm::{DbErr, RuntimeErr, SqlErr};

#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, is locked or aborted the call. A retry may succeed.
    #[error("the database is not available: {0}")]
    Unavailable(DbErr),
    /// The database has refused a statement, or a column does not decode: the statement or a stored row is wrong. A
    /// retry fails in the same way.
    #[error("a statement failed and will fail again: {0}")]
    Broken(DbErr),
    /// A unique index refused a row.
    #[error("the row exists already: {0}")]
    Duplicate(String),
    /// A row has a value that this program never writes.
    #[error("{table} row {id} is corrupt: {reason}")]
    Corrupt {
        table: &'static str,
        id: String,
        reason: String,
    },
    /// A commit may have taken effect or not, because its answer is missing or unclear.
    #[error("whether the commit happened is not known")]
    Unsettled,
    /// A commit got no clear answer, and a look-up then showed that nothing was committed. A retry may succeed.
    #[error("the commit did not happen")]
    NotCommitted,
    /// Another transaction has kept a lane (a row that serialises work) locked for longer than a caller waits. A retry
    /// may succeed.
    #[error("another transaction has locked the lane")]
    Locked,
    /// Another process has claimed the lane. The caller no longer holds it and must stop without changes.
    #[error("the lane was taken over by another owner")]
    Stale,
}

impl From<DbErr> for StoreError {
    fn from(error: DbErr) -> Self {
        match error.sql_err() {
            Some(SqlErr::UniqueConstraintViolation(what)) => Self::Duplicate(what),
            _ if is_permanent(&error) => Self::Broken(error),
            _ => Self::Unavailable(error),
        }
    }
}

impl StoreError {
    /// True if the error may concern only one member of a shared transaction, in which nothing was committed: the
    /// database has answered, and its answer is about a row, a statement or the session. Each member may then succeed
    /// in a transaction of its own. A database that does not answer, or that is full, would fail them all again.
    pub fn may_concern_one_member(&self) -> bool {
        match self {
            Self::Broken(_)
            | Self::Duplicate(_)
            | Self::Corrupt { .. }
            | Self::Stale
            | Self::NotCommitted => true,
            Self::Unsettled | Self::Locked => false,
            Self::Unavailable(error) => is_about_statement(error),
        }
    }

    /// True if PostgreSQL cancelled a statement because it, or its wait for a lock, took too long.
    pub fn is_timeout(&self) -> bool {
        self.code()
            .is_some_and(|code| TIMEOUT_CODES.contains(&code.as_str()))
    }

    /// True if PostgreSQL has ended the session of the call, because the server stops or an administrator ended this
    /// session; both have the same code. The call is not the cause. Other sessions may still work, so each member of a
    /// shared transaction is tried again in a transaction of its own.
    pub fn is_session_end(&self) -> bool {
        self.code().is_some_and(|code| code == SESSION_END_CODE)
    }

    /// Returns the code that the database reported, if it reported one: an SQLSTATE, or a result code of SQLite.
    pub fn code(&self) -> Option<String> {
        let (Self::Unavailable(error) | Self::Broken(error)) = self else {
            return None;
        };
        code(error)
    }
}

/// The SQLSTATE codes of a lock that was not granted in time and of a cancelled statement.
const TIMEOUT_CODES: [&str; 2] = ["55P03", "57014"];
/// The SQLSTATE of a session that PostgreSQL has ended.
const SESSION_END_CODE: &str = "57P01";
/// The SQLSTATE of a disk that is full, and SQLite's code. The other codes of class 53 mean that memory, connections or
/// a configured limit are used up.
const DISK_FULL_CODE: &str = "53100";
const SQLITE_FULL: u32 = 13;
/// The SQLSTATE classes of errors after which PostgreSQL has rolled back the transaction.
const ROLLED_BACK_CLASSES: [&str; 3] = ["23", "25", "40"];
/// The beginnings of the SQLSTATE codes that concern the whole server: the connection, a refused login, resources such
/// as the disk, a crash or a start in progress, a deleted database, the operating system, and a server that takes no
/// writes. The codes of an ended session (57P01) and of a cancelled statement (57014) are missing, because they may
/// concern only one of many sessions.
const WHOLE_SERVER_CODES: [&str; 9] = [
    "08", "28", "3D", "53", "57P02", "57P03", "57P04", "58", "25006",
];
/// SQLite's codes for a database that is locked, out of memory, read-only, failing or full, or that cannot be opened.
/// An extended result code holds its basic code in the lowest byte.
const SQLITE_WHOLE_FILE_CODES: [u32; 8] = [SQLITE_BUSY, 6, 7, 8, 10, SQLITE_FULL, 14, 26];
const SQLITE_BUSY: u32 = 5;
/// The SQLSTATE classes of errors that a statement or a row causes by itself: a feature that does not exist, the number
/// or the contents of values, a constraint, the syntax, a view's condition, a raised exception, damaged data.
const PERMANENT_CLASSES: [&str; 8] = ["0A", "21", "22", "23", "42", "44", "P0", "XX"];
/// SQLite's codes for the kinds of errors in `PERMANENT_CLASSES`: a wrong statement, a damaged file, a value that is
/// too long, a constraint, a value of another type, a wrong use of the library, a parameter out of range.
const SQLITE_PERMANENT_CODES: [u32; 7] = [1, 11, 18, 19, 20, 21, 25];
/// The length of an SQLSTATE. SQLite's codes are shorter.
const SQLSTATE_LEN: usize = 5;

/// Returns the error of the driver (sqlx) that this error holds; `None` if another part of the program caused the
/// error.
fn driver_error(error: &DbErr) -> Option<&SqlxError> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(cause))
        | DbErr::Exec(RuntimeErr::SqlxError(cause))
        | DbErr::Query(RuntimeErr::SqlxError(cause)) => Some(&**cause),
        _ => None,
    }
}

/// Returns the error code that the database reported, if it reported one.
fn code(error: &DbErr) -> Option<String> {
    match driver_error(error)? {
        SqlxError::Database(error) => error.code().map(Into::into),
        _ => None,
    }
}

/// True if a retry would fail in the same way. A row that exists already is no such error: another transaction may have
/// added it since the caller looked, and the caller then reads it and decides anew.
pub(super) fn is_permanent(error: &DbErr) -> bool {
    if is_duplicate(error) {
        return false;
    }
    match driver_error(error) {
        Some(SqlxError::Database(error)) => {
            error.code().is_some_and(|code| is_code_permanent(&code))
        }
        Some(
            SqlxError::ColumnDecode { .. }
            | SqlxError::ColumnIndexOutOfBounds { .. }
            | SqlxError::ColumnNotFound(_)
            | SqlxError::Decode(_)
            | SqlxError::Encode(_)
            | SqlxError::TypeNotFound { .. },
        ) => true,
        Some(_) => false,
        None => matches!(error, DbErr::Type(_) | DbErr::Json(_)),
    }
}

/// True if a unique index refused a row.
fn is_duplicate(error: &DbErr) -> bool {
    matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(_)))
}

fn is_code_permanent(code: &str) -> bool {
    if code.len() == SQLSTATE_LEN {
        return PERMANENT_CLASSES
            .iter()
            .any(|class| code.starts_with(class));
    }
    basic_sqlite_code(code).is_some_and(|code| SQLITE_PERMANENT_CODES.contains(&code))
}

/// True if the database answered, and if the answer is about a statement or a row and not about the whole database. An
/// error about a value with another type than its column is about a row, too.
fn is_about_statement(error: &DbErr) -> bool {
    match driver_error(error) {
        Some(SqlxError::Database(error)) => {
            error.code().is_none_or(|code| !is_about_database(&code))
        }
        Some(SqlxError::ColumnDecode { .. } | SqlxError::Decode(_) | SqlxError::Encode(_)) => true,
        Some(_) => false,
        None => matches!(error, DbErr::Type(_) | DbErr::Json(_)),
    }
}

fn is_about_database(code: &str) -> bool {
    if code.len() == SQLSTATE_LEN {
        return WHOLE_SERVER_CODES
            .iter()
            .any(|beginning| code.starts_with(beginning));
    }
    basic_sqlite_code(code).is_some_and(|code| SQLITE_WHOLE_FILE_CODES.contains(&code))
}

/// Returns the basic code of an extended result code of SQLite.
fn basic_sqlite_code(code: &str) -> Option<u32> {
    code.parse::<u32>().ok().map(|code| code & 0xff)
}

/// True if this error of a commit proves that the transaction was rolled back.
pub(crate) fn proves_rollback(error: &DbErr) -> bool {
    code(error).is_some_and(|code| {
        ROLLED_BACK_CLASSES
            .iter()
            .any(|class| code.starts_with(class))
    })
}

/// True if a statement or a commit failed because the disk is full.
pub(crate) fn is_disk_full(error: &DbErr) -> bool {
    code(error).is_some_and(|code| means_disk_full(&code))
}

fn means_disk_full(code: &str) -> bool {
    if code.len() == SQLSTATE_LEN {
        return code == DISK_FULL_CODE;
    }
    basic_sqlite_code(code) == Some(SQLITE_FULL)
}

/// True if a statement failed because another connection has locked the SQLite database.
pub(crate) fn is_busy(error: &DbErr) -> bool {
    code(error).and_then(|code| basic_sqlite_code(&code)) == Some(SQLITE_BUSY)
}

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait, DbBackend, Statement};

    use super::*;
    use crate::testing::stores;

    #[test]
    fn a_code_is_about_the_whole_database_or_about_one_statement() {
        let whole = [
            "08006", "25006", "53100", "53300", "57P02", "57P03", "58030", "5", "13", "10", "778",
            "8",
        ];
        let one = [
            "23505", "23514", "22003", "22P05", "40001", "40P01", "55P03", "57014", "57P01",
            "XX001", "25P03", "P0001", "1", "11", "1811", "2067", "19",
        ];
        for code in whole {
            assert!(
                is_about_database(code) && !is_code_permanent(code),
                "{code}"
            );
        }
        for code in one {
            assert!(!is_about_database(code), "{code}");
        }
    }

    #[test]
    fn only_the_code_of_a_full_disk_means_one() {
        for (code, is_full) in [
            ("53100", true),
            ("53000", false),
            ("53200", false),
            ("53300", false),
            ("53400", false),
            ("58030", false),
            ("13", true),
            ("7", false),
            ("10", false),
            ("778", false),
        ] {
            assert_eq!(means_disk_full(code), is_full, "{code}");
        }
    }

    #[tokio::test]
    async fn a_write_that_meets_a_full_disk_is_remembered_until_it_is_forgotten() {
        for test in stores().await {
            let store = &test.store;
            assert!(!store.has_met_full_disk());
            let is_postgres = store.backend() == DbBackend::Postgres;
            let tx = store.begin().await.unwrap();
            let failing = if is_postgres {
                "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '53100'; END $$".to_owned()
            } else {
                tx.execute_unprepared("PRAGMA max_page_count = 1")
                    .await
                    .unwrap();
                let name = "x".repeat(1_000_000);
                format!("INSERT INTO counters (name, next) VALUES ('{name}', 1)")
            };
            let error = tx.execute_unprepared(&failing).await.unwrap_err();
            drop(tx.rollback().await);
            assert!(is_disk_full(&error), "{error}");
            assert!(store.has_met_full_disk());
            store.forget_full_disk();
            assert!(!store.has_met_full_disk());
        }
    }

    #[tokio::test]
    async fn a_server_that_stops_is_unavailable_and_no_fault_of_a_command() {
        for test in stores().await {
            if test.store.backend() != DbBackend::Postgres {
                continue;
            }
            for (code, is_session_end, may_concern_one) in [
                ("57P01", true, true),
                ("57P02", false, false),
                ("57P03", false, false),
                ("57014", false, true),
                ("40001", false, true),
            ] {
                let tx = test.store.begin().await.unwrap();
                let sql =
                    format!("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{code}'; END $$");
                let error = tx.execute_unprepared(&sql).await.unwrap_err();
                tx.rollback().await.unwrap();
                let error = StoreError::from(error);
                assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
                assert_eq!(error.is_session_end(), is_session_end, "{code}");
                assert_eq!(error.may_concern_one_member(), may_concern_one, "{code}");
            }
        }
    }

    #[test]
    fn a_code_tells_whether_a_retry_may_succeed() {
        for wrong in [
            "22003", "22P05", "23502", "23514", "42703", "42P01", "P0001", "XX001", "1", "11",
            "20", "1811",
        ] {
            assert!(is_code_permanent(wrong), "{wrong}");
        }
        for passing in [
            "40001", "40P01", "55P03", "57014", "57P01", "25P03", "53100", "08006", "5", "6", "10",
            "13",
        ] {
            assert!(!is_code_permanent(passing), "{passing}");
        }
    }

    #[tokio::test]
    async fn a_row_that_another_transaction_has_added_is_no_fault_of_its_statement() {
        for test in stores().await {
            let add = "INSERT INTO counters (name, next) VALUES";
            for (sql, is_fault) in [
                (format!("{add} ('first', 1)"), false),
                (
                    "UPDATE counters SET name = 'first' WHERE name = 'second'".to_owned(),
                    false,
                ),
                (format!("{add} ('third', NULL)"), true),
                (format!("{add} ('third', 1, 2)"), true),
            ] {
                let tx = test.store.begin().await.unwrap();
                let rows = format!("{add} ('first', 1), ('second', 1)");
                tx.execute_unprepared(&rows).await.unwrap();
                let error = tx.execute_unprepared(&sql).await.unwrap_err();
                tx.rollback().await.unwrap();
                assert_eq!(is_permanent(&error), is_fault, "{sql}: {error}");
                let error = StoreError::from(error);
                assert_eq!(
                    matches!(error, StoreError::Duplicate(_)),
                    !is_fault,
                    "{error}"
                );
                assert!(error.may_concern_one_member(), "{error}");
            }
        }
    }

    #[tokio::test]
    async fn a_wrong_statement_and_a_column_that_does_not_decode_are_not_an_outage() {
        for test in stores().await {
            let reader = test.store.reader();
            let backend = test.store.backend();
            let wrong = reader
                .query_all_raw(Statement::from_string(
                    backend,
                    "SELECT colour FROM counters",
                ))
                .await;
            let error = StoreError::from(wrong.unwrap_err());
            assert!(
                matches!(error, StoreError::Broken(_)) && error.may_concern_one_member(),
                "{error}"
            );
            let row = reader
                .query_one_raw(Statement::from_string(backend, "SELECT 'text' AS number"))
                .await;
            let number: Result<i64, DbErr> = row.unwrap().unwrap().try_get("", "number");
            assert!(matches!(
                StoreError::from(number.unwrap_err()),
                StoreError::Broken(_)
            ));
        }
    }
}
