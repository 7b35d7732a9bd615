//! Estimates the position of a run in the queue, and when the run ends.
//!
//! The result is only an estimate: the counts of queued runs may be a second old, and the other processes are taken to
//! be as fast as this one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use authority_client::{Authority, LimitView};
use database::StoreError;
use jiff::Timestamp;
use timing::clock::SharedClock;
use tokio::sync::Mutex;

use crate::actors::pipeline::blocked_steps;
use crate::actors::pipeline::measurements::RunMeasurements;
use crate::actors::pipeline::run_holds::{HeldRuns, RunHolds};
use crate::actors::taxpayer::paused::PausedTaxpayers;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::capacity::{Backlog, CallCapacity, RunSteps};
use crate::domain::pipeline::prediction::{ContinuationTime, Prediction};
use crate::domain::pipeline::run_order::WaitingRuns;
use crate::domain::pipeline::waiting::{QueueEnd, QueuePlace};
use crate::domain::pipeline::{Operation, Run, Step, run_lane_key};
use crate::store::Store;
use crate::store::lanes::LaneKind;
use crate::store::lanes::views::{self, DueLaneGroup, LaneHolder};
use crate::store::operations::replicas;

/// Loaded queue counts are reused for this long.
const COUNTS_MAX_AGE: Duration = Duration::from_secs(1);
/// A time in which no step was answered counts as a standstill only if it is at least this long.
const STANDSTILL_MIN: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePosition {
    /// The position and the predicted end. The run that is claimed next has position 1, and so has each run in
    /// progress.
    pub place: QueuePlace,
    /// The process that holds the run's lane now; `None` if no process does.
    pub holder: Option<LaneHolder>,
}

/// The counts of the queue that all processes share.
#[derive(Debug, Default)]
struct QueueCounts {
    turns: WaitingRuns,
    /// The runs that are due, also those of paused taxpayers.
    due: Vec<DueLaneGroup>,
    /// The number of runs that some process works on now.
    at_work: u64,
    /// The number of processes that take runs.
    processes: u64,
    /// The time at which the last run of a missing replica can be taken over; `None` if no missing replica holds a run.
    taken_over_at: Option<Timestamp>,
}

pub struct QueueEstimator {
    store: Store,
    authority: Authority,
    clock: SharedClock,
    paused: PausedTaxpayers,
    /// The number of runs that a process works on at a time.
    workers: u64,
    pub measurements: Arc<RunMeasurements>,
    cached_counts: Mutex<Option<(Instant, Arc<QueueCounts>)>>,
}

impl QueueEstimator {
    pub fn new(
        store: Store,
        authority: Authority,
        clock: SharedClock,
        paused: PausedTaxpayers,
        workers: usize,
    ) -> Self {
        Self {
            store,
            authority,
            clock,
            paused,
            workers: u64::try_from(workers).unwrap_or(u64::MAX),
            measurements: Arc::default(),
            cached_counts: Mutex::default(),
        }
    }

    /// Returns the pauses of taxpayers and the breakers that hold back runs now.
    pub fn holds(&self) -> RunHolds {
        RunHolds {
            breakers: self.authority.breakers(),
            paused: self.paused.list(),
        }
    }

    /// Counts the due runs that are held back.
    pub async fn count_held_runs(&self) -> Result<HeldRuns, StoreError> {
        let counts = self.load_counts().await?;
        Ok(self.holds().count(&counts.due))
    }

    /// Returns the place of a run in the queue; `None` if the run does not continue by itself.
    pub async fn queue_place(&self, run: &Run) -> Result<Option<QueuePlace>, StoreError> {
        if !self.holds().ends_by_itself(run) {
            return Ok(None);
        }
        let found = self.position(run).await?;
        Ok(found.map(|found| found.place))
    }

    /// Returns the position of a run in the queue. Returns `None` if the run is not open or has no next step, or if
    /// this process is paused and works on no run.
    pub async fn position(&self, run: &Run) -> Result<Option<QueuePosition>, StoreError> {
        let Some(step) = run.next_step().filter(|_| run.state().is_open()) else {
            return Ok(None);
        };
        if self.authority.is_paused() {
            return Ok(None);
        }
        let counts = self.load_counts().await?;
        let TaxpayerId(taxpayer) = run.taxpayer_id;
        let deadline = run.deadline_at.as_microsecond();
        let key = run_lane_key(run.taxpayer_id, run.id);
        let lane = views::lane_state(self.store.reader(), LaneKind::Run, &key).await?;
        let holder = lane.and_then(|lane| lane.holder);
        let position = if holder.is_some() {
            None
        } else {
            let urgent = views::count_more_urgent_lanes(
                &self.store,
                LaneKind::Run,
                taxpayer,
                deadline,
                &key,
            )
            .await?;
            Some(counts.turns.position(taxpayer, urgent))
        };
        let now = self.clock.now();
        let waited = Duration::try_from(now.duration_since(run.created_at)).unwrap_or_default();
        let start = self
            .expected_step_start(step, Some(run.taxpayer_id), waited, now)
            .unwrap_or_else(|| ContinuationTime::At(run.next_attempt_at().unwrap_or(now).max(now)));
        let taken_over_at = match &holder {
            Some(holder) if counts.taken_over_at.is_some() => {
                self.lease_end_if_missing(holder).await?
            }
            _ => None,
        };
        let start = not_before(start, taken_over_at);
        let steps = self.steps(run, now);
        let takes = self.time_to_end(steps, &counts, position, now);
        let prediction = self.measurements.predict(start, takes, now);
        self.measurements.keep_prediction(run, &prediction, now);
        Ok(Some(QueuePosition {
            place: QueuePlace {
                position: position.unwrap_or(1),
                end: self.queue_end(prediction, now),
            },
            holder,
        }))
    }

