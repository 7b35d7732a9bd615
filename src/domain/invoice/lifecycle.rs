//! The lifecycle of an invoice: every state, transition and refusal (spec.md, "States and transitions").

use crate::domain::kernel::codes::{AuthorityStatus, SettableStatus, WorkflowStatus};
use crate::domain::kernel::refusal::Refusal;

use WorkflowStatus::{
    Approved, Cancelled, Draft, Paid, Reported, Submitted, Transmitted, Validated,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// A caller sets a status with Update Invoice Status.
    Set(SettableStatus),
    /// A caller replaces customer, lines and details with Update Invoice.
    Edit,
    /// The whole payable is paid.
    Pay,
    /// A part of the payable is paid. A draft allows it only if another part was paid before (`partly_paid`).
    PayPart { partly_paid: bool },
    /// The payment is reported as pending or rejected. This does not change the state of the invoice.
    NotePayment,
    /// An amount that was recorded as paid is taken back.
    TakePaymentBack,
    /// The pipeline starts to submit the invoice.
    Submit,
    /// The pipeline has reached this stage.
    Reach(Stage),
    /// The submission of the invoice was refused, and nothing of it is or may be signed.
    Refuse,
}

/// The stages of the pipeline, in order. An invoice never goes back to an earlier stage. A validated invoice leaves the
/// stages again if its submission is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Validated,
    Submitted,
    Transmitted,
    Reported,
}

impl From<Stage> for WorkflowStatus {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Validated => Validated,
            Stage::Submitted => Submitted,
            Stage::Transmitted => Transmitted,
            Stage::Reported => Reported,
        }
    }
}

impl From<Stage> for AuthorityStatus {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Validated => Self::Validated,
            Stage::Submitted => Self::Submitted,
            Stage::Transmitted => Self::Transmitted,
            Stage::Reported => Self::Reported,
        }
    }
}

impl WorkflowStatus {
    pub fn after(self, step: Transition) -> Result<Self, Refusal> {
        match step {
            Transition::Set(status) => self.set_status(status),
            Transition::Edit => self.after_edit(),
            Transition::Pay => self.after_payment(),
            Transition::PayPart { partly_paid } => self.after_part_payment(partly_paid),
            Transition::Submit if self == Cancelled => Err(Refusal::InvalidTransition {
                from: self,
                to: "be submitted",
            }),
            Transition::TakePaymentBack => self.after_take_back(),
            Transition::Reach(stage) => self.reach_stage(stage),
            Transition::Refuse if self == Validated => Ok(Approved),
            Transition::Submit | Transition::NotePayment | Transition::Refuse => Ok(self),
        }
    }

    /// Returns the stage that the pipeline has reached; `None` if it has reached none.
    pub fn stage(self) -> Option<Stage> {
        match self {
            Draft | Approved | Cancelled | Paid => None,
            Validated => Some(Stage::Validated),
            Submitted => Some(Stage::Submitted),
            Transmitted => Some(Stage::Transmitted),
            Reported => Some(Stage::Reported),
        }
    }

    /// True if the pipeline has locked the invoice against edits.
    pub fn is_locked(self) -> bool {
        self.stage().is_some()
    }

