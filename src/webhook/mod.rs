//! Outgoing webhooks: one signed HTTP attempt at a taxpayer's endpoint, and the rules for it.
//!
//! The address policy is checked at every connection, not only when the URL is set. A call here makes one attempt;
//! `schedule` says when the next attempt is due. Deliberately absent: queues, persistence and events.
//!
//! | Concept | File |
//! |---|---|
//! | the guarded HTTP client | `http` |
//! | Standard Webhooks signatures and their keys | `signing` |
//! | how a notification is written for an ERP | `format` |
//! | how a request authenticates itself | `auth` |
//! | the result of one attempt | `attempt` |
//! | the delays between attempts | `schedule` |
//! | the grade of a receiver | `grading` |
//! | why a delivery was given up, and advice for its owner | `guidance` |

mod attempt;
pub mod auth;
pub mod format;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod grading;
mod guidance;
mod http;
mod schedule;
mod signing;
#[cfg(test)]
mod testing;

pub use attempt::{AttemptOutcome, AttemptResult, TransportFault};
pub use grading::{CheckResult, Grade, GradeCheck, GradeReport, grade_answers};
pub use guidance::Guidance;
pub use http::{
    AddressPolicy, ClientBuildError, GuardedClient, PhaseTimes, PostRequest, URL_CHARS_MAX,
    UrlFault,
};
pub use schedule::RetrySchedule;
pub use signing::{SecretFault, SignedMessage, SigningSecret};
