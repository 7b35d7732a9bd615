//! The two records of an invoice that a reconciliation compares: ours, collected from the invoice
//! and its runs, and the authority's.

use jiff::Timestamp;

use crate::domain::invoice::Invoice;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::{PaymentStatus, WorkflowStatus};
use crate::domain::kernel::ids::RunId;
use crate::domain::pipeline::transit::TransmissionState;
use crate::domain::pipeline::{Operation, Run, RunState, Step, signed_copy};

/// An invoice as the authority lists it. The authority lists only signed invoices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRecord {
    /// The IRN in the authority's spelling.
    pub irn: Irn,
    pub payment_status: String,
    pub is_transmitted: bool,
    pub is_delivered: bool,
}

/// The state that a run had when it was compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSnapshot {
    pub run_id: RunId,
    pub state: RunState,
    /// The time of the run's last change before the comparison. A run that has changed since then is not repaired.
    pub run_updated_at: Timestamp,
    /// True if an operator paused the run and nobody has resumed it.
    pub is_held: bool,
    /// True if the run is paused in quarantine. It continues only when an operator acts or when the quarantine ends.
    pub is_quarantined: bool,
    /// True if the run is paused because the authority's signed copy cannot be read. A query would find the same.
    pub has_unreadable_copy: bool,
}

/// An invoice as our records describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalRecord {
    pub irn: Irn,
    pub submission: Option<RunSnapshot>,
    /// True if the sign step of the submission is done.
    pub is_signed: bool,
    pub transmission: Option<RunSnapshot>,
    /// The payment run, and the payment status that it sends to the authority.
    pub relay: Option<(RunSnapshot, PaymentStatus)>,
    pub stored_status: Option<WorkflowStatus>,
    pub transit: TransmissionState,
    pub payment: Option<PaymentStatus>,
    /// The payment status that we last sent to the authority. If the invoice has a payment run, this is the status that
    /// the run sent, once it has succeeded, and `None` until then. Without a payment run it is the status that the
    /// submission declared.
    pub sent_payment: Option<PaymentStatus>,
}

impl RunSnapshot {
    /// Returns the state of the run after `name`, which names the kind of run.
    fn describe(&self, name: &str) -> String {
        let why = match (self.is_held, self.is_quarantined) {
            (true, _) => " (held)",
            (false, true) => " (quarantined)",
            (false, false) => "",
        };
        format!("{name} {}{why}", self.state)
    }
}

impl LocalRecord {
    /// Collects our records of one IRN; `None` if there are none. `is_held` tells whether an operator paused a run.
    pub fn from_runs(
        invoice: Option<&Invoice>,
        runs: &[Run],
        is_held: impl Fn(&Run) -> bool,
    ) -> Option<Self> {
        let snapshot = |run: &Run| RunSnapshot {
            run_id: run.id,
            state: run.state(),
            run_updated_at: run.updated_at,
            is_held: run.state() == RunState::Paused && is_held(run),
            is_quarantined: run.state() == RunState::Paused && run.is_quarantined(),
            has_unreadable_copy: run.state() == RunState::Paused
                && signed_copy::has_unreadable_copy(run),
        };
        let submission = Run::find_in(runs, Operation::Submit);
        let relay = Run::find_in(runs, Operation::Payment);
        let irn = invoice
            .map(|invoice| &invoice.irn)
            .or_else(|| runs.first().map(|run| &run.irn))?;
        let relay = relay.and_then(|run| {
            let payment = run.payload.payment()?;
            Some((snapshot(run), payment.payment_status.to_payment_status()))
        });
        let relayed = relay
            .as_ref()
            .filter(|(run, _)| run.state == RunState::Succeeded);
        let declared = submission.map(declared_status);
        let payment = match (invoice, relayed) {
            (Some(invoice), _) => Some(invoice.payment.status),
            (None, Some((_, status))) => Some(*status),
            (None, None) => declared,
        };
        let sent_payment = match &relay {
            Some(_) => relayed.map(|(_, status)| *status),
            None => declared,
        };
        Some(Self {
            irn: irn.clone(),
            submission: submission.map(snapshot),
            is_signed: submission.is_some_and(|run| run.done.contains(&Step::Sign)),
            transmission: Run::find_in(runs, Operation::Transmit).map(snapshot),
            relay,
            stored_status: invoice.map(|invoice| invoice.status),
            transit: TransmissionState::from_runs(invoice, runs),
            payment,
            sent_payment,
        })
    }

    /// True if our records say that the authority has signed the invoice.
    pub fn claims_signature(&self) -> bool {
        match &self.submission {
            Some(run) => run.state == RunState::Succeeded || self.is_signed,
            None => {
                self.claims_transmission()
                    || self
                        .relay
                        .as_ref()
                        .is_some_and(|(run, _)| run.state == RunState::Succeeded)
            }
        }
    }

    /// True if our records say that the invoice was transmitted. The status `reported` alone does not say so: it follows
    /// `transmitted`, but an invoice may be reported without having been transmitted.
    pub fn claims_transmission(&self) -> bool {
        let was_sent = self
            .transmission
            .as_ref()
            .is_some_and(|run| run.state == RunState::Succeeded);
        let may_lack_transmission = self.stored_status == Some(WorkflowStatus::Reported);
        self.transit.is_transmitted && (was_sent || !may_lack_transmission)
    }

    /// True if the authority may have signed the invoice: our records say so, or the submission is paused.
    pub fn may_be_signed(&self) -> bool {
        self.claims_signature()
            || self
                .submission
                .as_ref()
                .is_some_and(|run| run.state == RunState::Paused)
    }

    /// Describes our record in the text of a finding.
    pub fn description(&self) -> String {
        let parts = [
            self.stored_status.map(|status| format!("invoice {status}")),
            self.submission.as_ref().map(|run| run.describe("submit")),
            self.transmission
                .as_ref()
                .map(|run| run.describe("transmit")),
            self.claims_transmission().then(|| "transmitted".to_owned()),
            self.transit.is_acknowledged.then(|| "delivered".to_owned()),
            self.relay
                .as_ref()
                .map(|(run, status)| run.describe(&format!("payment to {status}"))),
            self.payment.map(|status| format!("payment {status}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl RemoteRecord {
    pub fn description(&self) -> String {
        let transit = match (self.is_transmitted, self.is_delivered) {
            (_, true) => "delivered",
            (true, false) => "transmitted",
            (false, false) => "not transmitted",
        };
        format!("signed, {transit}, payment {}", self.payment_status)
    }
}

/// Returns the payment status that a submission declares; pending if it declares none.
fn declared_status(run: &Run) -> PaymentStatus {
    let status = run
        .payload
        .submission()
        .and_then(|document| document.payment_status);
    status.unwrap_or(PaymentStatus::Pending)
}
