//! The delivery pool: one supervised actor for each endpoint with due deliveries, up to a configured number of actors.
//!
//! | Concept | File |
//! |---|---|
//! | the actor of an endpoint and its dispatcher | `actor` |
//! | one endpoint: starts attempts in order and collects their outcomes | `endpoint_worker` |
//! | attempts in flight: running, finished or being written | `in_flight` |
//! | the next state of delivery and endpoint after an attempt | `outcome` |
//! | batched reads and writes for all endpoints | `due_reader`, `outcome_writer`, `batching` |
//! | deliveries that were in flight at a crash of the process | `crash` |
//! | replays, queued in parts | `replay` |
//! | one attempt: its target, format and access token | `attempt`, `token_cache` |
//! | the test of an endpoint | `test_delivery` |
//! | the test messages that grade an endpoint | `grading` |

mod actor;
mod attempt;
mod batching;
mod crash;
mod due_reader;
mod endpoint_worker;
mod grading;
mod in_flight;
mod outcome;
mod outcome_writer;
mod replay;
mod test_delivery;
mod token_cache;

pub use actor::{WebhookActors, dispatcher};
pub use endpoint_worker::DeliveryDeps;
pub use grading::GradingOutcome;
pub use test_delivery::TestDeliveryError;
pub use token_cache::TokenCache;
