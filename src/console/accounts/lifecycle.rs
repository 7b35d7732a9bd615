//! The progress of an invoice: one word for it, and the steps that the invoice goes through.

use crate::console::accounts::pause_cause::PauseCause;
use crate::console::badges::{Badge, badge};
use crate::domain::invoice::lifecycle::Stage;
use crate::domain::invoice::{AuthorityState, Invoice};
use crate::domain::kernel::codes::{AuthorityStatus, WorkflowStatus};

/// The progress of an invoice, or what holds it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lifecycle {
    Draft,
    Approved,
    Waiting,
    Rejected,
    Failed,
    Signed,
    Transmitted,
    Received,
    Reported,
    Cancelled,
}

impl From<&Invoice> for Lifecycle {
    fn from(invoice: &Invoice) -> Self {
        Self::new(invoice.status, invoice.authority.status)
    }
}

impl Lifecycle {
    pub(super) fn new(status: WorkflowStatus, authority: AuthorityStatus) -> Self {
        match (status, authority) {
            (WorkflowStatus::Cancelled, _) => Self::Cancelled,
            (_, AuthorityStatus::Rejected) => Self::Rejected,
            (_, AuthorityStatus::Failed) => Self::Failed,
            (_, AuthorityStatus::Queued | AuthorityStatus::Validated)
            | (WorkflowStatus::Validated, AuthorityStatus::Pending) => Self::Waiting,
            (_, AuthorityStatus::Acknowledged) => Self::Received,
            (WorkflowStatus::Reported, _) | (_, AuthorityStatus::Reported) => Self::Reported,
            (WorkflowStatus::Transmitted, _) | (_, AuthorityStatus::Transmitted) => {
                Self::Transmitted
            }
            (WorkflowStatus::Submitted, _) | (_, AuthorityStatus::Submitted) => Self::Signed,
            (WorkflowStatus::Approved | WorkflowStatus::Paid, AuthorityStatus::Pending) => {
                Self::Approved
            }
            (WorkflowStatus::Draft, AuthorityStatus::Pending) => Self::Draft,
        }
    }
}

impl Lifecycle {
    /// Returns the badge. `pause` is the cause for which the run of a stopped invoice is paused, if it is known.
    pub(super) fn badge_with_pause(self, pause: Option<PauseCause>) -> Badge {
        match pause {
            Some(cause) if self == Self::Failed => cause.badge(),
            _ => self.into(),
        }
    }
}

impl From<Lifecycle> for Badge {
    fn from(progress: Lifecycle) -> Self {
        match progress {
            Lifecycle::Draft => badge("idle", "Draft"),
            Lifecycle::Approved => badge("info", "Approved"),
            Lifecycle::Waiting => badge("wait", "Waiting"),
            Lifecycle::Rejected => badge("bad", "Rejected"),
            // A list does not load the runs, so it cannot tell a failure from a hold by an operator.
            Lifecycle::Failed => badge("bad", "Stopped"),
            Lifecycle::Signed => badge("ok", "Signed"),
            Lifecycle::Transmitted => badge("ok", "Transmitted"),
            Lifecycle::Received => badge("ok", "Received"),
            Lifecycle::Reported => badge("ok", "Reported"),
            Lifecycle::Cancelled => badge("idle", "Cancelled"),
        }
    }
}

/// A step that an invoice goes through. `class` gives its colour and is empty for a step that is not reached.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LifecycleStep {
    pub(super) label: &'static str,
    pub(super) class: &'static str,
    /// True if this is the current step of the invoice.
    pub(super) is_current: bool,
}

/// The index of the step "Approved", which is the same in both lists of steps.
const APPROVAL: usize = 1;

/// Returns the steps of an invoice. If the invoice is held up, its current step shows the reason instead of its own
/// name. A draft was not approved, even if it was sent to the authority. A cancelled invoice has no steps.
pub(super) fn steps(
    status: WorkflowStatus,
    authority: &AuthorityState,
    pause: Option<PauseCause>,
) -> Vec<LifecycleStep> {
    let progress = Lifecycle::new(status, authority.status);
    if progress == Lifecycle::Cancelled {
        return Vec::new();
    }
    let labels: &[&str] = if progress == Lifecycle::Reported {
        &["Draft", "Approved", "Signed", "Reported"]
    } else {
        &["Draft", "Approved", "Signed", "Transmitted", "Received"]
    };
    let obstacle = matches!(
        progress,
        Lifecycle::Waiting | Lifecycle::Rejected | Lifecycle::Failed
    );
    let obstacle = obstacle.then(|| progress.badge_with_pause(pause));
    let reached = reached_step(status, authority, obstacle.is_some());
    let current = reached + usize::from(obstacle.is_some());
    let unapproved = (status == WorkflowStatus::Draft).then_some(APPROVAL);
    let step = |(index, label): (usize, &&'static str)| match obstacle {
        Some(badge) if index == current => LifecycleStep {
            label: badge.text,
            class: badge.class,
            is_current: true,
        },
        _ => LifecycleStep {
            label,
            class: if index <= reached && Some(index) != unapproved {
                "ok"
            } else {
                ""
            },
            is_current: index == current,
        },
    };
    labels.iter().enumerate().map(step).collect()
}

