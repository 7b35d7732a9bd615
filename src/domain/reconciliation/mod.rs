//! Compares our records of an invoice with the authority's records, and chooses the repairs of the differences. A
//! repair never undoes anything and never guesses: a stopped run continues with a query to the authority, and a
//! transmission that the authority reports is recorded as if the authority had sent a notice of it. All other
//! differences are listed for an operator.
//!
//! | Our submission run | The authority signed the invoice | The authority did not sign it |
//! |---|---|---|
//! | no record of the invoice | `missing_locally`, listed | |
//! | none, but a stored invoice | `not_submitted_locally`, listed | agreed; `missing_remotely` if our records say transmitted |
//! | running | in progress | in progress |
//! | waiting | `unfinished_locally`, resumed with a query | in progress |
//! | paused by itself | `unfinished_locally`, resumed with a query | agreed; `missing_remotely` if our run has signed it |
//! | paused by an operator | `held_locally`, listed | agreed; `missing_remotely` if our run has signed it |
//! | refused | `refused_locally`, listed | agreed |
//! | cancelled | `cancelled_locally`, listed | agreed |
//! | succeeded, and the invoice was cancelled | `cancelled_locally`, listed | `missing_remotely`, listed |
//! | succeeded | compared below | `missing_remotely`, listed |
//!
//! | The invoice is signed according to both records | Finding |
//! |---|---|
//! | delivered by the authority's records, not by ours | `delivered_remotely`, recorded |
//! | transmitted by the authority's records, not by ours | `transmitted_remotely`, recorded, or resumed with a query |
//! | transmitted by our records, not by the authority's | `not_transmitted_remotely`, listed |
//! | delivered by our records, not by the authority's | `not_delivered_remotely`, listed |
//! | our payment run stopped, but the authority has its status | `payment_unfinished_locally`, resumed with a query |
//! | the authority's payment is further than ours | `payment_ahead_remotely`, listed |
//! | our payment is further than the authority's, and no run relays it | `payment_behind_remotely`, listed |
//! | one payment is PAID and the other REJECTED, or their status is unknown | `payment_differs`, listed |

pub mod day;

use jiff::Timestamp;

use crate::domain::invoice::Invoice;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::{PaymentStatus, WorkflowStatus, words};
use crate::domain::kernel::ids::RunId;
use crate::domain::pipeline::transit::Transit;
use crate::domain::pipeline::{Operation, Run, RunState, Step};

words! {
    /// The kind of a difference. `Unreadable` is an entry of the authority's list from which no IRN could be read.
    FindingKind {
        MissingLocally = "missing_locally",
        NotSubmittedLocally = "not_submitted_locally",
        UnfinishedLocally = "unfinished_locally",
        HeldLocally = "held_locally",
        RefusedLocally = "refused_locally",
        CancelledLocally = "cancelled_locally",
        MissingRemotely = "missing_remotely",
        TransmittedRemotely = "transmitted_remotely",
        DeliveredRemotely = "delivered_remotely",
        NotTransmittedRemotely = "not_transmitted_remotely",
        NotDeliveredRemotely = "not_delivered_remotely",
        PaymentUnfinishedLocally = "payment_unfinished_locally",
        PaymentAheadRemotely = "payment_ahead_remotely",
        PaymentBehindRemotely = "payment_behind_remotely",
        PaymentDiffers = "payment_differs",
        Unreadable = "unreadable",
    }
}

