//! The delivery pool: one supervised task for each endpoint with due deliveries, up to a configured number of
//! endpoints.
//!
//! | Concept | File |
//! |---|---|
//! | the endpoints that are served, and their dispatcher | `pool`, `serving` |
//! | one endpoint: loads due deliveries, starts attempts in order and collects their outcomes | `endpoint_worker` |
//! | the due deliveries, and those that a round has loaded; attempts in flight: running, finished or being written | `due_work`, `in_flight` |
//! | the next state of delivery and endpoint after an attempt | `outcome` |
//! | batched reads and writes for all endpoints | `batches`, `outcome_writer` |
//! | the settings and handles that all parts share; the errors that stop deliveries | `deps`, `error` |
//! | deliveries that were in flight at a crash of the process | `crash` |
//! | replays, queued in parts | `replay` |
//! | one attempt: its target, format and access token | `attempt`, `erp_settings`, `token_cache` |
//! | the test of an endpoint | `test_delivery` |
//! | the test messages that grade an endpoint | `grading` |

mod attempt;
mod batches;
mod crash;
mod deps;
mod due_work;
mod endpoint_worker;
mod erp_settings;
mod error;
mod grading;
mod in_flight;
mod outcome;
mod outcome_writer;
mod pool;
mod replay;
mod serving;
mod test_delivery;
mod token_cache;

pub use deps::DeliveryDeps;
pub use grading::GradingOutcome;
pub use pool::DeliveryPool;
pub use test_delivery::TestDeliveryError;
pub use token_cache::TokenCache;
