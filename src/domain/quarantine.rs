//! Commands that panicked twice and were put aside. Each sender got an error, so none of these commands was accepted:
//! a command is executed again only if an operator asks for it, and at most once.

use jiff::Timestamp;

use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{CommandId, TaxpayerId};

words! {
    /// The state of a quarantined command. Only a kept command can be replayed or dropped.
    QuarantineState { Kept = "kept", Replayed = "replayed", Dropped = "dropped" }
}

/// The result of a replay until its end is known. It stays if the process ends meanwhile.
pub const END_UNKNOWN: &str =
    "The end of the replay is not known. Look for the invoice before its sender sends it again.";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedCommand {
    /// The id of the command, which its sender also got in the log line of the error.
    pub reference: CommandId,
    pub actor: String,
    pub command: String,
    /// `None` if the command changes nothing of a taxpayer.
    pub taxpayer_id: Option<TaxpayerId>,
    pub at: Timestamp,
    pub panic: String,
    pub state: QuarantineState,
    /// The time of the last replay or of the drop.
    pub moved_at: Option<Timestamp>,
    /// How the last replay ended.
    pub result: Option<String>,
    /// True if the contents of the command are stored.
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
            (QuarantineState::Kept, "pay") => {
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
    use super::*;
    use crate::domain::kernel::clock;

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
            assert!(!QuarantinedCommand { state, ..kept.clone() }.may_replay());
        }
        let without = |command: &str| {
            let command = command.to_owned();
            QuarantinedCommand { command, has_contents: false, ..kept.clone() }
        };
        assert!(!without("pay").may_replay());
        let said = ["create", "open-run", "pay", "rotate-key"].map(|command| without(command).guidance());
        assert_eq!(said.iter().collect::<std::collections::HashSet<_>>().len(), 4, "each has its own reason");
    }
}
