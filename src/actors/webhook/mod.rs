//! The webhook pool: one supervised actor per endpoint with something due, so many at once.
//!
//! | Concept | File |
//! |---|---|
//! | the actor of an endpoint, and who feeds it | `worker` |
//! | attempts, their order and their log | `courier` |
//! | replays, part by part | `replay` |
//! | one attempt, and the test of an endpoint | `rehearsal` |
//! | the battery of tests that grades an endpoint | `grading` |

mod courier;
mod grading;
mod rehearsal;
mod replay;
mod worker;

pub use courier::Satchel;
pub use grading::Grading;
pub use rehearsal::NotSent;
pub use worker::{WebhookActors, dispatcher};