    /// Returns the advice in the refusal to change a locked invoice: the way in which its content can still change.
    pub fn advice_if_locked(self) -> &'static str {
        if self == Validated {
            "submit the corrected document with the same irn"
        } else {
            "correct it with a credit note"
        }
    }

    fn set_status(self, status: SettableStatus) -> Result<Self, Refusal> {
        if self.is_locked() {
            return Err(Refusal::InvoiceLocked(self));
        }
        if self == Paid {
            return Err(Refusal::InvalidTransition {
                from: self,
                to: "be given another status",
            });
        }
        Ok(match status {
            SettableStatus::Draft => Draft,
            SettableStatus::Approved => Approved,
            SettableStatus::Cancelled => Cancelled,
        })
    }

    fn after_edit(self) -> Result<Self, Refusal> {
        match self {
            Draft | Approved => Ok(self),
            Paid | Cancelled => Err(Refusal::InvalidTransition {
                from: self,
                to: "be edited",
            }),
            Validated | Submitted | Transmitted | Reported => Err(Refusal::InvoiceLocked(self)),
        }
    }

    fn after_payment(self) -> Result<Self, Refusal> {
        match self {
            Approved | Paid => Ok(Paid),
            Validated | Submitted | Transmitted | Reported => Ok(self),
            Draft | Cancelled => Err(Refusal::InvoiceNotApproved(self)),
        }
    }

    fn after_part_payment(self, partly_paid: bool) -> Result<Self, Refusal> {
        match self {
            Draft if partly_paid => Ok(self),
            Draft | Cancelled => Err(Refusal::InvoiceNotApproved(self)),
            _ => Ok(self),
        }
    }

    /// Only an approved invoice becomes `Paid`, so it is approved again.
    fn after_take_back(self) -> Result<Self, Refusal> {
        match self {
            Paid => Ok(Approved),
            Cancelled => Err(Refusal::InvalidTransition {
                from: self,
                to: "have a payment taken back",
            }),
            Draft | Approved | Validated | Submitted | Transmitted | Reported => Ok(self),
        }
    }

    /// Moves the status forward to `stage`. A later status stays. A cancelled invoice is refused.
    fn reach_stage(self, stage: Stage) -> Result<Self, Refusal> {
        if self == Cancelled {
            return Err(Refusal::InvalidTransition {
                from: self,
                to: "go through the pipeline",
            });
        }
        Ok(if self.stage() < Some(stage) {
            stage.into()
        } else {
            self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOVES: [(&str, Transition); 15] = [
        ("set draft", Transition::Set(SettableStatus::Draft)),
        ("set approved", Transition::Set(SettableStatus::Approved)),
        ("set cancelled", Transition::Set(SettableStatus::Cancelled)),
        ("edit", Transition::Edit),
        ("pay", Transition::Pay),
        ("pay part", Transition::PayPart { partly_paid: false }),
        ("pay more", Transition::PayPart { partly_paid: true }),
        ("note", Transition::NotePayment),
        ("take back", Transition::TakePaymentBack),
        ("submit", Transition::Submit),
        ("reach validated", Transition::Reach(Stage::Validated)),
        ("reach submitted", Transition::Reach(Stage::Submitted)),
        ("reach transmitted", Transition::Reach(Stage::Transmitted)),
        ("reach reported", Transition::Reach(Stage::Reported)),
        ("refuse", Transition::Refuse),
    ];

    /// The snapshot shows the next state of each transition, `=` for the same state, or `x:` and the refusal.
    #[test]
    fn every_state_times_every_move() {
        let mut table = String::new();
        for state in WorkflowStatus::ALL {
            for (name, step) in MOVES {
                let outcome = match state.after(step) {
                    Ok(after) if after == *state => "=".to_owned(),
                    Ok(after) => after.to_string(),
                    Err(Refusal::InvoiceLocked(_)) => "x: locked".to_owned(),
                    Err(Refusal::InvoiceNotApproved(_)) => "x: not approved".to_owned(),
                    Err(Refusal::InvalidTransition { .. }) => "x: invalid transition".to_owned(),
                    Err(other) => other.to_string(),
                };
                table.extend([state.as_str(), " | ", name, " | ", &outcome, "\n"]);
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn the_pipeline_never_goes_back() {
        for state in WorkflowStatus::ALL {
            for stage in [
                Stage::Validated,
                Stage::Submitted,
                Stage::Transmitted,
                Stage::Reported,
            ] {
                if let Ok(after) = state.after(Transition::Reach(stage)) {
                    assert!(after.stage() >= state.stage());
                }
            }
        }
    }
}
