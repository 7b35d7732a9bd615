//! The actors, and the parts that several actors share. The crate `supervision` keeps them alive.
//!
//! | Module | Contents |
//! |---|---|
//! | `kinds` | the kinds of actors, by which operators and metrics group them |
//! | `taxpayer` | one actor per active taxpayer, the only writer of its data |
//! | `pipeline` | one actor per active run, which drives an invoice through the authority |
//! | `delivery` | one actor per endpoint with due deliveries |
//! | `inbound` | receives the authority's notifications and polls its list of invoices in transit |
//! | `outage` | detects outages of the authority and notifies the taxpayers |
//! | `mail` | gathers notices into mails and sends them |
//! | `reconciliation` | compares the stored ledger with the authority's, day by day |
//! | `reference` | refreshes the snapshot of the authority's reference lists |
//! | `verification` | verifies taxpayers with the authority |
//! | `checkpoint` | signs the heads of the event chains periodically |
//! | `key_usage` | stores when API keys were last used |
//! | `request_log` | keeps the requests of accounts and writes them in batches |
//! | `key_leases` | holds the lease that lets this process use its cached API keys |
//! | `clock_watch` | detects clocks that were set back |
//! | `quarantine_lift` | releases work that is in quarantine only because processes crashed |
//! | `sweeper` | deletes what has expired: idempotency keys, quarantined commands, logged requests, mails |
//! | `durations` | measures how long deliveries and signatures take |
//! | `incidents` | logs and counts what an operator may have to look into |
//! | `call_failure` | the causes of failed calls to the authority, in the words of operators |
//! | `on_behalf` | clients of the authority that call on behalf of a taxpayer |
//! | `turn_gate` | a budget that paying accounts use in turn |
//! | `dispatch` | claims due lanes and hands them to their actors |
//! | `notifiers`, `keyed_notify`, `run_changes` | in-process notifications after a commit |

pub(crate) mod call_failure;
pub mod checkpoint;
pub mod clock_watch;
pub mod delivery;
pub mod dispatch;
pub mod durations;
pub mod inbound;
pub mod incidents;
pub mod key_leases;
pub mod key_usage;
pub mod keyed_notify;
pub mod kinds;
pub mod mail;
pub mod notifiers;
pub(crate) mod on_behalf;
pub mod outage;
pub mod pipeline;
pub mod quarantine_lift;
pub mod reconciliation;
pub mod reference;
pub mod request_log;
pub mod run_changes;
pub mod sweeper;
pub mod taxpayer;
pub(crate) mod turn_gate;
pub mod verification;
