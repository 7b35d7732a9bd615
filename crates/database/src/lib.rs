//! One database, SQLite or PostgreSQL, behind the same calls. It knows no table: statements are its callers'.
//!
//! | File | Concept |
//! |---|---|
//! | `database` | the open database; its transactions, and what is known after a failed commit |
//! | `pool`, `pool_generation`, `pool_settings` | connection pools; a pool whose connections are dead is replaced |
//! | `single_connection` | one connection without a pool, whose error names the cause |
//! | `readers` | the pools for queries: the main one, one for pages, one for snapshots |
//! | `kept_connections` | connections that stay open between queries |
//! | `deadline` | a deadline for each call, kept on our side of the connection |
//! | `group_commit` | SQLite: concurrent transactions share a commit |
//! | `log_copies` | SQLite: the write-ahead log is copied into the database file beside the writer |
//! | `error`, `broken` | errors by what the caller may do; a statement that keeps failing is logged once |
//! | `metrics` | waits for connections and for turns to write, sizes of commit groups |
//! | `sql` | the SQL that differs between the databases |
//! | `insert`, `column`, `page` | many rows in one statement; columns as values; one page of a list |
//! | `vault` | seals secrets that are stored |

mod broken;
pub mod column;
mod database;
mod deadline;
mod error;
mod group_commit;
pub mod insert;
mod kept_connections;
mod log_copies;
mod metrics;
pub mod page;
mod pool;
mod pool_generation;
mod pool_settings;
mod readers;
mod single_connection;
pub mod sql;
#[cfg(test)]
mod testing;
pub mod vault;

pub use database::{Database, Transaction};
pub use error::StoreError;
pub use group_commit::Sharing;
pub use insert::statement_portions;
pub use metrics::{DatabaseMetrics, ReadWaits};
pub use pool::Pool;
pub use pool_settings::PoolSettings;
pub use readers::{poll_with_page_pool, run_with_page_pool};
pub use single_connection::try_connection;
