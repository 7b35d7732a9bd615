//! Floor 1: outgoing webhooks.
//!
//! What a taxpayer's endpoint is sent is signed, and where it is sent is checked: at every connection, not
//! only when the URL is set. Each call here is one attempt; when the next one is due is data in `schedule`.
//! Deliberately absent: queues, persistence, and any knowledge of events.
//!
//! | Concept | File |
//! |---|---|
//! | Standard Webhooks signatures | `signature` |
//! | Addresses and URLs that may be called | `address`, `destination` |
//! | The guarded HTTP client | `client`, its name resolution in `resolver` |
//! | What came of an attempt | `attempt` |
//! | When the attempts are made | `schedule` |
//! | What a receiver is worth, and why | `grade`, `explanation` |
//! | Why a delivery was given up, and what to do | `remedy` |

mod address;
mod attempt;
mod client;
mod destination;
mod explanation;
mod grade;
mod remedy;
mod resolver;
mod schedule;
mod signature;
#[cfg(test)]
mod testing;

pub use address::AddressPolicy;
pub use attempt::{Attempt, Fault, Outcome};
pub use client::{BuildError, GuardedClient, Post};
pub use destination::UrlFault;
pub use grade::{Check, Grade, Graded, Mark, graded};
pub use remedy::Remedy;
pub use schedule::Schedule;
pub use signature::{Message, Secret, SecretFault, VerifyFault};
