//! Outages of the authority. One outage covers all operations, and all replicas of this service. An outage starts when
//! the first breaker opens. It ends when each affected operation has been answered again and no operation has failed
//! for a while.
//!
//! Observations carry timestamps, and the latest observation of each operation counts. So it does not matter which
//! replica observes, and how often.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::domain::events::event::EventKind;
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::OutageId;

/// An affected operation may go without calls for this long before the authority is probed. The time is shorter once
/// another affected operation has recovered (`silence_max`).
const SILENCE_BEFORE_PROBE: SignedDuration = SignedDuration::from_mins(5);
/// The clocks of two replicas differ by less than this. A timestamp further in the future shows that a clock was set
/// back.
pub const CLOCK_DIFFERENCE_MAX: SignedDuration = SignedDuration::from_secs(10);
/// If the notification of a taxpayer about the start or the end of an outage fails, it is tried again until this time
/// has passed since that start or end. A later notification would be useless.
const NOTICE_LIFETIME: SignedDuration = SignedDuration::from_hours(1);

words! {
    /// The start or the end of an outage. Taxpayers are notified of both.
    OutageEdge { Started = "started", Ended = "ended" }
}

impl OutageEdge {
    pub fn event_kind(self) -> EventKind {
        match self {
            Self::Started => EventKind::AuthorityOutageStarted,
            Self::Ended => EventKind::AuthorityOutageEnded,
        }
    }
}

/// The last calls to one operation, as one process observed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationCalls {
    pub operation: &'static str,
    /// The time at which the operation's breaker opened; `None` while the breaker is closed.
    pub held_since: Option<Timestamp>,
    pub failed_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
}

/// The opening of a breaker, from which an outage may start.
struct BreakerOpening {
    opened_at: Timestamp,
    affected: AffectedOperation,
}

/// The latest known state of an operation, with the time of the call that shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperationHealth {
    Failing(Timestamp),
    Answering(Timestamp),
}

impl OperationCalls {
    /// Drops call times in the future, because they are from before the clock was set back. A `held_since` in the
    /// future becomes `now`.
    fn without_future_times(self, now: Timestamp) -> Self {
        Self {
            held_since: self.held_since.map(|at| at.min(now)),
            failed_at: self.failed_at.filter(|at| !is_in_future(*at, now)),
            answered_at: self.answered_at.filter(|at| !is_in_future(*at, now)),
            ..self
        }
    }

    /// Returns the state of the operation; `None` if there was no call. An operation with a failed call is failing,
    /// unless its breaker is closed and a call succeeded after the failure or within the time `quiet` before now.
    fn health(&self, now: Timestamp, quiet: SignedDuration) -> Option<OperationHealth> {
        let Some(failed) = self.failed_at else {
            return self.answered_at.map(OperationHealth::Answering);
        };
        let answered = self
            .answered_at
            .filter(|answered| *answered >= failed || now.duration_since(*answered) < quiet);
        match answered {
            Some(answered) if self.held_since.is_none() => {
                Some(OperationHealth::Answering(answered))
            }
            _ => Some(OperationHealth::Failing(failed)),
        }
    }

