//! The transmission state of an invoice according to our records. A change that the state already contains is not
//! recorded again.

use crate::domain::invoice::Invoice;
use crate::domain::invoice::lifecycle::Stage;
use crate::domain::kernel::codes::AuthorityStatus;
use crate::domain::pipeline::{Operation, Run, Step};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransmissionState {
    /// True if our records say that the invoice was transmitted.
    pub is_transmitted: bool,
    pub is_acknowledged: bool,
}

impl TransmissionState {
    /// Derives the state from all runs of the IRN and from the invoice, if it is stored.
    pub fn from_runs(invoice: Option<&Invoice>, runs: &[Run]) -> Self {
        let did = |step| runs.iter().any(|run: &Run| run.done.contains(&step));
        let has_reached = match invoice {
            Some(invoice) => invoice.status.stage() >= Some(Stage::Transmitted),
            None => did(Step::Send),
        };
        Self {
            is_transmitted: has_reached && !runs.iter().any(is_stopped_transmission),
            is_acknowledged: did(Step::Receipt)
                || invoice.is_some_and(|invoice| {
                    invoice.authority.status == AuthorityStatus::Acknowledged
                }),
        }
    }
}

/// True for a transmission that is paused or over without having sent the invoice.
fn is_stopped_transmission(run: &Run) -> bool {
    run.operation() == Operation::Transmit
        && !run.state().is_open()
        && !run.done.contains(&Step::Send)
}
