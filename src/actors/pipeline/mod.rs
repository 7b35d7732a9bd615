//! The pipeline: one supervised task per active run drives an invoice through the authority.
//!
//! | Concept | File |
//! |---|---|
//! | callers start runs and wait for them | `handle` |
//! | the active runs and their dispatcher | `pool` |
//! | a run, step by step; the errors that stop it | `runner`, `run_error` |
//! | the call of a step; the decision that follows its outcome | `step_executor`, `next_action` |
//! | a run that was active when a process ended | `crash` |
//! | steps that cannot be called at present | `blocked_steps` |
//! | runs whose call is held back after their claim | `held_back` |
//! | why due runs are not taken | `run_holds` |
//! | where a run is in the queue and when it ends; the measurements for that | `queue_position`, `measurements` |
//! | why a run waits | `waiting` |
//! | the outcome of a call without an answer | `resolve_unknown`, `remote_status` |
//! | the span of the work on a run | `run_span` |

mod blocked_steps;
mod crash;
pub mod handle;
mod held_back;
pub mod measurements;
mod next_action;
mod pool;
pub mod queue_position;
mod remote_status;
mod resolve_unknown;
mod run_error;
pub mod run_holds;
mod run_span;
mod runner;
mod step_executor;
mod waiting;

pub use pool::RunPool;
pub use runner::PipelineDeps;