    /// Returns the opening of the operation's breaker. `None` if the breaker is closed, or if no call has failed after
    /// `end`, the end of the last outage.
    fn breaker_opening_after(&self, end: Option<Timestamp>) -> Option<BreakerOpening> {
        let held_since = self.held_since?;
        let failed_at = self.failed_at?;
        let affected = AffectedOperation {
            operation: self.operation.to_owned(),
            failed_at,
            answered_at: None,
        };
        let opening = BreakerOpening {
            opened_at: held_since,
            affected,
        };
        end.is_none_or(|end| failed_at > end).then_some(opening)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AffectedOperation {
    pub operation: String,
    /// The time of the last failed call.
    pub failed_at: Timestamp,
    /// The time of the first answered call after `failed_at`.
    pub answered_at: Option<Timestamp>,
}

impl AffectedOperation {
    fn record_health(&mut self, health: OperationHealth) {
        match health {
            OperationHealth::Failing(at) if at > self.failed_at => {
                self.failed_at = at;
                self.answered_at = self.answered_at.filter(|answered| *answered > at);
            }
            OperationHealth::Answering(at) if at > self.failed_at && self.answered_at.is_none() => {
                self.answered_at = Some(at);
            }
            _ => {}
        }
    }

    fn is_silent(&self, now: Timestamp, silence_max: SignedDuration) -> bool {
        self.answered_at.is_none() && now.duration_since(self.failed_at) >= silence_max
    }
}

/// The notification that is sent to one taxpayer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutageNotice {
    pub outage: OutageId,
    pub edge: OutageEdge,
    pub data: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    pub id: OutageId,
    /// The affected operations. An operation that is affected later is appended.
    pub affected: Vec<AffectedOperation>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// An observation of the authority by one process.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// The id that a new outage gets.
    pub id: OutageId,
    pub now: Timestamp,
    /// An outage ends only after no operation has failed for this long.
    pub quiet: SignedDuration,
    /// The last calls to each operation, as this process observed them.
    pub sightings: &'a [OperationCalls],
    /// The result of a health probe, if one was made.
    pub is_alive: Option<bool>,
}

impl Observation<'_> {
    /// Returns the open outage, updated by this observation, or a new outage if a breaker has opened.
    pub fn current_outage(&self, last: Option<&Outage>) -> Option<Outage> {
        match last {
            Some(outage) if outage.is_open() => Some(self.end_if_recovered(
                self.update_outage(outage.clone().without_future_times(self.now)),
            )),
            _ => {
                let last_end = last.and_then(|outage| outage.ended_at);
                self.new_outage(last_end.filter(|end| !is_in_future(*end, self.now)))
            }
        }
    }

    /// True if the authority must be probed, because an affected operation has not recovered and has had no recent
    /// call.
    pub fn needs_probe(&self, last: Option<&Outage>) -> bool {
        let open = last.filter(|outage| outage.is_open()).cloned();
        open.is_some_and(|outage| {
            let heard = self.update_outage(outage.without_future_times(self.now));
            let silence_max = self.silence_max(&heard);
            let mut unanswered = heard
                .affected
                .iter()
                .filter(|one| one.answered_at.is_none())
                .peekable();
            unanswered.peek().is_some()
                && unanswered.all(|one| one.is_silent(self.now, silence_max))
        })
    }

    /// Returns the operations whose breaker is still open although the outage has ended. Such a breaker closes only
    /// after a call, and this replica may make none: other replicas make the calls, or operators have paused the runs.
    pub fn operations_left_open(&self, last: Option<&Outage>) -> Vec<&'static str> {
        let end = last.and_then(|outage| outage.ended_at);
        let Some(end) = end.filter(|end| !is_in_future(*end, self.now)) else {
            return Vec::new();
        };
        self.calls_without_future_times()
            .filter(|seen| {
                seen.held_since.is_some() && seen.breaker_opening_after(Some(end)).is_none()
            })
            .map(|seen| seen.operation)
            .collect()
    }

    fn calls_without_future_times(&self) -> impl Iterator<Item = OperationCalls> {
        self.sightings
            .iter()
            .map(|seen| seen.without_future_times(self.now))
    }

    fn new_outage(&self, last_end: Option<Timestamp>) -> Option<Outage> {
        let opened: Vec<_> = self
            .calls_without_future_times()
            .filter_map(|seen| seen.breaker_opening_after(last_end))
            .collect();
        let first = opened.iter().map(|opening| opening.opened_at).min()?;
        Some(Outage {
            id: self.id,
            affected: opened.into_iter().map(|opening| opening.affected).collect(),
            started_at: last_end.map_or(first, |end| first.max(end)),
            ended_at: None,
        })
    }

    fn update_outage(&self, mut outage: Outage) -> Outage {
        for seen in self.calls_without_future_times() {
            let known = outage
                .affected
                .iter_mut()
                .find(|one| one.operation == seen.operation);
            if let Some(affected) = known {
                seen.health(self.now, self.quiet)
                    .into_iter()
                    .for_each(|health| affected.record_health(health));
            } else if let Some(opening) = seen.breaker_opening_after(Some(outage.started_at)) {
                outage.affected.push(opening.affected);
            }
        }
        let silence_max = self.silence_max(&outage);
        for affected in outage
            .affected
            .iter_mut()
            .filter(|one| one.is_silent(self.now, silence_max))
        {
            match self.is_alive {
                Some(true) => affected.record_health(OperationHealth::Answering(self.now)),
                Some(false) => affected.record_health(OperationHealth::Failing(self.now)),
                None => {}
            }
        }
        outage
    }

    /// Returns how long an operation may go without calls before the authority is probed: at most `quiet` once another
    /// affected operation has recovered, so that a rarely used operation does not keep the outage open.
    fn silence_max(&self, outage: &Outage) -> SignedDuration {
        let is_back = outage.affected.iter().any(|one| one.answered_at.is_some());
        if is_back {
            self.quiet.min(SILENCE_BEFORE_PROBE)
        } else {
            SILENCE_BEFORE_PROBE
        }
    }

    fn end_if_recovered(&self, mut outage: Outage) -> Outage {
        let answered: Option<Vec<_>> = outage.affected.iter().map(|one| one.answered_at).collect();
        let failed = outage.affected.iter().map(|one| one.failed_at).max();
        // A failure in the future was recorded before the clock was set back. `abs` makes a failure in the far future
        // count as an old one.
        let is_quiet = failed.is_none_or(|at| self.now.duration_since(at).abs() >= self.quiet);
        let Some(answered) = answered.filter(|_| is_quiet) else {
            return outage;
        };
        outage.ended_at = Some(answered.into_iter().max().unwrap_or(self.now));
        outage
    }
}

