//! Pure decisions: no clock, no randomness, no I/O.
//!
//! | Concept | Module |
//! |---|---|
//! | ids, time, digests and faults, used by all others | `kernel` |
//! | callers, their keys, and requests that are processed once | `access` |
//! | exact amounts, and the changes by a payment | `money`, `payment` |
//! | an invoice: its number, states, updates, totals, items and views | `invoice` |
//! | taxpayers and customers, their tax numbers and email addresses | `party` |
//! | the steps of a run at the authority, its deadline and its resolution | `pipeline` |
//! | the event log, deliveries, replays and the health of an endpoint | `events` |
//! | authentication and format of notifications for a taxpayer's ERP | `integration` |
//! | our ledger compared with the authority's, day by day | `reconciliation` |
//! | the authority's reference lists | `reference` |
//! | an outage of the authority | `outage` |
//! | invoices from suppliers | `supplier_invoice` |

pub mod access;
pub mod events;
pub mod integration;
pub mod invoice;
pub mod kernel;
pub mod money;
pub mod outage;
pub mod party;
pub mod payment;
pub mod pipeline;
pub mod reconciliation;
pub mod reference;
pub mod supplier_invoice;
