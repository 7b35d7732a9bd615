//! Compares our record of an invoice with the authority's by the tables in `mod.rs`, and chooses the
//! repair of each difference.

use crate::domain::kernel::codes::{PaymentStatus, WorkflowStatus};
use crate::domain::pipeline::RunState;
use crate::domain::pipeline::transit::TransmissionState;
use crate::domain::reconciliation::finding_kind::FindingKind;
use crate::domain::reconciliation::records::{LocalRecord, RemoteRecord, RunSnapshot};

/// The repair of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// Continues the run with a query to the authority.
    Query(RunSnapshot),
    /// Records the transmission, and the delivery if `is_delivered`, that the authority reports.
    RecordTransmission { is_delivered: bool },
}

/// One difference between the records. A difference without a repair is listed for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub kind: FindingKind,
    pub repair: Option<Repair>,
}

/// The result of comparing one invoice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComparisonResult {
    Agreed,
    /// A run is in progress, so there is no result yet.
    InProgress,
    Differs(Vec<Difference>),
}

impl ComparisonResult {
    fn without_repair(kind: FindingKind) -> Self {
        Self::Differs(vec![Difference { kind, repair: None }])
    }

    fn with_query(kind: FindingKind, run: &RunSnapshot) -> Self {
        Self::Differs(vec![Difference {
            kind,
            repair: Some(Repair::Query(run.clone())),
        }])
    }

    pub fn differences(self) -> Vec<Difference> {
        match self {
            Self::Differs(differences) => differences,
            Self::Agreed | Self::InProgress => Vec::new(),
        }
    }
}

/// Compares the two records by the tables in `mod.rs`.
pub fn compare(local: Option<&LocalRecord>, remote: Option<&RemoteRecord>) -> ComparisonResult {
    match (local, remote) {
        (None, None) => ComparisonResult::Agreed,
        (None, Some(_)) => ComparisonResult::without_repair(FindingKind::MissingLocally),
        (Some(local), None) => local.compare_without_remote(),
        (Some(local), Some(remote)) => local.compare_with(remote),
    }
}

impl LocalRecord {
    fn compare_without_remote(&self) -> ComparisonResult {
        if self
            .submission
            .as_ref()
            .is_some_and(|run| run.state.is_open())
        {
            ComparisonResult::InProgress
        } else if self.claims_signature() {
            ComparisonResult::without_repair(FindingKind::MissingRemotely)
        } else {
            ComparisonResult::Agreed
        }
    }

    fn compare_with(&self, remote: &RemoteRecord) -> ComparisonResult {
        let is_cancelled = self.stored_status == Some(WorkflowStatus::Cancelled);
        match &self.submission {
            None if self.stored_status.is_some() => {
                ComparisonResult::without_repair(FindingKind::NotSubmittedLocally)
            }
            Some(run) => match run.state {
                RunState::Running => ComparisonResult::InProgress,
                RunState::Paused if run.is_held => {
                    ComparisonResult::without_repair(FindingKind::HeldLocally)
                }
                RunState::Paused if run.is_quarantined || run.has_unreadable_copy => {
                    ComparisonResult::without_repair(FindingKind::UnfinishedLocally)
                }
                RunState::Waiting | RunState::Paused => {
                    ComparisonResult::with_query(FindingKind::UnfinishedLocally, run)
                }
                RunState::Refused => ComparisonResult::without_repair(FindingKind::RefusedLocally),
                RunState::Cancelled => {
                    ComparisonResult::without_repair(FindingKind::CancelledLocally)
                }
                RunState::Succeeded if is_cancelled => {
                    ComparisonResult::without_repair(FindingKind::CancelledLocally)
                }
                RunState::Succeeded => self.compare_signed(remote),
            },
            None => self.compare_signed(remote),
        }
    }

