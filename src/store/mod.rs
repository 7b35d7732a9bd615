//! Floor 1: the database, SQLite or PostgreSQL. One set of migrations and one set of queries serve both.
//! A finder takes the owner of what it finds; a writer takes the transaction it is part of.
//!
//! | Concept | File |
//! |---|---|
//! | connections and transactions | `database`, `failure` |
//! | sealed secrets | `vault` |
//! | portal ids | `ids` |
//! | lanes: lock, lease, schedule | `lanes` |
//! | queries, one file an aggregate | `accounts`, `audit`, `customers`, `deliveries`, `delivery_log`, `events`, `invoices`, `keys`, `reference_lists`, `replays`, `runs`, `taxpayers`, `webhooks` |

pub mod accounts;
pub mod audit;
pub mod customers;
pub mod database;
pub mod deliveries;
pub mod delivery_log;
pub mod entity;
pub mod events;
pub mod failure;
pub mod ids;
pub mod invoices;
pub mod keys;
pub mod lanes;
pub mod reference_lists;
pub mod replays;
pub mod runs;
pub mod taxpayers;
#[cfg(test)]
pub(crate) mod testing;
pub mod vault;
pub mod webhooks;