impl Outage {
    pub fn is_open(&self) -> bool {
        self.ended_at.is_none()
    }

    /// Replaces each timestamp in the future by `now`, so that it does not delay the end of the outage.
    fn without_future_times(mut self, now: Timestamp) -> Self {
        let brought_forward = |at: Timestamp| if is_in_future(at, now) { now } else { at };
        for affected in &mut self.affected {
            affected.failed_at = brought_forward(affected.failed_at);
            affected.answered_at = affected.answered_at.map(brought_forward);
        }
        Self {
            started_at: brought_forward(self.started_at),
            ..self
        }
    }

    pub fn operations(&self) -> Vec<&str> {
        self.affected
            .iter()
            .map(|one| one.operation.as_str())
            .collect()
    }

    /// Returns the duration in whole seconds. The duration of an open outage ends at `now`.
    pub fn duration_s(&self, now: Timestamp) -> i64 {
        self.ended_at
            .unwrap_or(now)
            .duration_since(self.started_at)
            .as_secs()
            .max(0)
    }

    /// Returns the change since the earlier state `before`: `Started` if there is no earlier state, `Ended` if the
    /// outage was open then and is over now, otherwise `None`.
    pub fn change_since(&self, before: Option<&Self>) -> Option<OutageEdge> {
        match before {
            None => Some(OutageEdge::Started),
            Some(before) => (before.is_open() && !self.is_open()).then_some(OutageEdge::Ended),
        }
    }

    pub fn notice(&self, edge: OutageEdge) -> OutageNotice {
        let mut data = json!({
            "outage_id": self.id,
            "operations": self.operations(),
            "started_at": precise_time(self.started_at),
        });
        let more = match (edge, self.ended_at) {
            (OutageEdge::Started, _) => json!({
                "message": "Calls to the authority are failing. What you send is taken in and queued; \
                            it goes on by itself, and nothing needs to be sent again.",
            }),
            (OutageEdge::Ended, ended_at) => json!({
                "ended_at": ended_at.map(precise_time),
                "duration_s": self.duration_s(self.started_at),
                "message": "The authority answers again. What was queued goes on by itself.",
            }),
        };
        if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
            data.extend(more);
        }
        OutageNotice {
            outage: self.id,
            edge,
            data,
        }
    }

    /// True if a failed notification of this edge must be tried again: it is not older than `NOTICE_LIFETIME`.
    pub fn is_worth_notifying(&self, edge: OutageEdge, now: Timestamp) -> bool {
        let since = match edge {
            OutageEdge::Started => Some(self.started_at),
            OutageEdge::Ended => self.ended_at,
        };
        since.is_some_and(|since| now.duration_since(since) < NOTICE_LIFETIME)
    }
}

