//! Explains to people why a run does not continue: the reason of the wait, its start, its end, and the event that ends
//! it.

use std::time::Duration;

use jiff::Timestamp;

use crate::domain::kernel::codes::words;
use crate::domain::kernel::upstream::{CallFailure, UpstreamCause};
use crate::domain::pipeline::prediction::{MedianPredictionError, Prediction};
use crate::domain::pipeline::{Operation, Run, RunPhase, RunState, Step, WaitReason};

words! {
    /// The reason why a due run is not taken although workers are free.
    RunHold {
        /// An operator has paused the taxpayer.
        TaxpayerPaused = "taxpayer-paused",
        /// An operator has tripped the breaker of the next step.
        CallsStopped = "calls-stopped",
        /// The breaker of the next step holds calls back, because earlier calls failed.
        Outage = "outage",
        /// The breaker of the next step holds calls back, because they failed through a fault of ours, such as a key that
        /// the authority refuses.
        OurFault = "our-fault",
    }
}

impl RunHold {
    /// True if the hold lasts until an operator ends it.
    pub fn is_operator_hold(self) -> bool {
        matches!(self, Self::TaxpayerPaused | Self::CallsStopped)
    }
}

/// The facts about the wait of a run that are not in the run itself.
#[derive(Debug, Clone, Default)]
pub struct WaitContext {
    /// The breaker that blocks the run's next step, if one does.
    pub block: Option<BlockingBreaker>,
    /// The replica that holds the run's lane, so that one of its workers processes the run; `None` if no replica does.
    pub worker: Option<HoldingReplica>,
    pub queue: Option<QueuePlace>,
    /// True if an operator paused the run.
    pub is_held: bool,
    /// True if this process was started in the mode in which it processes no runs.
    pub is_service_paused: bool,
    /// The time at which an operator paused the taxpayer; `None` if the taxpayer is not paused.
    pub taxpayer_paused_since: Option<Timestamp>,
    /// The cause of the last call's failure; `None` if it did not fail.
    pub failure: Option<CallFailure>,
}

/// The replica that holds a run's lane, so that no other replica processes the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldingReplica {
    pub name: String,
    /// The step that the replica is calling, and the start of the call. `None` if that is not known: the run may still
    /// have the start time that an earlier replica recorded before it died.
    pub calls: Option<(Step, Timestamp)>,
    /// The time of the replica's last heartbeat, if the replica is missing.
    pub silent_since: Option<Timestamp>,
    /// The end of the replica's lease, which it renews while it works.
    pub lease_until: Timestamp,
}

/// An open breaker that blocks one step for one taxpayer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockingBreaker {
    pub since: Option<Timestamp>,
    /// The time of the next probe; `None` while a probe is in flight or due, and for a tripped breaker, which is not
    /// probed.
    pub next_probe_at: Option<Timestamp>,
    /// True while a probe is in flight.
    pub is_probing: bool,
    /// True if an operator tripped the breaker. It is then not probed.
    pub is_tripped: bool,
    /// The fault of ours through which the calls failed; `None` if the fault is not ours.
    pub own_fault: Option<UpstreamCause>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePlace {
    pub position: u64,
    pub end: QueueEnd,
}

/// The predicted end of a run, or of the last run in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueEnd {
    pub prediction: Prediction,
    /// The median error of past predictions; `None` if it is not known.
    pub median_prediction_error: Option<MedianPredictionError>,
}

impl QueueEnd {
    /// Returns sentences that say when the run is expected to end, and how far past predictions were off. The first one
    /// begins with `subject`, such as "It". During an outage no latest time is promised.
    pub fn explain(&self, subject: &str) -> String {
        let Prediction {
            expected,
            earliest,
            latest,
            takes_at_most,
        } = self.prediction;
        let end = match latest {
            Some(latest) if moment_text(latest) == moment_text(earliest) => {
                format!("{subject} should end at about {}.", moment_text(expected))
            }
            Some(latest) => format!(
                "{subject} should end between {} and {}, at about {}.",
                moment_text(earliest),
                moment_text(latest),
                moment_text(expected)
            ),
            // No recent run shows how fast the queue drains.
            None if self.median_prediction_error.is_none() => {
                format!("{subject} ends some time after the authority answers again.")
            }
            None => format!(
                "{subject} should end within {} after the authority answers again.",
                duration_text(takes_at_most)
            ),
        };
        match self.median_prediction_error {
            None => end,
            Some(error) => format!(
                "{end} The last {} predictions were off by {} % (median).",
                error.predictions, error.median_percent
            ),
        }
    }
}