    /// Predicts when the queue will be empty, as if all runs in it were submissions. Returns `None` if it is empty now,
    /// if operators hold back any run, if a fault of ours has to be mended first, or if this process is paused and works
    /// on no run.
    pub async fn predict_queue_end(&self) -> Result<Option<QueueEnd>, StoreError> {
        if self.authority.is_paused() {
            return Ok(None);
        }
        let counts = self.load_counts().await?;
        let waiting = counts.turns.total();
        let holds = self.holds();
        let is_held = holds.count(&counts.due).held_by_operators() > 0
            || holds.needs_mending(Operation::Submit.steps().iter());
        if waiting + counts.at_work == 0 || is_held {
            return Ok(None);
        }
        let steps = RunSteps {
            all: Operation::Submit.steps(),
            done: &[],
            under_way: None,
        };
        let now = self.clock.now();
        let takes = self.time_to_end(steps, &counts, Some(waiting), now);
        let first = Operation::Submit.next_step(&[]);
        let start = first
            .and_then(|step| self.expected_step_start(step, None, Duration::ZERO, now))
            .unwrap_or(ContinuationTime::At(now));
        let start = not_before(start, counts.taken_over_at);
        let prediction = self.measurements.predict(start, takes, now);
        Ok(Some(self.queue_end(prediction, now)))
    }

    /// Returns the steps of a run and which of them are done. A step without an effect is stored as done only later. If
    /// this process calls a step of the run now, all steps before it are done.
    fn steps<'a>(&self, run: &'a Run, now: Timestamp) -> RunSteps<'a> {
        let all = run.operation().steps();
        let under_way = self.measurements.step_under_way(run.id);
        let called = under_way.and_then(|(called, since)| {
            let place = all.iter().position(|step| *step == called)?;
            Some((place, since))
        });
        match called {
            Some((place, since)) => RunSteps {
                all,
                done: all.get(..place).unwrap_or_default(),
                under_way: Some(Duration::try_from(now.duration_since(since)).unwrap_or_default()),
            },
            None => RunSteps {
                all,
                done: &run.done,
                under_way: None,
            },
        }
    }

    fn queue_end(&self, prediction: Prediction, now: Timestamp) -> QueueEnd {
        QueueEnd {
            prediction,
            median_prediction_error: self.measurements.median_prediction_error(now),
        }
    }

    /// Returns when a step can be called again if a breaker blocks it, or if no step has been answered for a while;
    /// `None` if it can be called now. `waited` is the time that the run has waited.
    fn expected_step_start(
        &self,
        step: Step,
        taxpayer: Option<TaxpayerId>,
        waited: Duration,
        now: Timestamp,
    ) -> Option<ContinuationTime> {
        let blocked = blocked_steps::expected_unblock_time(&self.authority, step, taxpayer, now);
        blocked.or_else(|| {
            let standstill =
                expected_standstill(self.measurements.time_since_last_answer(now), waited)?;
            Some(ContinuationTime::AfterOutage {
                earliest: now,
                expected: now.saturating_add(standstill).unwrap_or(Timestamp::MAX),
            })
        })
    }

    fn time_to_end(
        &self,
        steps: RunSteps<'_>,
        counts: &QueueCounts,
        position: Option<u64>,
        now: Timestamp,
    ) -> Duration {
        let limits = self.authority.call_limits();
        let backlog = Backlog {
            at_work: counts.at_work,
            position,
            processes: counts.processes,
            workers: self.workers,
        };
        self.measurements.read_step_times(|times| {
            times.time_to_end(steps, &backlog, now, |step| call_capacity(&limits, step))
        })
    }

    /// Returns the end of the lease if its holder is missing. No other replica takes the lane before.
    async fn lease_end_if_missing(
        &self,
        holder: &LaneHolder,
    ) -> Result<Option<Timestamp>, StoreError> {
        let replica = replicas::find(&self.store, &holder.owner).await?;
        let missing = replica.filter(|replica| replica.is_silent);
        Ok(missing.map(|_| holder.lease_until))
    }

    async fn load_counts(&self) -> Result<Arc<QueueCounts>, StoreError> {
        let mut cached_counts = self.cached_counts.lock().await;
        if let Some((at, counts)) = &*cached_counts
            && at.elapsed() < COUNTS_MAX_AGE
        {
            return Ok(Arc::clone(counts));
        }
        let groups = views::due_groups(&self.store, LaneKind::Run).await?;
        let mut due = views::sum_by_taxpayer(&groups);
        // The runs of paused taxpayers are not claimed, so no other run waits for them.
        for pause in self.paused.list().iter() {
            due.remove(&pause.taxpayer_id.0);
        }
        let owners = views::counts_by_owner(&self.store).await?;
        let held = owners.iter().filter(|owner| owner.held > 0);
        // A process that holds a lane of any kind counts, even if it works on no run now, as after an outage: it will
        // take runs soon.
        let names = held.clone().map(|owner| owner.owner.as_str());
        let processes: BTreeSet<&str> = names.collect();
        let at_work = held
            .filter(|owner| owner.kind == LaneKind::Run)
            .map(|owner| owner.held)
            .sum::<i64>();
        let counts = Arc::new(QueueCounts {
            turns: WaitingRuns {
                due,
                last_taxpayer: self.measurements.last_taxpayer.load(Ordering::Relaxed),
            },
            due: groups,
            at_work: u64::try_from(at_work).unwrap_or_default(),
            processes: u64::try_from(processes.len()).unwrap_or(u64::MAX),
            taken_over_at: replicas::last_lease_of_missing(&self.store, LaneKind::Run).await?,
        });
        *cached_counts = Some((Instant::now(), Arc::clone(&counts)));
        Ok(counts)
    }
}