fn is_in_future(moment: Timestamp, now: Timestamp) -> bool {
    moment.duration_since(now) > CLOCK_DIFFERENCE_MAX
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const QUIET: SignedDuration = SignedDuration::from_secs(60);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn call_times(held: Option<i64>, failed: Option<i64>, answered: Option<i64>) -> OperationCalls {
        OperationCalls {
            operation: "sign",
            held_since: held.map(at),
            failed_at: failed.map(at),
            answered_at: answered.map(at),
        }
    }

    fn look(now: i64, sightings: &[OperationCalls]) -> Observation<'_> {
        Observation {
            id: Uuid::from_u128(1),
            now: at(now),
            quiet: QUIET,
            sightings,
            is_alive: None,
        }
    }

    /// An outage of the operation `sign` that started at second 0 of the test.
    fn begun_outage() -> Outage {
        look(1, &[call_times(Some(0), Some(0), None)])
            .current_outage(None)
            .unwrap()
    }

    fn after(outage: &Outage, now: i64, sightings: &[OperationCalls]) -> Outage {
        look(now, sightings).current_outage(Some(outage)).unwrap()
    }

    #[test]
    fn a_breaker_is_left_open_if_its_last_failure_is_from_before_the_end() {
        let open = begun_outage();
        let ended = Outage {
            ended_at: Some(at(100)),
            ..open.clone()
        };
        let sign: &[&str] = &["sign"];
        for (last, held, failed, left_open, case) in [
            (
                Some(&ended),
                Some(0),
                Some(100),
                sign,
                "it failed before the end",
            ),
            (
                Some(&ended),
                Some(0),
                Some(101),
                &[],
                "it failed again: a new outage",
            ),
            (Some(&ended), None, Some(50), &[], "its breaker is closed"),
            (Some(&open), Some(0), Some(50), &[], "the outage is open"),
            (None, Some(0), Some(0), &[], "there was no outage yet"),
        ] {
            let seen = [call_times(held, failed, None)];
            assert_eq!(
                look(160, &seen).operations_left_open(last),
                left_open,
                "{case}"
            );
        }
        let seen = [call_times(Some(0), Some(50), None)];
        let before = look(60, &seen).operations_left_open(Some(&ended));
        assert_eq!(before, [""; 0], "the clock was set back before the end");
    }

    #[test]
    fn an_outage_starts_when_a_breaker_opens_and_names_all_that_are_open() {
        assert_eq!(
            look(1, &[call_times(None, Some(0), None)]).current_outage(None),
            None,
            "failures with a closed breaker"
        );
        let confirm = OperationCalls {
            operation: "confirm",
            ..call_times(Some(3), Some(4), None)
        };
        let outage = look(5, &[call_times(Some(2), Some(2), None), confirm])
            .current_outage(None)
            .unwrap();
        assert_eq!(
            (outage.operations(), outage.started_at),
            (vec!["sign", "confirm"], at(2))
        );
        assert!(outage.is_open());
    }

    #[test]
    fn observed_calls_either_prolong_an_outage_or_answer_it() {
        use OperationHealth::{Answering, Failing};
        let table = [
            ("nothing", call_times(None, None, None), None),
            (
                "answers only",
                call_times(None, None, Some(90)),
                Some(Answering(at(90))),
            ),
            (
                "a failure, then an answer",
                call_times(None, Some(80), Some(81)),
                Some(Answering(at(81))),
            ),
            (
                "an answer a moment ago, then a failure",
                call_times(None, Some(99), Some(50)),
                Some(Answering(at(50))),
            ),
            (
                "an answer long ago, then a failure",
                call_times(None, Some(99), Some(40)),
                Some(Failing(at(99))),
            ),
            (
                "failures only, after a restart",
                call_times(None, Some(99), None),
                Some(Failing(at(99))),
            ),
            (
                "an open breaker",
                call_times(Some(10), Some(95), Some(9)),
                Some(Failing(at(95))),
            ),
            (
                "an open breaker and a straggler's answer",
                call_times(Some(10), Some(95), Some(96)),
                Some(Failing(at(95))),
            ),
        ];
        for (what, sighting, expected) in table {
            assert_eq!(sighting.health(at(100), QUIET), expected, "{what}");
        }
    }

    #[test]
    fn an_outage_ends_when_it_was_answered_and_nothing_has_failed_for_a_while() {
        let outage = after(&begun_outage(), 10, &[call_times(Some(0), Some(8), None)]);
        let answered = [call_times(None, Some(8), Some(12))];
        let waiting = after(&outage, 67, &answered);
        assert!(waiting.is_open(), "59 s after the last failure");
        let ended = after(&waiting, 68, &answered);
        assert_eq!(
            (ended.ended_at, ended.duration_s(at(1_000))),
            (Some(at(12)), 12)
        );
    }

    #[test]
    fn a_restart_during_an_outage_does_not_end_it_before_a_call_succeeds() {
        let outage = begun_outage();
        assert_eq!(
            after(&outage, 200, &[call_times(None, None, None)]),
            outage,
            "closed breakers say nothing"
        );
        let failing = after(&outage, 290, &[call_times(None, Some(289), None)]);
        assert_eq!(failing.affected[0].failed_at, at(289));
        let ended = after(&failing, 400, &[call_times(None, Some(289), Some(399))]);
        assert_eq!(ended.ended_at, Some(at(399)));
    }

    #[test]
    fn a_clock_set_back_does_not_keep_an_outage_open() {
        let outage = after(&begun_outage(), 10, &[call_times(Some(0), Some(8), None)]);
        let back = after(&outage, -600, &[call_times(Some(0), Some(8), None)]);
        assert_eq!(
            (back.affected[0].failed_at, back.started_at),
            (at(-600), at(-600))
        );
        let answered = after(&back, -590, &[call_times(None, Some(8), Some(-595))]);
        assert!(answered.is_open(), "it is not quiet for long enough");
        let ended = after(&answered, -540, &[call_times(None, Some(8), Some(-595))]);
        assert_eq!(
            (ended.ended_at, ended.duration_s(at(0))),
            (Some(at(-595)), 5)
        );
        let failed_before = [call_times(Some(-530), Some(8), None)];
        assert_eq!(
            look(-520, &failed_before).current_outage(Some(&ended)),
            None,
            "when that was is not known"
        );
    }

    #[test]
    fn an_outage_after_the_clock_was_set_back_is_one() {
        let ended = after(&begun_outage(), 100, &[call_times(None, Some(0), Some(5))]);
        assert_eq!(ended.ended_at, Some(at(5)));
        let next = look(-600, &[call_times(Some(-601), Some(-600), Some(5))])
            .current_outage(Some(&ended))
            .unwrap();
        assert_eq!((next.started_at, next.is_open()), (at(-601), true));
    }

    #[test]
    fn one_replica_that_still_sees_it_keeps_it_open() {
        let mut outage = begun_outage();
        for second in (5..300).step_by(5) {
            outage = after(&outage, second, &[call_times(Some(0), Some(second), None)]);
            outage = after(
                &outage,
                second + 2,
                &[call_times(None, Some(0), Some(second + 1))],
            );
            assert!(outage.is_open(), "at {second}");
        }
        assert_eq!(
            after(&outage, 355, &[call_times(None, Some(0), Some(354))]).ended_at,
            Some(at(296))
        );
    }

    #[test]
    fn a_breaker_that_opens_and_closes_every_few_seconds_is_one_outage() {
        let mut outage = begun_outage();
        for second in (10..600).step_by(10) {
            let is_open = second % 20 == 0;
            let failed = if is_open { second } else { second - 10 };
            let sighting = call_times(
                is_open.then_some(second),
                Some(failed),
                (!is_open).then_some(second),
            );
            outage = after(&outage, second, &[sighting]);
            assert!(outage.is_open(), "at {second}");
        }
        assert_eq!(outage.id, begun_outage().id);
    }

    #[test]
    fn an_operation_that_fails_later_belongs_to_the_outage_and_has_to_be_answered_too() {
        let confirm = OperationCalls {
            operation: "confirm",
            ..call_times(Some(20), Some(20), None)
        };
        let outage = after(
            &begun_outage(),
            21,
            &[call_times(Some(0), Some(19), None), confirm],
        );
        assert_eq!(outage.operations(), ["sign", "confirm"]);
        let sign_only = [call_times(None, Some(19), Some(22)), confirm];
        assert!(after(&outage, 200, &sign_only).is_open());
        let both = [
            sign_only[0],
            OperationCalls {
                held_since: None,
                answered_at: Some(at(70)),
                ..confirm
            },
        ];
        assert_eq!(after(&outage, 200, &both).ended_at, Some(at(70)));
    }

    #[test]
    fn failures_before_the_end_of_the_last_outage_start_no_new_one() {
        let ended = Outage {
            ended_at: Some(at(100)),
            ..begun_outage()
        };
        let at_rest = [call_times(Some(0), Some(95), None)];
        assert_eq!(
            look(200, &at_rest).current_outage(Some(&ended)),
            None,
            "a breaker that nobody has tried since"
        );
        let tried = [call_times(Some(0), Some(150), None)];
        let next = Observation {
            id: Uuid::from_u128(2),
            ..look(151, &tried)
        }
        .current_outage(Some(&ended))
        .unwrap();
        assert_eq!((next.id, next.started_at), (Uuid::from_u128(2), at(100)));
    }

    #[test]
    fn the_authority_is_probed_for_operations_without_calls() {
        let outage = begun_outage();
        let idle = [call_times(Some(0), Some(0), None)];
        assert!(!look(299, &idle).needs_probe(Some(&outage)));
        assert!(look(300, &idle).needs_probe(Some(&outage)));
        assert!(
            !look(300, &[call_times(None, None, Some(250))]).needs_probe(Some(&outage)),
            "it was answered"
        );
        assert!(!look(300, &idle).needs_probe(Some(&Outage {
            ended_at: Some(at(9)),
            ..begun_outage()
        })));
        let dead = Observation {
            is_alive: Some(false),
            ..look(300, &idle)
        }
        .current_outage(Some(&outage))
        .unwrap();
        assert!(
            dead.is_open() && !look(301, &idle).needs_probe(Some(&dead)),
            "it is asked again later"
        );
        let alive = Observation {
            is_alive: Some(true),
            ..look(600, &idle)
        }
        .current_outage(Some(&dead))
        .unwrap();
        assert_eq!(alive.ended_at, Some(at(600)));
    }

    #[test]
    fn an_unused_operation_keeps_no_outage_open() {
        let search = OperationCalls {
            operation: "search",
            ..call_times(Some(1), Some(5), None)
        };
        let outage = after(
            &begun_outage(),
            6,
            &[call_times(Some(0), Some(6), None), search],
        );
        let sightings = [call_times(None, Some(6), Some(20)), search];
        assert!(
            !look(64, &sightings).needs_probe(Some(&outage)),
            "it may still be called"
        );
        assert!(look(65, &sightings).needs_probe(Some(&outage)));
        let asked = |is_alive| Observation {
            is_alive: Some(is_alive),
            ..look(66, &sightings)
        };
        assert_eq!(
            asked(true).current_outage(Some(&outage)).unwrap().ended_at,
            Some(at(66))
        );
        assert!(
            asked(false)
                .current_outage(Some(&outage))
                .unwrap()
                .is_open()
        );
    }

    #[test]
    fn a_notice_names_the_operations_and_times_of_the_outage() {
        let outage = begun_outage();
        let mut data = outage.notice(OutageEdge::Started).data;
        assert!(
            data["message"]
                .as_str()
                .unwrap()
                .contains("taken in and queued")
        );
        data["message"].take();
        let id = "00000000-0000-0000-0000-000000000001";
        let started_at = "2027-01-15T08:00:00.000000Z";
        assert_eq!(
            data,
            json!({ "outage_id": id, "operations": ["sign"], "started_at": started_at, "message": null })
        );
        let ended = Outage {
            ended_at: Some(at(90)),
            ..outage
        };
        let mut data = ended.notice(OutageEdge::Ended).data;
        assert!(data["message"].as_str().unwrap().contains("answers again"));
        data["message"].take();
        assert_eq!(
            data,
            json!({
                "outage_id": id, "operations": ["sign"], "started_at": started_at, "message": null,
                "ended_at": "2027-01-15T08:01:30.000000Z", "duration_s": 90,
            })
        );
    }

    #[test]
    fn an_outage_passes_its_start_and_its_end_once() {
        let started = begun_outage();
        assert_eq!(started.change_since(None), Some(OutageEdge::Started));
        let failing = after(&started, 10, &[call_times(Some(0), Some(8), None)]);
        assert_eq!(failing.change_since(Some(&started)), None);
        let ended = after(&failing, 100, &[call_times(None, Some(8), Some(20))]);
        assert_eq!(ended.change_since(Some(&failing)), Some(OutageEdge::Ended));
        assert_eq!(ended.change_since(Some(&ended)), None);
    }

    #[test]
    fn each_edge_is_news_for_an_hour() {
        let open = begun_outage();
        let news = |outage: &Outage, edge, now| outage.is_worth_notifying(edge, at(now));
        assert!(
            news(&open, OutageEdge::Started, 3_599) && !news(&open, OutageEdge::Started, 3_600)
        );
        let ended = Outage {
            ended_at: Some(at(100)),
            ..open
        };
        assert!(news(&ended, OutageEdge::Ended, 3_699) && !news(&ended, OutageEdge::Ended, 3_700));
    }
}
