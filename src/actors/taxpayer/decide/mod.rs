//! What each command does to the books: pure decisions over the desk of a batch. A decision computes all
//! it needs, then puts it back; so it either happens as a whole or refuses without a trace.
//!
//! | Commands | File |
//! |---|---|
//! | create | `create` |
//! | update | `revise` |
//! | the customer and the items that both are about | `matching` |
//! | create, create together | `create`, `batch` |
//! | set status, pay | `invoice`, `payment` |
//! | what the authority says of a transmission: on its way, arrived | `transit` |
//! | receive and acknowledge a supplier's invoice | `supplier` |
//! | open a run, record a step | `pipeline` |
//! | what operators do to a run, and the authority's search | `operate`, `reconsider` |
//! | onboard, profile, subscription, key, webhook | `account` |
//! | how the ERP takes notifications | `integration` |
//! | who the taxpayer is | `verification` |
//! | tell of an outage | `outage` |
//! | replay, enable a webhook | `webhook` |

mod account;
mod batch;
mod create;
mod integration;
mod invoice;
mod matching;
mod operate;
mod outage;
mod payment;
mod pipeline;
mod reconsider;
mod revise;
mod route;
mod supplier;
mod transit;
mod verification;
mod webhook;

pub(crate) use route::decide;
