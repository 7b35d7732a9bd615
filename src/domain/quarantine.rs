//! Work in quarantine: commands and steps of runs that panicked twice, and runs, deliveries and tasks that were in
//! flight at three crashes of a process. The sender of a quarantined command got an error, so the command counts as
//! refused. It is executed again only if an operator replays it, and at most once.

use jiff::Timestamp;
use timing::CommandId;

use crate::domain::events::delivery::Delivery;
use crate::domain::events::event::EventKind;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::crash::CrashHistory;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::{OperatorAction, Run};

words! {
    /// The state of quarantined work. Only kept work can be replayed or dropped. Runs, deliveries and tasks leave the
    /// quarantine when they are released, so in quarantine they are always `Kept`.
    QuarantineState { Kept = "kept", Replayed = "replayed", Dropped = "dropped" }
}

words! {
    /// A task is work that a timer starts, such as the reconciliation of a taxpayer.
    WorkKind { Command = "command", Run = "run", Delivery = "delivery", Task = "task" }
}

/// Work in quarantine, as the list of operators shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedWork {
    pub kind: WorkKind,
    /// The id of the command, run or delivery; the lane of a task.
    pub reference: String,
    /// The command, the operation of the run, the event of the delivery or the kind of the task.
    pub name: String,
    pub taxpayer_id: Option<TaxpayerId>,
    /// The actor of the command, the IRN of the run, or the order key of the delivery, which is its IRN if it has one.
    pub about: Option<String>,
    /// The time when the work was quarantined. For a task: the time of its next attempt.
    pub at: Timestamp,
    pub cause: String,
    pub state: QuarantineState,
    /// The time of the last replay, or of the drop; `None` if there was neither.
    pub moved_at: Option<Timestamp>,
    /// The outcome of the last replay, in words.
    pub result: Option<String>,
    pub may_replay: bool,
    pub may_drop: bool,
    /// Says what an operator can do, or why nothing can be done.
    pub guidance: String,
}

impl From<QuarantinedCommand> for QuarantinedWork {
    fn from(found: QuarantinedCommand) -> Self {
        Self {
            kind: WorkKind::Command,
            may_replay: found.may_replay(),
            may_drop: found.state == QuarantineState::Kept,
            guidance: found.guidance().to_owned(),
            reference: found.reference.to_string(),
            name: found.command,
            taxpayer_id: found.taxpayer_id,
            about: Some(found.actor),
            at: found.at,
            cause: found.panic,
            state: found.state,
            moved_at: found.moved_at,
            result: found.result,
        }
    }
}

impl From<Run> for QuarantinedWork {
    fn from(run: Run) -> Self {
        let history = run.progress.crash_history;
        let step = run.progress.intent.or_else(|| run.next_step());
        let may_cancel = run.check_action(OperatorAction::Cancel).is_ok();
        let acts = if may_cancel {
            "Retry it, or cancel it."
        } else {
            "Retry it. It cannot be cancelled, because the authority may know of it."
        };
        Self {
            kind: WorkKind::Run,
            reference: run.id.to_string(),
            name: run.operation().to_string(),
            taxpayer_id: Some(run.taxpayer_id),
            about: Some(run.irn.to_string()),
            at: run.updated_at,
            cause: match step {
                Some(step) => format!("{}, at the step {step}", history.cause_in_words()),
                None => history.cause_in_words(),
            },
            state: QuarantineState::Kept,
            moved_at: None,
            result: None,
            may_replay: run.check_action(OperatorAction::Retry).is_ok(),
            may_drop: may_cancel,
            guidance: format!("{} {acts}", retry_outlook(history)),
        }
    }
}