impl FindingKind {
    /// Returns the advice to an operator about a listed difference.
    pub fn advice(self) -> &'static str {
        match self {
            Self::MissingLocally => "It was signed by another way than this service: ask the taxpayer.",
            Self::NotSubmittedLocally => {
                "The invoice is stored and was signed by another way than this service: ask the taxpayer."
            }
            Self::HeldLocally => "An operator paused the run: resume it, and it finds the signature.",
            Self::RefusedLocally => "The run ended as refused: retry it, and it finds the signature.",
            Self::CancelledLocally => {
                "It counts as cancelled here and is signed there: ask the taxpayer which it is to be."
            }
            Self::MissingRemotely => {
                "The authority said yes to it and does not have it: ask the authority before anything is sent again."
            }
            Self::TransmittedRemotely => "It was transmitted by another way than this service.",
            Self::DeliveredRemotely => "Its receipt was confirmed by another way than this service.",
            Self::NotTransmittedRemotely => {
                "The authority took the transmission and does not show it: ask the authority."
            }
            Self::NotDeliveredRemotely => {
                "The authority took the receipt and does not show it: ask the authority."
            }
            Self::UnfinishedLocally | Self::PaymentUnfinishedLocally => {
                "The run stopped short of what the authority has: resume it."
            }
            Self::PaymentAheadRemotely => {
                "The payment was told to the authority by another way: have the taxpayer record it here."
            }
            Self::PaymentBehindRemotely => {
                "The payment was recorded here only: have the taxpayer relay it, if the authority is to know."
            }
            Self::PaymentDiffers => "The two ledgers say different things of the payment: ask the taxpayer.",
            Self::Unreadable => "The authority lists a line that names no invoice: ask the authority.",
        }
    }
}

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
}

/// An invoice as our records describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalRecord {
    pub irn: Irn,
    pub submission: Option<RunSnapshot>,
    /// True if the sign step of the submission is done.
    pub is_signed: bool,
    pub transmission: Option<RunSnapshot>,
    /// The payment run, and the payment status that it relays.
    pub relay: Option<(RunSnapshot, PaymentStatus)>,
    pub stored_status: Option<WorkflowStatus>,
    pub transit: Transit,
    pub payment: Option<PaymentStatus>,
}

/// The repair of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// The run continues with a query to the authority.
    Query(RunSnapshot),
    /// Records the transmission that the authority reports.
    RecordTransmission { is_delivered: bool },
}

/// One difference between the records. A difference without a repair is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub kind: FindingKind,
    pub repair: Option<Repair>,
}

/// The result of comparing one invoice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    Agreed,
    /// A run is in progress, so there is no result yet.
    InProgress,
    Differs(Vec<Difference>),
}

impl Comparison {
    fn without_repair(kind: FindingKind) -> Self {
        Self::Differs(vec![Difference { kind, repair: None }])
    }

    fn with_query(kind: FindingKind, run: &RunSnapshot) -> Self {
        Self::Differs(vec![Difference { kind, repair: Some(Repair::Query(run.clone())) }])
    }

    pub fn differences(self) -> Vec<Difference> {
        match self {
            Self::Differs(differences) => differences,
            Self::Agreed | Self::InProgress => Vec::new(),
        }
    }
}

/// Compares the two records by the tables of the module documentation.
pub fn compare(local: Option<&LocalRecord>, remote: Option<&RemoteRecord>) -> Comparison {
    match (local, remote) {
        (None, None) => Comparison::Agreed,
        (None, Some(_)) => Comparison::without_repair(FindingKind::MissingLocally),
        (Some(local), None) => local.compare_without_remote(),
        (Some(local), Some(remote)) => local.compare_with(remote),
    }
}

impl LocalRecord {
    /// Collects our records of one IRN; `None` if there are none. `is_held` tells whether an operator paused a run.
    pub fn from_runs(
        invoice: Option<&Invoice>,
        runs: &[Run],
        is_held: impl Fn(&Run) -> bool,
    ) -> Option<Self> {
        let run = |operation| runs.iter().find(|run: &&Run| run.operation() == operation);
        let standing = |run: &Run| RunSnapshot {
            run_id: run.id,
            state: run.state(),
            run_updated_at: run.updated_at,
            is_held: run.state() == RunState::Paused && is_held(run),
        };
        let submission = run(Operation::Submit);
        let relay = run(Operation::Payment);
        let irn = invoice.map(|invoice| &invoice.irn).or_else(|| runs.first().map(|run| &run.irn))?;
        let relayed = |run: &Run| Some(run.payload.payment()?.payment_status.to_payment_status());
        let relay = relay.and_then(|run| Some((standing(run), relayed(run)?)));
        let relayed = relay.as_ref().filter(|(run, _)| run.state == RunState::Succeeded);
        let payment = match (invoice, relayed) {
            (Some(invoice), _) => Some(invoice.payment.status),
            (None, Some((_, status))) => Some(*status),
            (None, None) => submission.map(declared_status),
        };
        Some(Self {
            irn: irn.clone(),
            submission: submission.map(standing),
            is_signed: submission.is_some_and(|run| run.done.contains(&Step::Sign)),
            transmission: run(Operation::Transmit).map(standing),
            relay,
            stored_status: invoice.map(|invoice| invoice.status),
            transit: Transit::from_runs(invoice, runs),
            payment,
        })
    }

