//! The webhook pool: one supervised actor per endpoint with something due, so many at once.
//!
//! | Concept | File |
//! |---|---|
//! | the actor of an endpoint, and who feeds it | `worker` |
//! | attempts, their order and their log | `courier` |

mod courier;
mod worker;

pub use courier::Satchel;
pub use worker::{WebhookActors, dispatcher};
