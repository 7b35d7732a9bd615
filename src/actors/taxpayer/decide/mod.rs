//! What each command does to the books: pure decisions over the desk of a batch. A decision computes all
//! it needs, then puts it back; so it either happens as a whole or refuses without a trace.
//!
//! | Commands | File |
//! |---|---|
//! | create | `create` |
//! | set status, pay, receipt | `invoice`, `payment` |
//! | open a run, record a step | `pipeline` |
//! | onboard, profile, subscription, key, webhook | `account` |

mod account;
mod create;
mod invoice;
mod payment;
mod pipeline;
mod route;

pub(crate) use route::decide;