    fn compare_signed(&self, remote: &RemoteRecord) -> ComparisonResult {
        let found: Vec<_> = [
            self.transmission_difference(remote),
            self.payment_difference(remote),
        ]
        .into_iter()
        .flatten()
        .collect();
        if found.is_empty() {
            ComparisonResult::Agreed
        } else {
            ComparisonResult::Differs(found)
        }
    }

    fn transmission_difference(&self, remote: &RemoteRecord) -> Option<Difference> {
        let is_transmitted = remote.is_transmitted || remote.is_delivered;
        let (kind, repair) = match (self.transit, remote.is_delivered) {
            (
                TransmissionState {
                    is_acknowledged: false,
                    ..
                },
                true,
            ) => (
                FindingKind::DeliveredRemotely,
                self.transmission_repair(true),
            ),
            (
                TransmissionState {
                    is_acknowledged: true,
                    ..
                },
                false,
            ) => (FindingKind::NotDeliveredRemotely, None),
            (
                TransmissionState {
                    is_transmitted: false,
                    ..
                },
                _,
            ) if is_transmitted => {
                let run = self.transmission.as_ref();
                if run.is_some_and(|run| run.state == RunState::Running) {
                    return None;
                }
                let waiting = run.filter(|run| run.state == RunState::Waiting);
                let repair = self
                    .transmission_repair(false)
                    .or_else(|| waiting.cloned().map(Repair::Query));
                (FindingKind::TransmittedRemotely, repair)
            }
            (
                TransmissionState {
                    is_transmitted: true,
                    ..
                },
                _,
            ) if !is_transmitted && self.claims_transmission() => {
                (FindingKind::NotTransmittedRemotely, None)
            }
            _ => return None,
        };
        Some(Difference { kind, repair })
    }

    /// Returns the repair that records a transmission reported by the authority. Returns `None` if there is neither an
    /// invoice nor a run in which it could be recorded, because every reconciliation would then repeat the repair.
    fn transmission_repair(&self, is_delivered: bool) -> Option<Repair> {
        let has_stopped = self
            .transmission
            .as_ref()
            .is_some_and(|run| !run.state.is_open());
        let has_sender = self.submission.is_some() || self.transmission.is_some();
        let holds = self.stored_status.is_some()
            || if is_delivered {
                has_sender
            } else {
                has_stopped
            };
        holds.then_some(Repair::RecordTransmission { is_delivered })
    }

    fn payment_difference(&self, remote: &RemoteRecord) -> Option<Difference> {
        let listed = |kind| Some(Difference { kind, repair: None });
        let Some(there) = PaymentStatus::parse(&remote.payment_status) else {
            return listed(FindingKind::PaymentDiffers);
        };
        match &self.relay {
            Some((run, wanted)) if matches!(run.state, RunState::Waiting | RunState::Paused) => {
                let may_go_on = !run.is_held && !run.is_quarantined;
                let repair = may_go_on.then(|| Repair::Query(run.clone()));
                let is_there = *wanted == there;
                return is_there.then_some(Difference {
                    kind: FindingKind::PaymentUnfinishedLocally,
                    repair,
                });
            }
            Some((run, _)) if run.state == RunState::Running => return None,
            _ => {}
        }
        let here = self.payment?;
        match (payment_rank(here), payment_rank(there)) {
            _ if here == there => None,
            // The authority has the status that we last sent. A later payment that the taxpayer or a correction
            // recorded here was not sent, which is the taxpayer's choice.
            (here, there_rank) if there_rank < here && self.sent_payment == Some(there) => None,
            (here, there) if there > here => listed(FindingKind::PaymentAheadRemotely),
            (here, there) if there < here => listed(FindingKind::PaymentBehindRemotely),
            _ => listed(FindingKind::PaymentDiffers),
        }
    }
}