    /// True if our records say that the authority has signed the invoice.
    pub fn claims_signature(&self) -> bool {
        match &self.submission {
            Some(run) => run.state == RunState::Succeeded || self.is_signed,
            None => {
                self.transit.is_transmitted
                    || self.relay.as_ref().is_some_and(|(run, _)| run.state == RunState::Succeeded)
            }
        }
    }

    /// True if the authority may have signed the invoice: our records say so, or the submission is paused.
    pub fn may_be_signed(&self) -> bool {
        self.claims_signature() || self.submission.as_ref().is_some_and(|run| run.state == RunState::Paused)
    }

    fn compare_without_remote(&self) -> Comparison {
        if self.submission.as_ref().is_some_and(|run| run.state.is_open()) {
            Comparison::InProgress
        } else if self.claims_signature() {
            Comparison::without_repair(FindingKind::MissingRemotely)
        } else {
            Comparison::Agreed
        }
    }

    fn compare_with(&self, remote: &RemoteRecord) -> Comparison {
        let is_cancelled = self.stored_status == Some(WorkflowStatus::Cancelled);
        match &self.submission {
            None if self.stored_status.is_some() => {
                Comparison::without_repair(FindingKind::NotSubmittedLocally)
            }
            Some(run) => match run.state {
                RunState::Running => Comparison::InProgress,
                RunState::Paused if run.is_held => Comparison::without_repair(FindingKind::HeldLocally),
                RunState::Waiting | RunState::Paused => {
                    Comparison::with_query(FindingKind::UnfinishedLocally, run)
                }
                RunState::Refused => Comparison::without_repair(FindingKind::RefusedLocally),
                RunState::Cancelled => Comparison::without_repair(FindingKind::CancelledLocally),
                RunState::Succeeded if is_cancelled => {
                    Comparison::without_repair(FindingKind::CancelledLocally)
                }
                RunState::Succeeded => self.compare_signed(remote),
            },
            None => self.compare_signed(remote),
        }
    }

    fn compare_signed(&self, remote: &RemoteRecord) -> Comparison {
        let found: Vec<_> = [self.transit_difference(remote), self.payment_difference(remote)]
            .into_iter()
            .flatten()
            .collect();
        if found.is_empty() { Comparison::Agreed } else { Comparison::Differs(found) }
    }

    fn transit_difference(&self, remote: &RemoteRecord) -> Option<Difference> {
        let is_transmitted = remote.is_transmitted || remote.is_delivered;
        let (kind, repair) = match (self.transit, remote.is_delivered) {
            (Transit { is_acknowledged: false, .. }, true) => {
                (FindingKind::DeliveredRemotely, self.transmission_repair(true))
            }
            (Transit { is_acknowledged: true, .. }, false) => (FindingKind::NotDeliveredRemotely, None),
            (Transit { is_transmitted: false, .. }, _) if is_transmitted => {
                let run = self.transmission.as_ref();
                if run.is_some_and(|run| run.state == RunState::Running) {
                    return None;
                }
                let waiting = run.filter(|run| run.state == RunState::Waiting);
                let repair = self.transmission_repair(false).or_else(|| waiting.cloned().map(Repair::Query));
                (FindingKind::TransmittedRemotely, repair)
            }
            (Transit { is_transmitted: true, .. }, _) if !is_transmitted => {
                (FindingKind::NotTransmittedRemotely, None)
            }
            _ => return None,
        };
        Some(Difference { kind, repair })
    }

    /// Returns the repair that records a transmission reported by the authority. Returns `None` without an invoice or
    /// run to record it in, because every reconciliation would repeat the repair.
    fn transmission_repair(&self, is_delivered: bool) -> Option<Repair> {
        let has_stopped = self.transmission.as_ref().is_some_and(|run| !run.state.is_open());
        let has_sender = self.submission.is_some() || self.transmission.is_some();
        let holds = self.stored_status.is_some() || if is_delivered { has_sender } else { has_stopped };
        holds.then_some(Repair::RecordTransmission { is_delivered })
    }