impl Run {
    /// Returns the step whose outcome is unknown, if there is one, otherwise the next step.
    pub fn current_step(&self) -> Option<Step> {
        self.progress.intent.or_else(|| self.next_step())
    }

    /// True if the run is a submission that has not ended and its legal deadline has passed. The invoices of other runs
    /// are signed already, so they have met theirs.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        let has_ended = !self.state().is_open() && self.state() != RunState::Paused;
        self.operation() == Operation::Submit && !has_ended && self.deadline_at <= now
    }

    /// Returns a text that says what the run waits for, the start and the end of the wait, and what would end it.
    pub fn explain_wait(&self, context: &WaitContext, now: Timestamp) -> String {
        let since = moment_text(self.updated_at);
        match self.state() {
            RunState::Succeeded => format!("It waits for nothing: it succeeded at {since}."),
            RunState::Refused => format!(
                "It waits for nothing: the authority refused the document at {since}. The taxpayer corrects it and sends \
                 it again; a retry sends the same document."
            ),
            RunState::Cancelled => format!(
                "It waits for nothing: it was cancelled at {since}. A new request of the taxpayer or a retry starts it again."
            ),
            RunState::Paused => self.explain_pause(context),
            RunState::Running | RunState::Waiting => self.explain_open_run(context, now),
        }
    }

    fn explain_pause(&self, context: &WaitContext) -> String {
        let since = moment_text(self.updated_at);
        if self.is_quarantined() {
            return self.explain_quarantine(&since);
        }
        if context.is_held {
            return format!(
                "An operator paused it at {since}. It stays paused until an operator resumes it."
            );
        }
        let failing = self
            .progress
            .failing_since
            .map_or_else(String::new, |from| {
                format!(", failing since {}", moment_text(from))
            });
        let last = context.failure.map_or_else(String::new, |failure| {
            format!(
                " At the last call {}.",
                self.failure_in_words(Some(failure))
            )
        });
        format!(
            "It was given up at {since} at {}{failing}.{last}{} It stays paused until an operator retries it.",
            self.step_in_words(),
            blame_in_words(context.failure)
        )
    }

    fn explain_quarantine(&self, since: &str) -> String {
        let history = self.progress.crash_history;
        let cause = if history.panics > 0 {
            history.cause_in_words()
        } else {
            format!(
                "the process crashed {} times while it worked on {}",
                history.crashes,
                self.step_in_words()
            )
        };
        let end = if history.may_lift_quarantine() {
            "It is tried once more, alone, when a process has lived for a while; an operator may retry it now or cancel \
             it."
        } else {
            "It stays there until an operator retries or cancels it."
        };
        format!("It has been in quarantine since {since}, because {cause}. {end}")
    }

    fn explain_open_run(&self, context: &WaitContext, now: Timestamp) -> String {
        if let Some(worker) = &context.worker {
            return self.explain_work(worker, context.queue.as_ref());
        }
        if context.is_service_paused {
            return "It waits, because this process was started with --paused. It goes on when a process is started \
                    without it."
                .to_owned();
        }
        if let Some(since) = context.taxpayer_paused_since {
            return format!(
                "It waits, because an operator has paused this taxpayer since {}. It goes on when an operator resumes the \
                 taxpayer.",
                moment_text(since)
            );
        }
        if let Some(block) = &context.block {
            return self.explain_block(block, context.queue.as_ref());
        }
        match self.phase {
            RunPhase::Waiting { reason, until } if until > now => {
                self.explain_retry(reason, context.failure, until)
            }
            _ => self.explain_queue(context.queue.as_ref()),
        }
    }

    fn explain_work(&self, worker: &HoldingReplica, queue: Option<&QueuePlace>) -> String {
        let HoldingReplica {
            name,
            calls,
            silent_since,
            lease_until,
        } = worker;
        let step = self.step_in_words();
        match (silent_since, calls) {
            (None, Some((called, since))) => format!(
                "It does not wait: {name} has worked on the step {called} since {}.{}",
                moment_text(*since),
                end_in_words(queue)
            ),
            (None, None) => format!(
                "It does not wait: {name} works on {step}.{}",
                end_in_words(queue)
            ),
            (Some(silent_since), _) => format!(
                "{name} was at work on {step} and has given no sign since {}. Another replica takes over at {} at the latest.",
                moment_text(*silent_since),
                moment_text(*lease_until)
            ),
        }
    }

    fn explain_block(&self, block: &BlockingBreaker, queue: Option<&QueuePlace>) -> String {
        let since = block.since.map_or_else(String::new, |since| {
            format!(" since {}", moment_text(since))
        });
        if block.is_tripped {
            let since = block
                .since
                .map_or_else(String::new, |since| format!(" at {}", moment_text(since)));
            return format!(
                "An operator stopped the calls of {}{since}. The run goes on when the breaker is reset.",
                self.step_in_words()
            );
        }
        let probe = match block.next_probe_at {
            Some(next) => format!("The authority is probed again at {}", moment_text(next)),
            None if block.is_probing => "The authority is being probed now".to_owned(),
            None => "The next call probes the authority".to_owned(),
        };
        let place = queue.map_or_else(String::new, |queue| {
            format!("; then it is number {} in the queue", queue.position)
        });
        let end = end_in_words(queue);
        let fault = block
            .own_fault
            .and_then(UpstreamCause::own_fault_sentence)
            .map_or_else(String::new, |sentence| format!(" {sentence}"));
        format!(
            "The breaker holds back the calls of {}{since}.{fault} {probe}, and the run goes on after the first answer{place}.{end}",
            self.step_in_words()
        )
    }

    fn explain_retry(
        &self,
        reason: WaitReason,
        failure: Option<CallFailure>,
        next: Timestamp,
    ) -> String {
        let cause = match reason {
            WaitReason::AuthorityUnavailable => self.failure_in_words(failure),
            WaitReason::AuthorityThrottles => self.throttling_in_words(),
            WaitReason::HealthCheckDown => {
                "the authority says that its exchange is down".to_owned()
            }
            WaitReason::AccessPointOffline => {
                "the access point of a party of this invoice is offline".to_owned()
            }
        };
        let since = self.progress.failing_since.unwrap_or(self.updated_at);
        let retry = if reason == WaitReason::AuthorityThrottles {
            ". A retry before the end of the pause that the authority asked for is held back"
        } else {
            ", or at once if an operator retries it"
        };
        format!(
            "It has waited since {}, because {cause}.{} It is tried again at {}{retry}.",
            moment_text(since),
            blame_in_words(failure),
            moment_text(next)
        )
    }

    /// Returns the cause of the last call's failure, as a part of a sentence.
    fn failure_in_words(&self, failure: Option<CallFailure>) -> String {
        let step = self.step_in_words();
        let Some(CallFailure { cause, .. }) = failure else {
            return format!("{step} has not succeeded yet");
        };
        match cause {
            UpstreamCause::Connect => format!("the authority could not be reached for {step}"),
            UpstreamCause::Tls => {
                format!("the authority's certificate was not accepted at {step}")
            }
            UpstreamCause::Timeout => format!("the authority did not answer {step} in time"),
            UpstreamCause::ServerError => {
                format!("the authority answered {step} with an error of its own (5xx)")
            }
            UpstreamCause::Credentials => {
                format!("the authority did not accept our key at {step}")
            }
            UpstreamCause::Throttled => self.throttling_in_words(),
            UpstreamCause::BadAnswer => {
                format!("the authority's answer to {step} could not be read")
            }
        }
    }

    fn throttling_in_words(&self) -> String {
        let step = self.step_in_words();
        format!("the authority asked at {step} to be called less often")
    }

    fn explain_queue(&self, queue: Option<&QueuePlace>) -> String {
        let since = moment_text(self.next_attempt_at().unwrap_or(self.updated_at));
        let place = queue.map_or_else(String::new, |queue| {
            format!(" as number {} in the queue", queue.position)
        });
        let end = end_in_words(queue);
        format!("It has been due since {since} and waits for a free worker{place}.{end}")
    }

    fn step_in_words(&self) -> String {
        self.current_step()
            .map_or_else(|| "its end".to_owned(), |step| format!("the step {step}"))
    }
}

