//! The database, SQLite or PostgreSQL. Both have the same migrations and nearly the same queries; `db::sql` holds the
//! SQL that differs. A function that finds rows takes their owner as a parameter; a function that writes rows takes the
//! transaction.
//!
//! | Concept | Module |
//! |---|---|
//! | connections, transactions, portal ids, sealed secrets | `db` |
//! | lanes: lock, lease, schedule and fence of pending work in one row | `lanes` |
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