impl QuarantinedWork {
    pub fn from_delivery(delivery: Delivery, kind: EventKind, at: Timestamp) -> Self {
        let history = delivery.crash_history;
        let acts =
            "Replay it, or drop it: it then stays a dead letter, which its taxpayer may replay.";
        Self {
            kind: WorkKind::Delivery,
            reference: delivery.id.to_string(),
            name: kind.to_string(),
            taxpayer_id: Some(delivery.taxpayer_id),
            about: Some(delivery.order_key),
            at,
            cause: history.cause_in_words(),
            state: QuarantineState::Kept,
            moved_at: None,
            result: None,
            may_replay: true,
            may_drop: true,
            guidance: format!("{} {acts}", retry_outlook(history)),
        }
    }

    /// Creates the entry of a task. `taxpayer` is `None` if the task serves all taxpayers.
    pub fn for_task(
        lane: String,
        name: String,
        taxpayer: Option<TaxpayerId>,
        at: Timestamp,
        crashes: u32,
    ) -> Self {
        Self {
            kind: WorkKind::Task,
            reference: lane,
            name,
            taxpayer_id: taxpayer,
            about: None,
            at,
            cause: CrashHistory {
                crashes,
                ..CrashHistory::default()
            }
            .cause_in_words(),
            state: QuarantineState::Kept,
            moved_at: None,
            result: None,
            may_replay: false,
            may_drop: false,
            guidance:
                "It is tried again by itself, alone, at this time. Each crash makes it wait longer."
                    .to_owned(),
        }
    }
}

/// Returns sentences that tell an operator when quarantined work is tried again, and what would quarantine it again.
fn retry_outlook(history: CrashHistory) -> &'static str {
    if history.may_lift_quarantine() {
        "It is tried once more, alone, when a process has lived for a while."
    } else {
        let released = history.release();
        match (
            released.after_crash().is_quarantined(),
            released.after_panic().is_quarantined(),
        ) {
            (true, false) => {
                "It is tried again only when it is released. It then goes alone, and its next crash puts it aside again."
            }
            (true, true) => {
                "It is tried again only when it is released. It then goes alone, and its next crash or panic puts it aside again."
            }
            (false, _) => {
                "It is tried again only when it is released. Its next panic then puts it aside again."
            }
        }
    }
}

/// The result that is stored for a replay before it is executed. It stays if the process ends before the outcome is
/// known.
pub const END_UNKNOWN_MESSAGE: &str =
    "The end of the replay is not known. Look for the invoice before its sender sends it again.";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedCommand {
    /// The id of the command. The log line of the sender's error contains it too.
    pub reference: CommandId,
    pub actor: String,
    pub command: String,
    /// The taxpayer whose data the command changes; `None` if it changes no taxpayer's data.
    pub taxpayer_id: Option<TaxpayerId>,
    pub at: Timestamp,
    pub panic: String,
    pub state: QuarantineState,
    /// The time of the last replay, or of the drop; `None` if there was neither.
    pub moved_at: Option<Timestamp>,
    /// The outcome of the last replay, in words.
    pub result: Option<String>,
    /// True if the contents of the command are stored, so that it can be replayed.
    pub has_contents: bool,
}

impl QuarantinedCommand {
    /// True if an operator may replay the command now.
    pub fn may_replay(&self) -> bool {
        self.state == QuarantineState::Kept && self.has_contents
    }

