//! The domain makes decisions only. It does no I/O: the caller passes times, random numbers and stored data as
//! arguments. The one exception is the id of an audit entry, which the crate `timing` makes.
//!
//! | Concept | Module |
//! |---|---|
//! | ids, digests and faults, used by all other modules | `kernel` |
//! | authenticated callers, their API keys, and idempotency claims | `access` |
//! | exact amounts; the payment of an invoice and its ledger postings | `money`, `payment` |
//! | an invoice: its number, states, updates, totals, items and views | `invoice` |
//! | the correction of a signed invoice with credit notes and a replacement | `correction` |
//! | invoices from files: the formats, the import profile of a taxpayer, the record of an import | `import` |
//! | taxpayers and customers, their tax numbers and email addresses | `party` |
//! | the steps of a run at the authority, its deadline and its resolution | `pipeline` |
//! | the event log, deliveries, replays and the health of an endpoint | `events` |
//! | authentication and format of notifications for a taxpayer's ERP | `integration` |
//! | work that was put aside after repeated panics or crashes | `quarantine` |
//! | the comparison of our ledger with the authority's ledger, day by day | `reconciliation` |
//! | the authority's reference lists | `reference` |
//! | situations that an operator may have to know about or act on | `incident` |
//! | an outage of the authority; the breakers of its calls on all replicas | `outage`, `breaker` |
//! | the notices that people get by mail, and the links in mails | `notice`, `mail_links` |
//! | the processes that serve the deployment | `replica` |
//! | the requests that accounts made, without secrets | `request_log` |
//! | the pause of a taxpayer by an operator | `taxpayer_pause` |
//! | invoices from suppliers | `supplier_invoice` |

pub mod access;
pub mod breaker;
pub mod correction;
pub mod events;
pub mod import;
pub mod incident;
pub mod integration;
pub mod invoice;
pub mod kernel;
pub mod mail_links;
pub mod money;
pub mod notice;
pub mod outage;
pub mod party;
pub mod payment;
pub mod pipeline;
pub mod quarantine;
pub mod reconciliation;
pub mod reference;
pub mod replica;
pub mod request_log;
pub mod supplier_invoice;
pub mod taxpayer_pause;
