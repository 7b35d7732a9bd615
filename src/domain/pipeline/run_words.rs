//! The enumerations of a run: its operations and steps, its states, the reasons to wait, and the actions of operators.

use crate::domain::kernel::codes::words;

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
    /// The state of a run. `Succeeded`, `Refused` and `Cancelled` are final, unless a caller repeats the request or an
    /// operator retries the run.
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
        /// The authority asked to be called less often.
        AuthorityThrottles = "authority-throttles",
        HealthCheckDown = "health-check-down",
        AccessPointOffline = "access-point-offline",
    }
}

words! {
    /// An action of an operator on a run.
    OperatorAction { Pause = "pause", Resume = "resume", Retry = "retry", Cancel = "cancel" }
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

    /// True for a step whose answer is soon outdated, so that it is called again each time the run continues.
    pub fn is_momentary(self) -> bool {
        matches!(self, Self::Health | Self::AccessPoints)
    }
}

impl RunState {
    /// True if the run continues by itself, without a request by a caller or an operator.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Waiting)
    }
}
