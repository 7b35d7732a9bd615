//! Pure decisions: no clock, no randomness, no I/O.
//!
//! | Concept | Module |
//! |---|---|
//! | ids, time, digests, faults: what all others use | `kernel` |
//! | who calls, with which key, and requests that are processed once | `access` |
//! | exact amounts, and what a payment changes | `money`, `payment` |
//! | an invoice: its number, states, updates, totals, items and views | `invoice` |
//! | taxpayers and customers, their tax numbers and email addresses | `party` |
//! | the steps of a run at the authority, its deadline and its resolution | `pipeline` |
//! | the event log, deliveries, replays and the health of an endpoint | `events` |
//! | how a taxpayer's ERP takes notifications | `integration` |
//! | our ledger beside the authority's, a day at a time | `reconciliation` |
//! | the authority's reference lists | `reference` |
//! | an outage of the authority | `outage` |
//! | what suppliers sent | `supplier_invoice` |

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
