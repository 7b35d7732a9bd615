//! The databases that a case runs on.

use std::env;
use std::io::{self, Write as _};

/// The environment variable with the URL of a PostgreSQL server on which tests may create databases.
const SERVER_VARIABLE: &str = "EINVOICE_TEST_POSTGRES";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

impl Backend {
    /// Returns true if a test can run on this database. If not, says on standard error that the test is
    /// skipped. The test harness captures the output of `eprintln!`, but not what is written to
    /// `io::stderr()` itself.
    pub fn is_available(self, test: &str) -> bool {
        let is_available = self == Self::Sqlite || env::var_os(SERVER_VARIABLE).is_some();
        if !is_available {
            let line = format!("skipped: {test}: {SERVER_VARIABLE} is not set\n");
            io::stderr().write_all(line.as_bytes()).unwrap();
        }
        is_available
    }
}

/// Returns the URL of the PostgreSQL server for tests.
pub fn postgres_server() -> String {
    env::var(SERVER_VARIABLE).unwrap_or_else(|_| panic!("{SERVER_VARIABLE} is not set"))
}