    /// Says what an operator can do with the command, or why it cannot be replayed.
    pub fn guidance(&self) -> &'static str {
        match (self.state, self.command.as_str()) {
            (QuarantineState::Replayed, _) => "It was replayed. It is not executed again.",
            (QuarantineState::Dropped, _) => "It was dropped. It is not executed.",
            (QuarantineState::Kept, _) if self.has_contents => {
                "A replay creates the invoice, unless its sender has created it since."
            }
            (QuarantineState::Kept, "create") => {
                "It is too large to be kept. Its sender has to send it again."
            }
            (QuarantineState::Kept, "record-steps" | "open-run" | "recheck-run" | "lift-run") => {
                "It cannot be replayed: the run keeps its own state and goes on from there, or its sender submits again."
            }
            (QuarantineState::Kept, "pay" | "take-payment-back") => {
                "It cannot be replayed: the sender may have reported the payment again, and it must not count twice."
            }
            (QuarantineState::Kept, _) => {
                "It cannot be replayed: the data may have changed since. Its sender has to send it again."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use timing::clock;

    use super::*;
    use crate::domain::pipeline::{Operation, RunRequest, Step, StepResult};

    #[test]
    fn only_a_kept_command_with_contents_may_be_replayed_and_each_says_why() {
        let kept = QuarantinedCommand {
            reference: clock::new_id(),
            actor: "7".to_owned(),
            command: "create".to_owned(),
            taxpayer_id: Some(TaxpayerId(7)),
            at: Timestamp::UNIX_EPOCH,
            panic: "no".to_owned(),
            state: QuarantineState::Kept,
            moved_at: None,
            result: None,
            has_contents: true,
        };
        assert!(kept.may_replay());
        for state in [QuarantineState::Replayed, QuarantineState::Dropped] {
            assert!(
                !QuarantinedCommand {
                    state,
                    ..kept.clone()
                }
                .may_replay()
            );
        }
        let without = |command: &str| {
            let command = command.to_owned();
            QuarantinedCommand {
                command,
                has_contents: false,
                ..kept.clone()
            }
        };
        assert!(!without("pay").may_replay());
        let said =
            ["create", "open-run", "pay", "rotate-key"].map(|command| without(command).guidance());
        assert_eq!(
            said.iter().collect::<std::collections::HashSet<_>>().len(),
            4,
            "each has its own reason"
        );
    }

    #[test]
    fn what_can_be_done_with_a_run_depends_on_what_the_authority_may_know_of_it() {
        let request = RunRequest::sample("INV001-94AD90FB-20261121", Operation::Submit);
        let run = Run::new(
            clock::new_id(),
            TaxpayerId(7),
            request,
            Timestamp::UNIX_EPOCH,
        );
        let crashed = |run: &Run| run.clone().after_crash().after_crash().after_crash();
        let begun = run.clone().begin_attempt(Step::Sign, Timestamp::UNIX_EPOCH);
        for (run, may_drop) in [(crashed(&run), true), (crashed(&begun), false)] {
            let error = run.progress.crash_history.quarantine_message().to_owned();
            let pause = StepResult::Pause { error };
            let work =
                QuarantinedWork::from(run.after_step(Step::Sign, &pause, Timestamp::UNIX_EPOCH));
            assert_eq!(
                (work.may_replay, work.may_drop),
                (true, may_drop),
                "{}",
                work.guidance
            );
            assert_eq!(
                work.guidance.contains("cannot be cancelled"),
                !may_drop,
                "{}",
                work.guidance
            );
        }
    }

    #[test]
    fn the_outlook_says_what_a_release_does() {
        let history = |crashes, panics, is_lifted| CrashHistory {
            crashes,
            panics,
            is_lifted,
        };
        for (counted, said) in [
            (history(3, 0, false), "by itself"),
            (history(3, 0, true), "its next crash puts"),
            (history(3, 1, false), "its next crash or panic puts"),
            (history(2, 2, false), "its next crash or panic puts"),
            (history(0, 2, false), "Its next panic then puts"),
            (history(1, 2, false), "Its next panic then puts"),
        ] {
            let outlook = retry_outlook(counted);
            let is_said = if said == "by itself" {
                outlook.contains("once more")
            } else {
                outlook.contains(said)
            };
            assert!(is_said, "{counted:?}: {outlook}");
            let again = counted.release();
            if outlook.contains("its next crash") {
                assert!(again.after_crash().is_quarantined(), "{counted:?}");
                assert_eq!(
                    outlook.contains("crash or panic"),
                    again.after_panic().is_quarantined(),
                    "{counted:?}"
                );
            } else if outlook.contains("Its next panic") {
                assert!(
                    again.after_panic().is_quarantined() && !again.after_crash().is_quarantined()
                );
            }
        }
    }
}