/// Returns the index of the last finished step. An invoice that was sent to the authority counts as approved.
fn reached_step(status: WorkflowStatus, authority: &AuthorityState, is_held_up: bool) -> usize {
    let stage = status.stage();
    match authority.status {
        AuthorityStatus::Acknowledged => 4,
        _ if stage >= Some(Stage::Transmitted) => 3,
        _ if authority.signed || stage >= Some(Stage::Submitted) => 2,
        _ if status != WorkflowStatus::Draft || is_held_up => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress_text(
        status: WorkflowStatus,
        authority: AuthorityStatus,
        pause: Option<PauseCause>,
    ) -> String {
        let state = AuthorityState {
            status: authority,
            qr_code: String::new(),
            signed: false,
        };
        let steps = steps(status, &state, pause).into_iter().map(|step| {
            let label = step.label;
            match (step.is_current, step.class) {
                (true, class) => format!("[{label} {class}]"),
                (false, "") => format!("({label})"),
                (false, _) => label.to_owned(),
            }
        });
        let steps: Vec<_> = steps.collect();
        format!(
            "{}: {}",
            Lifecycle::new(status, authority)
                .badge_with_pause(pause)
                .text,
            steps.join(" ")
        )
    }

    #[test]
    fn each_state_has_one_word_and_its_place_on_the_way() {
        let cases = [
            (WorkflowStatus::Draft, AuthorityStatus::Pending),
            (WorkflowStatus::Paid, AuthorityStatus::Pending),
            (WorkflowStatus::Draft, AuthorityStatus::Rejected),
            (WorkflowStatus::Validated, AuthorityStatus::Queued),
            (WorkflowStatus::Submitted, AuthorityStatus::Submitted),
            (WorkflowStatus::Submitted, AuthorityStatus::Rejected),
            (WorkflowStatus::Transmitted, AuthorityStatus::Transmitted),
            (WorkflowStatus::Transmitted, AuthorityStatus::Acknowledged),
            (WorkflowStatus::Reported, AuthorityStatus::Reported),
            (WorkflowStatus::Cancelled, AuthorityStatus::Rejected),
        ];
        let lines = cases.map(|(status, authority)| progress_text(status, authority, None));
        insta::assert_snapshot!(lines.join("\n"), @r"
        Draft: [Draft ok] (Approved) (Signed) (Transmitted) (Received)
        Approved: Draft [Approved ok] (Signed) (Transmitted) (Received)
        Rejected: Draft (Approved) [Rejected bad] (Transmitted) (Received)
        Waiting: Draft Approved [Waiting wait] (Transmitted) (Received)
        Signed: Draft Approved [Signed ok] (Transmitted) (Received)
        Rejected: Draft Approved Signed [Rejected bad] (Received)
        Transmitted: Draft Approved Signed [Transmitted ok] (Received)
        Received: Draft Approved Signed Transmitted [Received ok]
        Reported: Draft Approved Signed [Reported ok]
        Cancelled: 
        ");
    }

    #[test]
    fn a_stopped_invoice_says_who_or_what_stopped_it() {
        use PauseCause::{Failures, Operator, Quarantine};
        let failed = AuthorityStatus::Failed;
        for (authority, pause, expected) in [
            (failed, None, "Stopped: Draft Approved [Stopped bad]"),
            (
                failed,
                Some(Failures),
                "Failed: Draft Approved [Failed bad]",
            ),
            (
                failed,
                Some(Operator),
                "Held back: Draft Approved [Held back warn]",
            ),
            (
                failed,
                Some(Quarantine),
                "Set aside: Draft Approved [Set aside bad]",
            ),
            (
                AuthorityStatus::Pending,
                Some(Operator),
                "Approved: Draft [Approved ok] (Signed)",
            ),
        ] {
            let found = progress_text(WorkflowStatus::Approved, authority, pause);
            let expected = format!("{expected} (Transmitted) (Received)");
            assert_eq!(found, expected, "{authority} {pause:?}");
        }
    }
}
