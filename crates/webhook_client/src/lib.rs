//! Outgoing webhooks: one signed HTTP attempt at the endpoint of a receiver, and the rules for it.
//!
//! The address policy is checked at every connection, not only when the URL is set. A call here makes one attempt;
//! `schedule` says when the next attempt is due. Deliberately absent: queues, persistence and events.
//!
//! | Concept | File |
//! |---|---|
//! | the guarded HTTP client | `http` |
//! | Standard Webhooks signatures and their keys | `signing` |
//! | how a notification is written for its receiver | `format` |
//! | how a request authenticates itself | `auth` |
//! | the result of one attempt | `attempt` |
//! | the delays between attempts | `schedule` |
//! | the grade of a receiver | `grading` |

mod attempt;
pub mod auth;
pub mod format;
mod grading;
mod http;
mod schedule;
mod signing;
#[cfg(test)]
mod testing;

pub use attempt::{AttemptOutcome, AttemptResult, TransportFault};
pub use grading::{CheckResult, Grade, GradeCheck, GradeReport, grade_answers};
pub use http::{ClientBuildError, GuardedClient, LoggedHeaders, PhaseTimes, PostRequest};
pub use schedule::RetrySchedule;
pub use signing::{SecretFault, SignedMessage, SigningSecret};