/// Returns a sentence about the predicted end of the run, after a space; empty if the position in the queue is not
/// known.
fn end_in_words(queue: Option<&QueuePlace>) -> String {
    queue.map_or_else(String::new, |queue| format!(" {}", queue.end.explain("It")))
}

/// Formats a duration for people. It is at least one second.
fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_millis().div_ceil(1_000).max(1);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3_600)),
    }
}

/// Returns a sentence about the party to blame for the last failure, after a space; empty if it is not known.
fn blame_in_words(failure: Option<CallFailure>) -> String {
    let blame = failure.and_then(|failure| failure.blame);
    blame.map_or_else(String::new, |blame| format!(" {}", blame.sentence()))
}

/// Formats a time for people.
fn moment_text(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::ids::{RunId, TaxpayerId};
    use crate::domain::kernel::upstream::Blame;
    use crate::domain::pipeline::{RunRequest, StepResult};

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn run() -> Run {
        let request = RunRequest::sample("INV001-94AD90FB-20261121", Operation::Submit);
        Run::new(RunId::nil(), TaxpayerId(7), request, second(0))
            .begin_attempt(Step::IrnCheck, second(0))
    }

    fn waiting_run(reason: WaitReason) -> Run {
        let result = StepResult::Wait {
            reason,
            error: "down".into(),
            until: second(60),
        };
        run().after_step(Step::IrnCheck, &result, second(1))
    }

    fn given_up() -> Run {
        run().after_step(
            Step::IrnCheck,
            &StepResult::Pause {
                error: "down".into(),
            },
            second(9),
        )
    }

    #[test]
    fn a_run_is_overdue_from_its_deadline_until_it_ends() {
        let due = run().with_deadline(second(5));
        assert!(!due.is_overdue(second(4)) && due.is_overdue(second(5)));
        assert!(
            due.clone().pause(second(5)).is_overdue(second(6)),
            "an operator paused it"
        );
        assert!(!due.cancel(second(5)).is_overdue(second(6)));
        for operation in Operation::ALL {
            let request = RunRequest::sample("INV001-94AD90FB-20261121", *operation);
            let run = Run::new(RunId::nil(), TaxpayerId(7), request, second(0));
            let is_submission = *operation == Operation::Submit;
            assert_eq!(run.is_overdue(second(6)), is_submission, "{operation}");
        }
    }

    fn queue_end(latest: Option<Timestamp>, median_percent: Option<u64>) -> QueueEnd {
        QueueEnd {
            prediction: Prediction {
                expected: second(70),
                earliest: second(60),
                latest,
                takes_at_most: Duration::from_mins(1),
            },
            median_prediction_error: median_percent.map(|median_percent| MedianPredictionError {
                predictions: 20,
                median_percent,
            }),
        }
    }

    #[test]
    fn in_an_outage_a_time_is_given_only_if_recent_runs_show_it() {
        let measured = queue_end(None, Some(12)).explain("It");
        let within = "It should end within 60 s after the authority answers again.";
        assert!(measured.starts_with(within), "{measured}");
        let unmeasured = queue_end(None, None).explain("It");
        assert_eq!(
            unmeasured,
            "It ends some time after the authority answers again."
        );
    }

    #[test]
    fn every_state_says_what_would_move_the_run() {
        let alone = WaitContext::default();
        let queued = WaitContext {
            queue: Some(QueuePlace {
                position: 3,
                end: queue_end(Some(second(90)), Some(12)),
            }),
            ..WaitContext::default()
        };
        let block = BlockingBreaker {
            since: Some(second(2)),
            next_probe_at: Some(second(65)),
            is_probing: false,
            is_tripped: false,
            own_fault: None,
        };
        let blocked = WaitContext {
            block: Some(block),
            queue: Some(QueuePlace {
                position: 3,
                end: queue_end(None, None),
            }),
            ..WaitContext::default()
        };
        let [probing, due_to_probe] = [true, false].map(|is_probing| WaitContext {
            block: Some(BlockingBreaker {
                next_probe_at: None,
                is_probing,
                ..block
            }),
            ..alone.clone()
        });
        let ordered = WaitContext {
            block: Some(BlockingBreaker {
                is_tripped: true,
                ..block
            }),
            ..alone.clone()
        };
        let held = WaitContext {
            is_held: true,
            ..alone.clone()
        };
        let refused = StepResult::Refused {
            error: "odd".into(),
        };
        let unavailable = waiting_run(WaitReason::AuthorityUnavailable);
        let sentences = [
            (run(), &queued),
            (run(), &alone),
            (unavailable.clone(), &alone),
            (waiting_run(WaitReason::AuthorityThrottles), &alone),
            (waiting_run(WaitReason::HealthCheckDown), &alone),
            (waiting_run(WaitReason::AccessPointOffline), &alone),
            (unavailable.clone(), &blocked),
            (unavailable.clone(), &probing),
            (unavailable.clone(), &due_to_probe),
            (unavailable.clone(), &ordered),
            (run().pause(second(5)), &held),
            (given_up(), &alone),
            (given_up().after_crash().after_crash().after_crash(), &alone),
            (given_up().after_panic().after_panic(), &alone),
            (
                run().after_step(Step::IrnCheck, &refused, second(5)),
                &alone,
            ),
            (run().cancel(second(5)), &alone),
            (run().end_as_transmitted(second(5)), &alone),
        ]
        .map(|(run, context)| run.explain_wait(context, second(10)));
        let prompt = queue_end(Some(second(60)), None).explain("It");
        assert_eq!(prompt, "It should end at about 2027-01-15 08:01:10 UTC.");
        insta::assert_snapshot!(sentences.join("\n"), @r#"
            It has been due since 2027-01-15 08:00:00 UTC and waits for a free worker as number 3 in the queue. It should end between 2027-01-15 08:01:00 UTC and 2027-01-15 08:01:30 UTC, at about 2027-01-15 08:01:10 UTC. The last 20 predictions were off by 12 % (median).
            It has been due since 2027-01-15 08:00:00 UTC and waits for a free worker.
            It has waited since 2027-01-15 08:00:01 UTC, because the step irn-check has not succeeded yet. It is tried again at 2027-01-15 08:01:00 UTC, or at once if an operator retries it.
            It has waited since 2027-01-15 08:00:01 UTC, because the authority asked at the step irn-check to be called less often. It is tried again at 2027-01-15 08:01:00 UTC. A retry before the end of the pause that the authority asked for is held back.
            It has waited since 2027-01-15 08:00:01 UTC, because the authority says that its exchange is down. It is tried again at 2027-01-15 08:01:00 UTC, or at once if an operator retries it.
            It has waited since 2027-01-15 08:00:01 UTC, because the access point of a party of this invoice is offline. It is tried again at 2027-01-15 08:01:00 UTC, or at once if an operator retries it.
            The breaker holds back the calls of the step irn-check since 2027-01-15 08:00:02 UTC. The authority is probed again at 2027-01-15 08:01:05 UTC, and the run goes on after the first answer; then it is number 3 in the queue. It ends some time after the authority answers again.
            The breaker holds back the calls of the step irn-check since 2027-01-15 08:00:02 UTC. The authority is being probed now, and the run goes on after the first answer.
            The breaker holds back the calls of the step irn-check since 2027-01-15 08:00:02 UTC. The next call probes the authority, and the run goes on after the first answer.
            An operator stopped the calls of the step irn-check at 2027-01-15 08:00:02 UTC. The run goes on when the breaker is reset.
            An operator paused it at 2027-01-15 08:00:05 UTC. It stays paused until an operator resumes it.
            It was given up at 2027-01-15 08:00:09 UTC at the step irn-check. It stays paused until an operator retries it.
            It has been in quarantine since 2027-01-15 08:00:09 UTC, because the process crashed 3 times while it worked on the step irn-check. It is tried once more, alone, when a process has lived for a while; an operator may retry it now or cancel it.
            It has been in quarantine since 2027-01-15 08:00:09 UTC, because it panicked 2 times. It stays there until an operator retries or cancels it.
            It waits for nothing: the authority refused the document at 2027-01-15 08:00:05 UTC. The taxpayer corrects it and sends it again; a retry sends the same document.
            It waits for nothing: it was cancelled at 2027-01-15 08:00:05 UTC. A new request of the taxpayer or a retry starts it again.
            It waits for nothing: it succeeded at 2027-01-15 08:00:05 UTC.
        "#);
        let due = unavailable.explain_wait(&queued, second(61));
        assert!(
            due.starts_with(
                "It has been due since 2027-01-15 08:01:00 UTC and waits for a free worker"
            ),
            "{due}"
        );
    }

    #[test]
    fn what_holds_a_run_up_is_named() {
        let worked_on = |calls, silent_since| WaitContext {
            worker: Some(HoldingReplica {
                name: "replica-1".into(),
                calls,
                silent_since,
                lease_until: second(30),
            }),
            ..WaitContext::default()
        };
        let failed = |cause, blame| WaitContext {
            failure: Some(CallFailure { cause, blame }),
            ..WaitContext::default()
        };
        let poisonous = failed(UpstreamCause::ServerError, Some(Blame::Document));
        let taxpayer_paused = WaitContext {
            taxpayer_paused_since: Some(second(3)),
            ..WaitContext::default()
        };
        let service_paused = WaitContext {
            is_service_paused: true,
            ..WaitContext::default()
        };
        let unavailable = waiting_run(WaitReason::AuthorityUnavailable);
        let sentences = [
            (run(), &worked_on(Some((Step::DataCheck, second(7))), None)),
            (run(), &worked_on(None, None)),
            (run(), &worked_on(None, Some(second(4)))),
            (run(), &service_paused),
            (unavailable.clone(), &taxpayer_paused),
            (unavailable.clone(), &poisonous),
            (unavailable, &failed(UpstreamCause::Connect, None)),
            (given_up(), &poisonous),
        ]
        .map(|(run, context)| run.explain_wait(context, second(10)));
        insta::assert_snapshot!(sentences.join("\n"), @r#"
            It does not wait: replica-1 has worked on the step data-check since 2027-01-15 08:00:07 UTC.
            It does not wait: replica-1 works on the step irn-check.
            replica-1 was at work on the step irn-check and has given no sign since 2027-01-15 08:00:04 UTC. Another replica takes over at 2027-01-15 08:00:30 UTC at the latest.
            It waits, because this process was started with --paused. It goes on when a process is started without it.
            It waits, because an operator has paused this taxpayer since 2027-01-15 08:00:03 UTC. It goes on when an operator resumes the taxpayer.
            It has waited since 2027-01-15 08:00:01 UTC, because the authority answered the step irn-check with an error of its own (5xx). The fault is with this document: the authority answers others, also of this taxpayer. It is tried again at 2027-01-15 08:01:00 UTC, or at once if an operator retries it.
            It has waited since 2027-01-15 08:00:01 UTC, because the authority could not be reached for the step irn-check. It is tried again at 2027-01-15 08:01:00 UTC, or at once if an operator retries it.
            It was given up at 2027-01-15 08:00:09 UTC at the step irn-check. At the last call the authority answered the step irn-check with an error of its own (5xx). The fault is with this document: the authority answers others, also of this taxpayer. It stays paused until an operator retries it.
        "#);
    }
}
