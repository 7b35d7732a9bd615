//! Floor 1: outgoing webhooks.
//!
//! What a taxpayer's endpoint is sent is signed, and where it is sent is checked: at every connection, not
//! only when the URL is set. Each call here is one attempt; when the next one is due is data in `schedule`.
//! Deliberately absent: queues, persistence, and any knowledge of events.
//!
//! | Concept | File |
//! |---|---|
//! | Standard Webhooks signatures, and what makes them | `signature`, `secret` |
//! | Addresses and URLs that may be called | `address`, `destination` |
//! | The guarded HTTP client | `client`, its name resolution in `resolver`, whose connections it keeps in `kept_hosts` |
//! | What it may connect to | `gate`, asked by `resolver` and, for an address in the URL, by `passage` |
//! | What came of an attempt, and when | `attempt`, `phases`, `retry_after` |
//! | How a notification is written, how a request authenticates itself | `format`, `auth` |
//! | When the attempts are made | `schedule` |
//! | What a receiver is worth, and why | `grade`, `explanation` |
//! | Why a delivery was given up, and what to do | `remedy` |

mod address;
mod attempt;
pub mod auth;
mod client;
mod destination;
mod explanation;
#[cfg(test)]
mod forgery;
pub mod format;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gate;
mod grade;
mod kept_hosts;
mod passage;
mod phases;
mod remedy;
mod resolver;
mod retry_after;
mod schedule;
mod secret;
mod signature;
#[cfg(test)]
mod testing;

pub use address::AddressPolicy;
pub use attempt::{Attempt, Fault, Outcome};
pub use client::{BuildError, GuardedClient, Post};
pub use destination::UrlFault;
pub use grade::{Check, Grade, Graded, Mark, graded};
pub use phases::Phases;
pub use remedy::Remedy;
pub use retry_after::RetryAfter;
pub use schedule::Schedule;
pub use secret::{Secret, SecretFault};
pub use signature::{Message, VerifyFault};
