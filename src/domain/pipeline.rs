//! The authority pipeline as a plan: which steps an operation takes, what a step makes of the invoice,
//! and the states of a run. How a step is called and when it is tried again is decided elsewhere. The moves of a
//! run through its steps stand in `run`.

pub mod deadline;
pub mod operator_action;
pub mod resolution;
pub mod signed_copy;
pub mod transit;

mod run;

use crate::domain::invoice::lifecycle::Stage;
use crate::domain::kernel::codes::words;
pub use crate::domain::pipeline::resolution::ResolvedBy;
pub use crate::domain::pipeline::run::{Run, RunRequest, StepRecord, StepResult};

words! {
    /// What a run does.
    Operation {
        Submit = "submit",
        Transmit = "transmit",
        Report = "report",
        Payment = "update-payment-status",
    }
}

words! {
    /// One exchange with the authority.
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
    /// Where a run stands. The last three are final until the same operation is asked for again.
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
    /// Why a run waits before it goes on.
    WaitReason {
        AuthorityUnavailable = "authority-unavailable",
        HealthCheckDown = "health-check-down",
        AccessPointOffline = "access-point-offline",
    }
}

impl Operation {
    /// The steps in order.
    pub fn steps(self) -> &'static [Step] {
        match self {
            Self::Submit => &[Step::IrnCheck, Step::DataCheck, Step::Sign, Step::Confirm],
            Self::Transmit => &[Step::Health, Step::AccessPoints, Step::Send],
            Self::Report => &[Step::Report],
            Self::Payment => &[Step::Payment],
        }
    }

    /// Whether it may be asked for again once it has ended: what is paid may be rejected later. The others
    /// happen once for an IRN.
    pub fn repeats(self) -> bool {
        self == Self::Payment
    }

    /// The first step that is not done; `None` when all are.
    pub fn next(self, done: &[Step]) -> Option<Step> {
        self.steps().iter().copied().find(|step| !done.contains(step))
    }
}

impl Step {
    /// Whether the call changes something at the authority, so that its outcome can be unknown.
    pub fn has_effect(self) -> bool {
        matches!(self, Self::Sign | Self::Send | Self::Report | Self::Payment)
    }

    /// Whether it must be taken anew each time the run goes on: an answer about a moment does not last.
    pub fn is_momentary(self) -> bool {
        matches!(self, Self::Health | Self::AccessPoints)
    }

    /// The stage of the invoice once the step is done.
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
    /// Whether the run goes on by itself.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Waiting)
    }
}
