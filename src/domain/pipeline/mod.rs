//! The plan of the authority pipeline: the steps of each operation and their effects on the invoice.

pub mod authority_document;
pub mod capacity;
pub mod deadline;
pub mod operator_action;
pub mod prediction;
pub mod resolution;
pub mod signed_copy;
pub mod transit;
pub mod turns;
pub mod vat_report;
pub mod waiting;

mod payload;
#[cfg(test)]
mod prediction_tests;
mod run;
mod run_request;
mod step_attempt;

use crate::domain::invoice::lifecycle::Stage;
use crate::domain::kernel::codes::words;
pub use crate::domain::pipeline::payload::RunPayload;
pub use crate::domain::pipeline::resolution::ResolvedBy;
pub use crate::domain::pipeline::run::{Run, RunPhase, StepProgress, parse_run_lane, run_lane};
pub use crate::domain::pipeline::run_request::RunRequest;
pub use crate::domain::pipeline::step_attempt::{StepRecord, StepResult};

/// The message of a transmission that this service refuses itself, without a call to the authority.
pub const NO_CUSTOMER_MESSAGE: &str = "the invoice names no customer to transmit it to";

words! {
    /// The operation that a run carries out at the authority.
    Operation {
        Submit = "submit",
        Transmit = "transmit",
        Report = "report",
        Payment = "update-payment-status",
    }
}

words! {
    /// A step of an operation: one kind of call to the authority.
    Step {
        IrnCheck = "irn-check",
        DataCheck = "data-check",
        Sign = "sign",
        Confirm = "confirm",
        Health = "health",
        AccessPoints = "access-points",
        Send = "send",
        Receipt = "receipt",
        Report = "report",
        Payment = "payment-update",
    }
}

words! {
    /// `Succeeded`, `Refused` and `Cancelled` are final until a caller repeats the request or an operator retries.
    RunState {
        Running = "running",
        Waiting = "waiting",
        Paused = "paused",
        Succeeded = "succeeded",
        Refused = "refused",
        Cancelled = "cancelled",
    }
}

words! {
    /// The reason why a run waits.
    WaitReason {
        AuthorityUnavailable = "authority-unavailable",
        HealthCheckDown = "health-check-down",
        AccessPointOffline = "access-point-offline",
    }
}

impl Operation {
    /// Returns the steps in the order in which a run takes them.
    pub fn steps(self) -> &'static [Step] {
        match self {
            Self::Submit => &[Step::IrnCheck, Step::DataCheck, Step::Sign, Step::Confirm],
            Self::Transmit => &[Step::Health, Step::AccessPoints, Step::Send],
            Self::Report => &[Step::Report],
            Self::Payment => &[Step::Payment],
        }
    }

    /// True if the operation can be requested again after success: a payment reported as paid may later be rejected.
    pub fn is_repeatable(self) -> bool {
        self == Self::Payment
    }

    /// Returns the first step that is not in `done`; `None` if all steps are done.
    pub fn next_step(self, done: &[Step]) -> Option<Step> {
        self.steps()
            .iter()
            .copied()
            .find(|step| !done.contains(step))
    }
}

impl Step {
    /// True if the call changes state at the authority. Only such a call can have an unknown outcome.
    pub fn has_effect(self) -> bool {
        matches!(self, Self::Sign | Self::Send | Self::Report | Self::Payment)
    }

    /// True for a step whose answer is soon outdated, so that the step is repeated each time the run continues.
    pub fn is_momentary(self) -> bool {
        matches!(self, Self::Health | Self::AccessPoints)
    }

    /// Returns the stage that the invoice reaches by this step; `None` if the step leads to no stage.
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

impl RunState {
    /// True if the run continues without a request by a caller or an operator.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Waiting)
    }
}
