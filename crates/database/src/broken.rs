//! Logs the permanent errors of statements: those that a retry cannot fix. The same error of the same statement is
//! logged once only, because a caller that retries for ever would otherwise flood the log.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use sea_orm::DbErr;

use crate::error::is_permanent;

/// The maximum number of different errors that a process logs. Each logged error is kept in memory, to recognise it.
const LOGGED_MAX: usize = 1_000;

static LOGGED: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// Logs the error if it is permanent and was not logged before for this kind of statement (`statement_name`).
pub(super) fn log_permanent_error_once(sql: &str, error: &DbErr) {
    if !is_permanent(error) {
        return;
    }
    let name = statement_name(sql);
    let mut told = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if told.len() < LOGGED_MAX && told.insert(format!("{name}: {error}")) {
        tracing::error!(statement = name, %error, "a statement failed and will fail again");
    }
}

/// Returns the verb and the first table of a statement, such as `INSERT invoices`.
fn statement_name(sql: &str) -> String {
    let mut words = sql.split_whitespace();
    let verb = words.next().unwrap_or_default();
    if !precedes_table_name(verb) {
        words.find(|word| precedes_table_name(word));
    }
    let table = words.next().unwrap_or_default();
    let table: String = table
        .chars()
        .filter(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect();
    format!("{verb} {table}").trim_end().to_owned()
}

fn precedes_table_name(word: &str) -> bool {
    matches!(word, "FROM" | "INTO" | "UPDATE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_named_by_its_verb_and_its_table() {
        for (sql, name) in [
            (
                r#"INSERT INTO "invoices" ("id") VALUES ($1)"#,
                "INSERT invoices",
            ),
            (
                r#"SELECT "id" FROM "lanes" WHERE kind = $1"#,
                "SELECT lanes",
            ),
            (r#"UPDATE "lanes" SET owner = $1"#, "UPDATE lanes"),
            ("WITH due AS (SELECT key FROM lanes) SELECT 1", "WITH lanes"),
            ("PRAGMA optimize", "PRAGMA"),
        ] {
            assert_eq!(statement_name(sql), name);
        }
    }
}
