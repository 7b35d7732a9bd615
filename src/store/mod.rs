//! Floor 1: the database, SQLite or PostgreSQL. One set of migrations and one set of queries serve both.
//! A finder takes the owner of what it finds; a writer takes the transaction it is part of.
//!
//! | Concept | File |
//! |---|---|
//! | connections and transactions | `database`, `failure` |
//! | sealed secrets | `vault` |
//! | portal ids | `ids` |
//! | lanes: lock, lease, schedule | `lanes` |
//! | queries, one file an aggregate | `accounts`, `customers`, `deliveries`, `events`, `invoices`, `keys`, `pull_cursors`, `reference_lists`, `runs`, `supplier_invoices`, `taxpayers`, `webhooks` |

pub mod accounts;
pub mod customers;
pub mod database;
pub mod deliveries;
pub mod entity;
pub mod events;
pub mod failure;
pub mod ids;
pub mod invoices;
pub mod keys;
pub mod lanes;
pub mod pull_cursors;
pub mod reference_lists;
pub mod runs;
pub mod supplier_invoices;
pub mod taxpayers;
#[cfg(test)]
pub(crate) mod testing;
pub mod vault;
pub mod webhooks;