/// Returns the rank of a payment status. `Paid` and `Rejected` have the same rank, because neither follows the other.
fn payment_rank(status: PaymentStatus) -> u8 {
    match status {
        PaymentStatus::Pending => 0,
        PaymentStatus::Partial => 1,
        PaymentStatus::Paid | PaymentStatus::Rejected => 2,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::kernel::ids::{RunId, TaxpayerId};
    use crate::domain::pipeline::signed_copy::UNREADABLE_COPY_MESSAGE;
    use crate::domain::pipeline::{Operation, Run, RunPhase, RunRequest};

    fn irn() -> Irn {
        Irn::parse("INV001-94AD90FB-20261121").unwrap()
    }

    fn run(state: RunState, is_held: bool) -> RunSnapshot {
        RunSnapshot {
            run_id: RunId::nil(),
            state,
            run_updated_at: Timestamp::UNIX_EPOCH,
            is_held,
            is_quarantined: false,
            has_unreadable_copy: false,
        }
    }

    fn remote() -> RemoteRecord {
        let payment_status = "PENDING".to_owned();
        RemoteRecord {
            irn: irn(),
            payment_status,
            is_transmitted: false,
            is_delivered: false,
        }
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
            transit: TransmissionState::default(),
            payment: Some(PaymentStatus::Pending),
            sent_payment: Some(PaymentStatus::Pending),
        }
    }

    fn comparison_text(local: Option<&LocalRecord>, remote: Option<&RemoteRecord>) -> String {
        match compare(local, remote) {
            ComparisonResult::Agreed => "agreed".to_owned(),
            ComparisonResult::InProgress => "in progress".to_owned(),
            ComparisonResult::Differs(found) => {
                let words = |repair: &Option<Repair>| match repair {
                    None => "listed",
                    Some(Repair::Query(_)) => "asks",
                    Some(Repair::RecordTransmission { is_delivered: true }) => "records delivered",
                    Some(Repair::RecordTransmission {
                        is_delivered: false,
                    }) => "records transmitted",
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
                Some(&LocalRecord {
                    submission: Some(run(*state, false)),
                    is_signed,
                    ..local()
                }),
            );
        }
        let paused = LocalRecord {
            submission: Some(run(RunState::Paused, true)),
            is_signed: false,
            ..local()
        };
        row("held", Some(&paused));
        row(
            "paused after a yes",
            Some(&LocalRecord {
                submission: Some(run(RunState::Paused, false)),
                ..local()
            }),
        );
        row(
            "waiting after a yes",
            Some(&LocalRecord {
                submission: Some(run(RunState::Waiting, false)),
                ..local()
            }),
        );
        row(
            "cancelled invoice",
            Some(&LocalRecord {
                stored_status: Some(WorkflowStatus::Cancelled),
                ..local()
            }),
        );
        row(
            "not stored",
            Some(&LocalRecord {
                stored_status: None,
                ..local()
            }),
        );
        let relay = Some((run(RunState::Succeeded, false), PaymentStatus::Pending));
        row(
            "relayed only",
            Some(&LocalRecord {
                submission: None,
                is_signed: false,
                stored_status: None,
                relay,
                ..local()
            }),
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

    /// A query does not make a run in quarantine go on, so an operator must see the difference.
    #[test]
    fn a_run_in_quarantine_is_listed_and_not_called_mended() {
        for (operation, panics, expected) in [
            (Operation::Submit, 0, "unfinished_locally asks"),
            (Operation::Submit, 1, "unfinished_locally asks"),
            (Operation::Submit, 2, "unfinished_locally listed"),
            (Operation::Payment, 1, "payment_unfinished_locally asks"),
            (Operation::Payment, 2, "payment_unfinished_locally listed"),
        ] {
            let request = RunRequest::sample(irn().as_str(), operation);
            let fresh = Run::new(RunId::nil(), TaxpayerId(7), request, Timestamp::UNIX_EPOCH);
            let panicked = (0..panics).fold(fresh, |run, _| run.after_panic());
            let paused = panicked.pause(Timestamp::UNIX_EPOCH);
            let local = LocalRecord::from_runs(None, &[paused], |_| false).unwrap();
            let paid = RemoteRecord {
                payment_status: "PAID".to_owned(),
                ..remote()
            };
            let found = comparison_text(Some(&local), Some(&paid));
            assert_eq!(found, expected, "{operation} after {panics} panics");
        }
    }

    /// Otherwise each comparison would reopen the run, and its taxpayer would be told of each failure.
    #[test]
    fn a_run_whose_signed_copy_cannot_be_read_is_listed() {
        let unreadable = format!("{UNREADABLE_COPY_MESSAGE} (odd), so it is not known");
        for (state, error, expected) in [
            (RunState::Paused, None, "unfinished_locally asks"),
            (RunState::Paused, Some("down"), "unfinished_locally asks"),
            (
                RunState::Paused,
                Some(&*unreadable),
                "unfinished_locally listed",
            ),
            (
                RunState::Waiting,
                Some(&*unreadable),
                "unfinished_locally asks",
            ),
        ] {
            let request = RunRequest::sample(irn().as_str(), Operation::Submit);
            let run = Run {
                phase: RunPhase::sample(state),
                last_error: error.map(str::to_owned),
                ..Run::new(RunId::nil(), TaxpayerId(7), request, Timestamp::UNIX_EPOCH)
            };
            let local = LocalRecord::from_runs(None, &[run], |_| false).unwrap();
            let found = comparison_text(Some(&local), Some(&remote()));
            assert_eq!(found, expected, "{state} {error:?}");
        }
    }

    #[test]
    fn every_place_of_a_transmission_beside_every_other() {
        let mut table = Vec::new();
        let places = [(false, false), (true, false), (true, true)];
        let word = |(is_transmitted, is_acknowledged): (bool, bool)| match (
            is_transmitted,
            is_acknowledged,
        ) {
            (_, true) => "delivered",
            (true, _) => "transmitted",
            _ => "signed",
        };
        for here in places {
            for there in places {
                let transit = TransmissionState {
                    is_transmitted: here.0,
                    is_acknowledged: here.1,
                };
                let remote = RemoteRecord {
                    is_transmitted: there.0,
                    is_delivered: there.1,
                    ..remote()
                };
                let said =
                    comparison_text(Some(&LocalRecord { transit, ..local() }), Some(&remote));
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
    fn a_reported_invoice_need_not_have_been_transmitted() {
        let sent = Some(run(RunState::Succeeded, false));
        let paused = Some(run(RunState::Paused, false));
        let missing = "not_transmitted_remotely listed";
        let cases = [
            (WorkflowStatus::Reported, None, "agreed"),
            (WorkflowStatus::Reported, paused, "agreed"),
            (WorkflowStatus::Reported, sent.clone(), missing),
            (WorkflowStatus::Transmitted, None, missing),
            (WorkflowStatus::Transmitted, sent, missing),
        ];
        for (status, transmission, expected) in cases {
            let local = LocalRecord {
                stored_status: Some(status),
                transmission,
                transit: TransmissionState {
                    is_transmitted: true,
                    is_acknowledged: false,
                },
                ..local()
            };
            let text = comparison_text(Some(&local), Some(&remote()));
            let is_told = local
                .description()
                .split(", ")
                .any(|part| part == "transmitted");
            assert_eq!(text, expected, "{status}: {}", local.description());
            assert_eq!(is_told, expected == missing);
        }
    }

    #[test]
    fn a_transmission_is_recorded_only_where_something_holds_it() {
        let sent = RemoteRecord {
            is_transmitted: true,
            ..remote()
        };
        let arrived = RemoteRecord {
            is_transmitted: true,
            is_delivered: true,
            ..remote()
        };
        let mut table = Vec::new();
        for state in [
            None,
            Some(RunState::Running),
            Some(RunState::Waiting),
            Some(RunState::Paused),
        ] {
            let transmission = state.map(|state| run(state, false));
            let name = state.map_or("none", RunState::as_str);
            for stored_status in [Some(WorkflowStatus::Submitted), None] {
                let local = LocalRecord {
                    transmission: transmission.clone(),
                    stored_status,
                    ..local()
                };
                let kept = if stored_status.is_some() {
                    "stored"
                } else {
                    "not stored"
                };
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
                let local = LocalRecord {
                    payment: Some(*here),
                    ..local()
                };
                let remote = RemoteRecord {
                    payment_status: there.to_owned(),
                    ..remote()
                };
                table.push(format!(
                    "{here} | {there}: {}",
                    comparison_text(Some(&local), Some(&remote))
                ));
            }
        }
        insta::assert_snapshot!(table.join("\n"), @r#"
            PENDING | PENDING: agreed
            PENDING | PARTIAL: payment_ahead_remotely listed
            PENDING | PAID: payment_ahead_remotely listed
            PENDING | REJECTED: payment_ahead_remotely listed
            PENDING | REFUNDED: payment_differs listed
            PAID | PENDING: agreed
            PAID | PARTIAL: payment_behind_remotely listed
            PAID | PAID: agreed
            PAID | REJECTED: payment_differs listed
            PAID | REFUNDED: payment_differs listed
            REJECTED | PENDING: agreed
            REJECTED | PARTIAL: payment_behind_remotely listed
            REJECTED | PAID: payment_differs listed
            REJECTED | REJECTED: agreed
            REJECTED | REFUNDED: payment_differs listed
            PARTIAL | PENDING: agreed
            PARTIAL | PARTIAL: agreed
            PARTIAL | PAID: payment_ahead_remotely listed
            PARTIAL | REJECTED: payment_ahead_remotely listed
            PARTIAL | REFUNDED: payment_differs listed
        "#);
    }

    /// The taxpayer decides which payments the authority is told of.
    #[test]
    fn a_payment_is_behind_only_if_the_authority_lost_what_it_was_told() {
        let mut table = Vec::new();
        let told = [
            None,
            Some(PaymentStatus::Pending),
            Some(PaymentStatus::Partial),
            Some(PaymentStatus::Paid),
        ];
        for sent_payment in told {
            for there in ["PENDING", "PARTIAL"] {
                let local = LocalRecord {
                    payment: Some(PaymentStatus::Paid),
                    sent_payment,
                    ..local()
                };
                let remote = RemoteRecord {
                    payment_status: there.to_owned(),
                    ..remote()
                };
                let word = sent_payment.map_or("nothing", PaymentStatus::as_str);
                table.push(format!(
                    "told {word} | {there}: {}",
                    comparison_text(Some(&local), Some(&remote))
                ));
            }
        }
        insta::assert_snapshot!(table.join("\n"), @r#"
            told nothing | PENDING: payment_behind_remotely listed
            told nothing | PARTIAL: payment_behind_remotely listed
            told PENDING | PENDING: agreed
            told PENDING | PARTIAL: payment_behind_remotely listed
            told PARTIAL | PENDING: payment_behind_remotely listed
            told PARTIAL | PARTIAL: agreed
            told PAID | PENDING: payment_behind_remotely listed
            told PAID | PARTIAL: payment_behind_remotely listed
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
                let local = LocalRecord {
                    relay: Some((run(state, is_held), PaymentStatus::Paid)),
                    ..local()
                };
                let remote = RemoteRecord {
                    payment_status: there.to_owned(),
                    ..remote()
                };
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
        let remote = RemoteRecord {
            is_transmitted: true,
            payment_status: "PAID".to_owned(),
            ..remote()
        };
        let said = comparison_text(Some(&local()), Some(&remote));
        assert_eq!(
            said,
            "transmitted_remotely records transmitted + payment_ahead_remotely listed"
        );
    }
}
