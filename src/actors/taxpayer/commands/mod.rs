//! The commands of a taxpayer actor, decided by functions over the unit of work. A function makes all checks first and
//! changes the unit of work last, so a refused command leaves no trace. Nothing here reads or writes the database.
//!
//! | Commands | File |
//! |---|---|
//! | routing of a command to its decision | `execute` |
//! | create one invoice, create a batch | `create` |
//! | update an invoice, set its status | `update` |
//! | the customer and the items of an invoice | `resolve_customer_and_items` |
//! | pay; payments relayed to the authority | `payment` |
//! | open a run, record a step, recheck | `runs` |
//! | pause, resume, retry or cancel a run | `operator_actions` |
//! | transmissions, supplier invoices and outages reported by the authority | `inbound` |
//! | onboarding, profile, subscription, key, verification | `account` |
//! | webhook endpoint and replays | `webhook` |
//! | how the ERP receives notifications | `integration` |

mod account;
mod create;
mod execute;
mod inbound;
mod integration;
mod operator_actions;
mod payment;
mod resolve_customer_and_items;
mod runs;
mod update;
mod webhook;

pub(crate) use execute::execute;
