//! The pipeline to the authority: the steps of each operation and their effects on the invoice.
//!
//! | File | Content |
//! |---|---|
//! | `authority_document` | the document that Submit sends to the authority, with the authority's names for fields and values |
//! | `capacity` | the capacity of the pipeline: the time in which a queue of runs is processed |
//! | `deadline` | the legal deadline for an invoice to reach the authority |
//! | `operator_action` | the actions of operators on a run |
//! | `payload` | the payload of a run: the content that the run sends to the authority |
//! | `prediction` | predicts when a run ends, with a range around the expected time, and measures how far past predictions were off |
//! | `resolution` | the ways in which the outcome of a call became known |
//! | `run` | a run, which takes one document through the steps of an operation |
//! | `run_order` | the order in which runs get a worker |
//! | `run_request` | a request for a run, which opens one, joins one or replaces its document |
//! | `run_words` | the enumerations of a run: its operations and steps, its states, the reasons to wait, and the actions of operators |
//! | `signed_copy` | compares the authority's signed copy of an invoice with the document that was sent |
//! | `step_attempt` | an attempt at a step of a run, and its entry in the log of steps |
//! | `transit` | the transmission state of an invoice according to our records |
//! | `vat_report` | a sale and its VAT, which the operation Report sends to the authority |
//! | `waiting` | explains to people why a run does not continue |

pub mod authority_document;
pub mod capacity;
pub mod deadline;
pub mod prediction;
pub mod resolution;
pub mod run_order;
pub mod signed_copy;
pub mod transit;
pub mod vat_report;
pub mod waiting;

mod operator_action;
mod payload;
#[cfg(test)]
mod prediction_tests;
mod run;
mod run_request;
mod run_words;
mod step_attempt;

use crate::domain::invoice::lifecycle::Stage;
pub use crate::domain::pipeline::payload::RunPayload;
pub use crate::domain::pipeline::resolution::ResolvedBy;
pub use crate::domain::pipeline::run::{
    Run, RunPhase, StepProgress, parse_run_lane_key, run_lane_key,
};
pub use crate::domain::pipeline::run_request::RunRequest;
pub use crate::domain::pipeline::run_words::{
    Operation, OperatorAction, RunState, Step, WaitReason,
};
pub use crate::domain::pipeline::step_attempt::{StepRecord, StepResult};

/// The message of a transmission that this service refuses itself, without a call to the authority.
pub const NO_CUSTOMER_MESSAGE: &str = "the invoice names no customer to transmit it to";

impl Step {
    /// Returns the stage that the invoice reaches when this step is done; `None` if it stays in its stage.
    pub fn stage(self) -> Option<Stage> {
        match self {
            Self::DataCheck => Some(Stage::Validated),
            Self::Confirm => Some(Stage::Submitted),
            Self::Send => Some(Stage::Transmitted),
            Self::Report => Some(Stage::Reported),
            Self::IrnCheck
            | Self::Sign
            | Self::Health
            | Self::AccessPoints
            | Self::Receipt
            | Self::Payment => None,
        }
    }
}
