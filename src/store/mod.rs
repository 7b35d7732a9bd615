//! The database, SQLite or PostgreSQL. Both share the migrations and the queries; `db::sql` holds the SQL
//! that differs. Each aggregate has its rows beside its queries. A finder takes the owner of what it finds; a
//! writer takes its transaction.
//!
//! | Concept | Module |
//! |---|---|
//! | connections, transactions, portal ids, sealed secrets | `db` |
//! | work that waits: lock, lease, schedule and fence in one row | `lanes` |
//! | integrators, operators, taxpayers and their keys | `accounts` |
//! | invoices with their customers, items, payments and batches | `invoices` |
//! | responses to requests with an Idempotency-Key | `idempotency` |
//! | runs of the authority pipeline | `runs` |
//! | the event log and its checkpoints | `events` |
//! | endpoints, deliveries, attempts and replays | `webhooks` |
//! | audit, outages, reconciliation, reference lists, pulled invoices | `operations` |

pub mod accounts;
pub mod db;
pub mod events;
pub mod idempotency;
pub mod invoices;
pub mod lanes;
pub mod operations;
pub mod runs;
#[cfg(test)]
pub(crate) mod testing;
pub mod webhooks;
