//! The pipeline: one supervised actor per running run drives an invoice through the authority.
//!
//! | Concept | File |
//! |---|---|
//! | who starts and awaits runs | `door` |
//! | the actor of a run, and who feeds it | `worker` |
//! | a run, step by step | `driver` |
//! | one step's call; what a failure leads to | `steps`, `verdict` |
//! | a run whose step ended a process | `crash` |
//! | which steps can be called at present | `gates` |
//! | how long the queue is, and how fast it moves | `backlog`, `pace` |
//! | what became of a call that was not answered | `resolve`, `witness` |

pub mod backlog;
mod crash;
pub mod door;
mod driver;
mod gates;
pub mod pace;
mod resolve;
mod steps;
mod verdict;
mod witness;
mod worker;

pub use driver::Gear;
pub use worker::{PipelineActors, dispatcher};
