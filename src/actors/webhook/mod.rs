//! The webhook pool: one supervised actor per endpoint with something due, so many at once.
//!
//! | Concept | File |
//! |---|---|
//! | the actor of an endpoint, and who feeds it | `worker` |
//! | attempts and their order | `courier` |
//! | what follows from them | `verdict` |
//! | what is under way, and what of it is not on the disk yet | `flight` |
//! | what is next and what came of it, read and written for all endpoints together | `scout`, `recorder`, `together` |
//! | what was under way when a process ended | `crash` |
//! | replays, part by part | `replay` |
//! | one attempt: to whom, in which format, with which token | `attempt`, `recipient`, `keyring` |
//! | the test of an endpoint | `rehearsal` |
//! | the battery of tests that grades an endpoint | `grading` |

mod attempt;
mod courier;
mod crash;
mod flight;
mod grading;
mod keyring;
mod recipient;
mod recorder;
mod rehearsal;
mod replay;
mod scout;
mod together;
mod verdict;
mod worker;

pub use courier::Satchel;
pub use grading::Grading;
pub use keyring::Keyring;
pub use rehearsal::NotSent;
pub use worker::{WebhookActors, dispatcher};