    fn payment_difference(&self, remote: &RemoteRecord) -> Option<Difference> {
        let listed = |kind| Some(Difference { kind, repair: None });
        let Some(there) = PaymentStatus::parse(&remote.payment_status) else {
            return listed(FindingKind::PaymentDiffers);
        };
        match &self.relay {
            Some((run, wanted)) if matches!(run.state, RunState::Waiting | RunState::Paused) => {
                let repair = Some(Repair::Query(run.clone())).filter(|_| !run.is_held);
                let is_there = *wanted == there;
                return is_there
                    .then_some(Difference { kind: FindingKind::PaymentUnfinishedLocally, repair });
            }
            Some((run, _)) if run.state == RunState::Running => return None,
            _ => {}
        }
        let here = self.payment?;
        match (payment_rank(here), payment_rank(there)) {
            _ if here == there => None,
            (here, there) if there > here => listed(FindingKind::PaymentAheadRemotely),
            (here, there) if there < here => listed(FindingKind::PaymentBehindRemotely),
            _ => listed(FindingKind::PaymentDiffers),
        }
    }
}

/// Returns the payment status that a submission declares; pending if it declares none.
fn declared_status(run: &Run) -> PaymentStatus {
    let status = run.payload.submission().and_then(|document| document.payment_status);
    status.unwrap_or(PaymentStatus::Pending)
}

/// Returns the rank of a payment status. `Paid` and `Rejected` have the same, because neither comes before the other.
fn payment_rank(status: PaymentStatus) -> u8 {
    match status {
        PaymentStatus::Pending => 0,
        PaymentStatus::Partial => 1,
        PaymentStatus::Paid | PaymentStatus::Rejected => 2,
    }
}

