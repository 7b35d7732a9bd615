//! The report of the command `verify`: the broken chains, the chains that differ from their checkpoints,
//! and the reason why a checkpoint file cannot be relied on, in words for an operator.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use crate::domain::events::checkpoint::LastCheckpointLine;
use crate::domain::kernel::ids::TaxpayerId;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerificationReport {
    pub(super) taxpayers: usize,
    pub(super) events: i64,
    /// The broken chains: the taxpayer, and the sequence of the first event whose hash does not match the event before.
    pub(super) breaks: Vec<(TaxpayerId, i64)>,
    /// The first difference between a chain and its checkpoints, for each taxpayer whose chain differs.
    pub(super) differences: BTreeMap<TaxpayerId, ChainDifference>,
    /// The number and hash of the last checkpoint read; `None` if no checkpoints were compared.
    pub(super) checkpoints: Option<LastCheckpointLine>,
    /// The reason why the checkpoint file cannot be relied on; `None` if there is no doubt about the file.
    pub(super) fault: Option<CheckpointDoubt>,
}

/// A difference between a chain and checkpoint `number`, which signs the event `sequence`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChainDifference {
    /// The chain has an event with this sequence, but its hash differs from the one in the checkpoint.
    Rewritten { sequence: i64, number: u64 },
    /// The chain ends at event `end`, before the event that the checkpoint signs.
    Truncated {
        sequence: i64,
        number: u64,
        end: i64,
    },
    /// The event that the checkpoint signs is missing, but later events exist.
    Missing { sequence: i64, number: u64 },
    /// The chain has no event any more.
    Removed { sequence: i64, number: u64 },
}

/// The reason why a checkpoint file proves less than it should: somebody may have emptied, cut or replaced it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CheckpointDoubt {
    /// Reading stopped before the end of the file.
    #[error("{0}")]
    Unreadable(String),
    #[error("the file holds no checkpoint")]
    Empty,
    #[error(
        "its last line has no end: the line was cut, or a crash interrupted it (the next checkpoint removes it)"
    )]
    Cut,
    #[error("it ends at checkpoint {end}, and checkpoint {expected} was in it")]
    Shortened { end: u64, expected: u64 },
    #[error("its checkpoint {0} is another one than it was")]
    Replaced(u64),
    #[error(
        "event {sequence} of taxpayer {taxpayer}, of {event_time}, is in no checkpoint: lines are missing at its end, or no checkpoint was made since"
    )]
    Stale {
        taxpayer: TaxpayerId,
        sequence: i64,
        event_time: Timestamp,
    },
}

impl VerificationReport {
    pub fn is_intact(&self) -> bool {
        self.breaks.is_empty() && self.differences.is_empty() && self.fault.is_none()
    }
}

impl fmt::Display for ChainDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rewritten { sequence, number } => {
                write!(
                    f,
                    "was rewritten: event {sequence} is not the one of checkpoint {number}"
                )
            }
            Self::Truncated {
                sequence,
                number,
                end,
            } => write!(
                f,
                "was truncated: it ends at event {end}, and checkpoint {number} has event {sequence}"
            ),
            Self::Missing { sequence, number } => {
                write!(
                    f,
                    "was rewritten: event {sequence} of checkpoint {number} is gone"
                )
            }
            Self::Removed { sequence, number } => {
                write!(
                    f,
                    "was removed: it had event {sequence} at checkpoint {number}"
                )
            }
        }
    }
}

impl fmt::Display for VerificationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events of {} taxpayers", self.events, self.taxpayers)?;
        for (taxpayer, sequence) in &self.breaks {
            write!(
                f,
                "; the chain of taxpayer {taxpayer} breaks at event {sequence}"
            )?;
        }
        for (taxpayer, difference) in &self.differences {
            write!(f, "; the chain of taxpayer {taxpayer} {difference}")?;
        }
        if let Some(fault) = &self.fault {
            write!(f, "; the checkpoints cannot be relied on: {fault}")?;
        }
        if self.is_intact() {
            f.write_str(": every chain is whole")?;
        }
        let Some(last) = &self.checkpoints else {
            return Ok(());
        };
        write!(
            f,
            ", compared with {} checkpoints, the last {}",
            last.number, last.hash
        )?;
        // The last checkpoint is printed on a line of its own at the end, so that an operator can keep it for
        // `--at-least`.
        if self.is_intact() {
            write!(f, "\n{last}")
        } else {
            Ok(())
        }
    }
}
