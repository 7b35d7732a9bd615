//! The pipeline to the authority: the steps of each operation and their effects on the invoice.

pub mod authority_document;
pub mod capacity;
pub mod deadline;
pub mod prediction;
pub mod resolution;
pub mod signed_copy;
pub mod transit;
pub mod turns;
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
