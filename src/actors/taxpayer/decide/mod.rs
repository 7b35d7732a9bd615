//! What each command does to the books: pure decisions over the desk of a batch. A decision computes all
//! it needs, then puts it back; so it either happens as a whole or refuses without a trace.
//!
//! | Commands | File |
//! |---|---|
//! | create | `create` |
//! | set status, pay, receipt | `invoice` |
//! | open a run, record a step | `pipeline` |
//! | what operators do to a run | `operate` |
//! | onboard, profile, subscription, key, webhook | `account` |
//! | replay, enable a webhook | `webhook` |

mod account;
mod create;
mod invoice;
mod operate;
mod pipeline;
mod route;
mod webhook;

pub(crate) use route::decide;
