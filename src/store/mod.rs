//! Floor 1: the database, SQLite or PostgreSQL. One set of migrations and one set of queries serve both.
//! A finder takes the owner of what it finds; a writer takes the transaction it is part of.
//!
//! | Concept | File |
//! |---|---|
//! | connections and transactions | `database`, `pool`, `deadline`, `writer`, `failure` |
//! | signed checkpoints of the event log | `checkpoint_file` |
//! | sealed secrets, and another key for them | `vault`, `reseal` |
//! | rows by any of several names | `any` |
//! | portal ids | `ids` |
//! | lanes: lock, lease, schedule; many at once; whose turn it is; those whose holder is gone | `lanes`, `leases`, `turns`, `crashes` |
//! | appointments of a clock that was set back | `appointments` |
//! | queries, one file an aggregate | `accounts`, `audit`, `batches`, `crashed_deliveries`, `customers`, `deliveries`, `delivery_line`, `delivery_log`, `delivery_queue`, `events`, `idempotency`, `integrations`, `invoice_list`, `invoices`, `items`, `keys`, `ledger_days`, `outages`, `payments`, `pull_cursors`, `reconciliations`, `reference_lists`, `replays`, `runs`, `supplier_invoices`, `taxpayers`, `timeline`, `webhooks` |

pub mod accounts;
pub(crate) mod any;
pub mod appointments;
pub mod audit;
pub mod batches;
pub mod checkpoint_file;
pub mod crashed_deliveries;
pub mod crashes;
pub mod customers;
pub mod database;
mod deadline;
pub mod deliveries;
mod delivery_line;
pub mod delivery_log;
pub mod delivery_queue;
pub mod entity;
pub mod events;
pub mod failure;
pub mod idempotency;
pub mod ids;
pub mod integrations;
pub mod invoice_list;
pub mod invoices;
pub mod items;
pub mod keys;
pub mod lanes;
pub mod leases;
pub mod ledger_days;
pub mod outages;
pub mod payments;
mod pool;
pub mod pull_cursors;
pub mod reconciliations;
pub mod reference_lists;
pub mod replays;
pub mod reseal;
pub mod runs;
pub mod supplier_invoices;
pub mod taxpayers;
#[cfg(test)]
pub(crate) mod testing;
pub mod timeline;
pub mod turns;
pub mod vault;
pub mod webhooks;
mod writer;