/// Describes our record in the text of a finding.
impl LocalRecord {
    pub fn description(&self) -> String {
        let state = |name: &str, run: &RunSnapshot| {
            format!("{name} {}{}", run.state, if run.is_held { " (held)" } else { "" })
        };
        let parts = [
            self.stored_status.map(|status| format!("invoice {status}")),
            self.submission.as_ref().map(|run| state("submit", run)),
            self.transmission.as_ref().map(|run| state("transmit", run)),
            self.transit.is_transmitted.then(|| "transmitted".to_owned()),
            self.transit.is_acknowledged.then(|| "delivered".to_owned()),
            self.relay.as_ref().map(|(run, status)| state(&format!("payment to {status}"), run)),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn irn() -> Irn {
        Irn::parse("INV001-94AD90FB-20261121").unwrap()
    }

    fn run(state: RunState, is_held: bool) -> RunSnapshot {
        RunSnapshot { run_id: RunId::nil(), state, run_updated_at: Timestamp::UNIX_EPOCH, is_held }
    }

    fn remote() -> RemoteRecord {
        let payment_status = "PENDING".to_owned();
        RemoteRecord { irn: irn(), payment_status, is_transmitted: false, is_delivered: false }
    }

    /// A stored invoice whose submission succeeded.
    fn local() -> LocalRecord {
        LocalRecord {
            irn: irn(),
            submission: Some(run(RunState::Succeeded, false)),
            is_signed: true,
            transmission: None,
            relay: None,
            stored_status: Some(WorkflowStatus::Submitted),
            transit: Transit::default(),
            payment: Some(PaymentStatus::Pending),
        }
    }

    fn comparison_text(local: Option<&LocalRecord>, remote: Option<&RemoteRecord>) -> String {
        match compare(local, remote) {
            Comparison::Agreed => "agreed".to_owned(),
            Comparison::InProgress => "in progress".to_owned(),
            Comparison::Differs(found) => {
                let words = |repair: &Option<Repair>| match repair {
                    None => "listed",
                    Some(Repair::Query(_)) => "asks",
                    Some(Repair::RecordTransmission { is_delivered: true }) => "records delivered",
                    Some(Repair::RecordTransmission { is_delivered: false }) => "records transmitted",
                };
                let said = |one: &Difference| format!("{} {}", one.kind, words(&one.repair));
                found.iter().map(said).collect::<Vec<_>>().join(" + ")
            }
        }
    }

    #[test]
    fn every_state_of_a_submission_beside_a_signature_and_beside_none() {
        let mut table = Vec::new();
        let mut row = |name: &str, local: Option<&LocalRecord>| {
            table.push(format!(
                "{name}: {} | {}",
                comparison_text(local, Some(&remote())),
                comparison_text(local, None)
            ));
        };
        row("nothing", None);
        row(
            "an invoice",
            Some(&LocalRecord {
                submission: None,
                is_signed: false,
                stored_status: Some(WorkflowStatus::Draft),
                ..local()
            }),
        );
        for state in RunState::ALL {
            let is_signed = *state == RunState::Succeeded;
            row(
                state.as_str(),
                Some(&LocalRecord { submission: Some(run(*state, false)), is_signed, ..local() }),
            );
        }
        let paused =
            LocalRecord { submission: Some(run(RunState::Paused, true)), is_signed: false, ..local() };
        row("held", Some(&paused));
        row(
            "paused after a yes",
            Some(&LocalRecord { submission: Some(run(RunState::Paused, false)), ..local() }),
        );
        row(
            "waiting after a yes",
            Some(&LocalRecord { submission: Some(run(RunState::Waiting, false)), ..local() }),
        );
        row(
            "cancelled invoice",
            Some(&LocalRecord { stored_status: Some(WorkflowStatus::Cancelled), ..local() }),
        );
        row("not stored", Some(&LocalRecord { stored_status: None, ..local() }));
        let relay = Some((run(RunState::Succeeded, false), PaymentStatus::Pending));
        row(
            "relayed only",
            Some(&LocalRecord { submission: None, is_signed: false, stored_status: None, relay, ..local() }),
        );
        insta::assert_snapshot!(table.join("\n"), @r#"
            nothing: missing_locally listed | agreed
            an invoice: not_submitted_locally listed | agreed
            running: in progress | in progress
            waiting: unfinished_locally asks | in progress
            paused: unfinished_locally asks | agreed
            succeeded: agreed | missing_remotely listed
            refused: refused_locally listed | agreed
            cancelled: cancelled_locally listed | agreed
            held: held_locally listed | agreed
            paused after a yes: unfinished_locally asks | missing_remotely listed
            waiting after a yes: unfinished_locally asks | in progress
            cancelled invoice: cancelled_locally listed | missing_remotely listed
            not stored: agreed | missing_remotely listed
            relayed only: agreed | missing_remotely listed
        "#);
    }

    #[test]
    fn every_place_of_a_transmission_beside_every_other() {
        let mut table = Vec::new();
        let places = [(false, false), (true, false), (true, true)];
        let word = |(is_transmitted, is_acknowledged): (bool, bool)| match (is_transmitted, is_acknowledged) {
            (_, true) => "delivered",
            (true, _) => "transmitted",
            _ => "signed",
        };
        for here in places {
            for there in places {
                let transit = Transit { is_transmitted: here.0, is_acknowledged: here.1 };
                let remote = RemoteRecord { is_transmitted: there.0, is_delivered: there.1, ..remote() };
                let said = comparison_text(Some(&LocalRecord { transit, ..local() }), Some(&remote));
                table.push(format!("{} | {}: {said}", word(here), word(there)));
            }
        }
        insta::assert_snapshot!(table.join("\n"), @r#"
            signed | signed: agreed
            signed | transmitted: transmitted_remotely records transmitted
            signed | delivered: delivered_remotely records delivered
            transmitted | signed: not_transmitted_remotely listed
            transmitted | transmitted: agreed
            transmitted | delivered: delivered_remotely records delivered
            delivered | signed: not_delivered_remotely listed
            delivered | transmitted: not_delivered_remotely listed
            delivered | delivered: agreed
        "#);
    }

    #[test]
    fn a_transmission_is_recorded_only_where_something_holds_it() {
        let sent = RemoteRecord { is_transmitted: true, ..remote() };
        let arrived = RemoteRecord { is_transmitted: true, is_delivered: true, ..remote() };
        let mut table = Vec::new();
        for state in [None, Some(RunState::Running), Some(RunState::Waiting), Some(RunState::Paused)] {
            let transmission = state.map(|state| run(state, false));
            let name = state.map_or("none", RunState::as_str);
            for stored_status in [Some(WorkflowStatus::Submitted), None] {
                let local = LocalRecord { transmission: transmission.clone(), stored_status, ..local() };
                let kept = if stored_status.is_some() { "stored" } else { "not stored" };
                table.push(format!(
                    "{name}, {kept}: {} | {}",
                    comparison_text(Some(&local), Some(&sent)),
                    comparison_text(Some(&local), Some(&arrived))
                ));
            }
        }
        insta::assert_snapshot!(table.join("\n"), @r#"
            none, stored: transmitted_remotely records transmitted | delivered_remotely records delivered
            none, not stored: transmitted_remotely listed | delivered_remotely records delivered
            running, stored: agreed | delivered_remotely records delivered
            running, not stored: agreed | delivered_remotely records delivered
            waiting, stored: transmitted_remotely records transmitted | delivered_remotely records delivered
            waiting, not stored: transmitted_remotely asks | delivered_remotely records delivered
            paused, stored: transmitted_remotely records transmitted | delivered_remotely records delivered
            paused, not stored: transmitted_remotely records transmitted | delivered_remotely records delivered
        "#);
    }

    #[test]
    fn every_payment_beside_every_other() {
        let mut table = Vec::new();
        for here in PaymentStatus::ALL {
            for there in ["PENDING", "PARTIAL", "PAID", "REJECTED", "REFUNDED"] {
                let local = LocalRecord { payment: Some(*here), ..local() };
                let remote = RemoteRecord { payment_status: there.to_owned(), ..remote() };
                table.push(format!("{here} | {there}: {}", comparison_text(Some(&local), Some(&remote))));
            }
        }
        insta::assert_snapshot!(table.join("\n"), @r#"
            PENDING | PENDING: agreed
            PENDING | PARTIAL: payment_ahead_remotely listed
            PENDING | PAID: payment_ahead_remotely listed
            PENDING | REJECTED: payment_ahead_remotely listed
            PENDING | REFUNDED: payment_differs listed
            PAID | PENDING: payment_behind_remotely listed
            PAID | PARTIAL: payment_behind_remotely listed
            PAID | PAID: agreed
            PAID | REJECTED: payment_differs listed
            PAID | REFUNDED: payment_differs listed
            REJECTED | PENDING: payment_behind_remotely listed
            REJECTED | PARTIAL: payment_behind_remotely listed
            REJECTED | PAID: payment_differs listed
            REJECTED | REJECTED: agreed
            REJECTED | REFUNDED: payment_differs listed
            PARTIAL | PENDING: payment_behind_remotely listed
            PARTIAL | PARTIAL: agreed
            PARTIAL | PAID: payment_ahead_remotely listed
            PARTIAL | REJECTED: payment_ahead_remotely listed
            PARTIAL | REFUNDED: payment_differs listed
        "#);
    }

    #[test]
    fn a_payment_that_a_run_still_relays_is_no_difference_until_it_is_there() {
        let mut table = Vec::new();
        for (state, is_held) in [
            (RunState::Running, false),
            (RunState::Waiting, false),
            (RunState::Paused, false),
            (RunState::Paused, true),
            (RunState::Refused, false),
        ] {
            for there in ["PENDING", "PAID"] {
                let local =
                    LocalRecord { relay: Some((run(state, is_held), PaymentStatus::Paid)), ..local() };
                let remote = RemoteRecord { payment_status: there.to_owned(), ..remote() };
                table.push(format!(
                    "{state} {is_held} | {there}: {}",
                    comparison_text(Some(&local), Some(&remote))
                ));
            }
        }
        insta::assert_snapshot!(table.join("\n"), @r#"
            running false | PENDING: agreed
            running false | PAID: agreed
            waiting false | PENDING: agreed
            waiting false | PAID: payment_unfinished_locally asks
            paused false | PENDING: agreed
            paused false | PAID: payment_unfinished_locally asks
            paused true | PENDING: agreed
            paused true | PAID: payment_unfinished_locally listed
            refused false | PENDING: agreed
            refused false | PAID: payment_ahead_remotely listed
        "#);
    }

    #[test]
    fn all_differences_are_reported_at_once() {
        let remote = RemoteRecord { is_transmitted: true, payment_status: "PAID".to_owned(), ..remote() };
        let said = comparison_text(Some(&local()), Some(&remote));
        assert_eq!(said, "transmitted_remotely records transmitted + payment_ahead_remotely listed");
    }
}