/// Returns the start, moved to `earliest` if it is before.
fn not_before(start: ContinuationTime, earliest: Option<Timestamp>) -> ContinuationTime {
    let Some(limit) = earliest else {
        return start;
    };
    match start {
        ContinuationTime::At(at) => ContinuationTime::At(at.max(limit)),
        ContinuationTime::AfterOutage { earliest, expected } => ContinuationTime::AfterOutage {
            earliest: earliest.max(limit),
            expected: expected.max(limit),
        },
    }
}

fn call_capacity(limits: &[LimitView], step: Step) -> CallCapacity {
    let operation = blocked_steps::called_operation(step);
    let limit = limits.iter().find(|limit| limit.operation == operation);
    CallCapacity {
        limit: limit.map_or(1, |limit| limit.lasting_limit),
        answer_time: limit.and_then(|limit| limit.answer_time),
    }
}

/// Estimates how much longer the authority answers no step. A standstill is expected to last as long again as it has
/// lasted so far, but at most as long as this run has waited, because a process without runs gets no answers either.
/// Returns `None` if that is shorter than `STANDSTILL_MIN`.
fn expected_standstill(
    time_since_last_answer: Option<Duration>,
    waited: Duration,
) -> Option<Duration> {
    let standstill = time_since_last_answer.map_or(waited, |quiet| quiet.min(waited));
    (standstill >= STANDSTILL_MIN).then_some(standstill)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_of_a_missing_replica_starts_when_its_lease_ends() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let after_outage = |earliest, expected| ContinuationTime::AfterOutage {
            earliest: at(earliest),
            expected: at(expected),
        };
        for (start, lease_end, expected) in [
            (
                ContinuationTime::At(at(5)),
                None,
                ContinuationTime::At(at(5)),
            ),
            (
                ContinuationTime::At(at(5)),
                Some(at(20)),
                ContinuationTime::At(at(20)),
            ),
            (
                ContinuationTime::At(at(25)),
                Some(at(20)),
                ContinuationTime::At(at(25)),
            ),
            (after_outage(5, 30), Some(at(20)), after_outage(20, 30)),
        ] {
            assert_eq!(not_before(start, lease_end), expected, "{lease_end:?}");
        }
    }

    #[test]
    fn while_nothing_moves_a_run_is_expected_to_wait_as_long_again() {
        let seconds = Duration::from_secs;
        assert_eq!(
            expected_standstill(Some(seconds(90)), seconds(40)),
            Some(seconds(40)),
            "it came in the middle of it"
        );
        assert_eq!(
            expected_standstill(Some(seconds(25)), seconds(300)),
            Some(seconds(25))
        );
        assert_eq!(
            expected_standstill(None, seconds(120)),
            Some(seconds(120)),
            "no step has been answered yet"
        );
        assert_eq!(
            expected_standstill(Some(seconds(86_400)), seconds(0)),
            None,
            "after a quiet night"
        );
        assert_eq!(expected_standstill(Some(seconds(9)), seconds(9)), None);
    }
}
