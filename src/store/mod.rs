//! Floor 1: the database, SQLite or PostgreSQL. One set of migrations and one set of queries serve both.
//! A finder takes the owner of what it finds; a writer takes the transaction it is part of.
//!
//! | Concept | File |
//! |---|---|
//! | connections and transactions | `database`, `failure` |
//! | sealed secrets | `vault` |
//! | portal ids | `ids` |
//! | lanes: lock, lease, schedule | `lanes` |
//! | queries, one file an aggregate | `accounts`, `customers`, `deliveries`, `events`, `idempotency`, `invoices`, `keys`, `reference_lists`, `runs`, `taxpayers`, `webhooks` |

pub mod accounts;
pub mod customers;
pub mod database;
pub mod deliveries;
pub mod entity;
pub mod events;
pub mod failure;
pub mod idempotency;
pub mod ids;
pub mod invoices;
pub mod keys;
pub mod lanes;
pub mod reference_lists;
pub mod runs;
pub mod taxpayers;
#[cfg(test)]
pub(crate) mod testing;
pub mod vault;
pub mod webhooks;
