//! The pipeline: one supervised actor per running run drives an invoice through the authority.
//!
//! | Concept | File |
//! |---|---|
//! | who starts and awaits runs | `door` |
//! | the actor of a run, and who feeds it | `worker` |
//! | a run, step by step | `driver` |
//! | one step's call; what a failure leads to | `steps`, `verdict` |

pub mod door;
mod driver;
mod steps;
mod verdict;
mod worker;

pub use driver::Gear;
pub use worker::{PipelineActors, dispatcher};
