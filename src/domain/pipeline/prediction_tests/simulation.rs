//! A process, its queue and the authority in virtual time. The limits of concurrent calls are those of the service, the
//! workers take runs by turns, and a breaker opens and probes in an outage.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use authority_client::testing::{AdaptiveLimit, CallStart, LoadSignal};
use jiff::Timestamp;

use super::breaker::Breaker;
use super::plot;
use super::schedule::{Event, Schedule};
use crate::domain::kernel::ids::RunId;
use crate::domain::pipeline::capacity::{Backlog, CallCapacity, RunSteps, StepTimes};
use crate::domain::pipeline::prediction::{ContinuationTime, PastPredictions, Prediction};
use crate::domain::pipeline::run_order::WaitingRuns;
use crate::domain::pipeline::{Operation, Step};

/// Of 64 workers of a process, those that one integrator may have.
const WORKERS: u64 = 62;
const CALLS_MAX: u32 = 64;
const TAXPAYERS: u64 = 100;
const SECOND: u64 = 1_000_000;
const SAMPLE_EVERY: u64 = 5 * SECOND;
/// A call that fails in the outage fails after this time.
const FAILS_AFTER: u64 = 20_000;
/// A call gives up waiting for a slot after this time.
const WAIT_MAX: u64 = 30 * SECOND;

/// An authority, and the load on it. Times are in microseconds since the start.
pub(super) struct Case {
    /// The second until which there is little load.
    pub(super) quiet_s: u64,
    /// When runs arrive, in microseconds.
    pub(super) arrivals: Vec<u64>,
    /// The mean time that a call is served, at a time.
    pub(super) service_time: fn(u64) -> u64,
    /// The number of calls that are served at a time. Further ones wait.
    pub(super) at_once: usize,
    /// The seconds in which each call fails.
    pub(super) outage: std::ops::Range<u64>,
}

struct SimulatedRun {
    taxpayer: i64,
    done: usize,
    call: Option<(CallStart, u64)>,
    /// When the present step began to wait for its slot.
    step_began: u64,
    ended: Option<u64>,
}

struct SimulatedCall {
    limit: AdaptiveLimit,
    waiting: VecDeque<usize>,
    answer_time: Option<Duration>,
}

pub(super) struct Simulation {
    case: Case,
    now: u64,
    schedule: Schedule,
    random: u64,
    runs: Vec<SimulatedRun>,
    due: BTreeMap<i64, VecDeque<usize>>,
    last_taxpayer: i64,
    at_work: Vec<usize>,
    calls: Vec<SimulatedCall>,
    served: usize,
    at_authority: VecDeque<usize>,
    breaker: Breaker,
    times: StepTimes,
    past: PastPredictions,
    samples: Vec<(usize, u64, Prediction)>,
}

fn steps() -> &'static [Step] {
    Operation::Submit.steps()
}

fn moment(micros: u64) -> Timestamp {
    Timestamp::from_microsecond(1_800_000_000_000_000 + i64::try_from(micros).unwrap()).unwrap()
}

fn run_id(run: usize) -> RunId {
    RunId::from_u128(run as u128)
}

impl Simulation {
    /// Runs the case to its end. Returns the predictions, which are asked for every five seconds for the last run in
    /// the queue, from the end of the quiet spell on.
    pub(super) fn run(case: Case) -> Vec<plot::Prediction> {
        let calls = steps().iter().map(|_| SimulatedCall {
            limit: AdaptiveLimit::new(CALLS_MAX),
            waiting: VecDeque::new(),
            answer_time: None,
        });
        let mut simulation = Self {
            now: 0,
            schedule: Schedule::default(),
            random: 0x9E37_79B9_7F4A_7C15,
            runs: Vec::new(),
            due: BTreeMap::new(),
            last_taxpayer: 0,
            at_work: Vec::new(),
            calls: calls.collect(),
            served: 0,
            at_authority: VecDeque::new(),
            breaker: Breaker::default(),
            times: StepTimes::default(),
            past: PastPredictions::default(),
            samples: Vec::new(),
            case,
        };
        for at in simulation.case.arrivals.clone() {
            simulation.schedule.plan(at, Event::Arrive);
        }
        simulation
            .schedule
            .plan(simulation.case.quiet_s * SECOND + 1, Event::Sample);
        while let Some((at, event)) = simulation.schedule.pop() {
            simulation.now = at;
            simulation.handle(event);
            simulation.claim();
        }
        simulation.finish()
    }

    fn finish(self) -> Vec<plot::Prediction> {
        let begun = moment(self.case.quiet_s * SECOND);
        let seconds = |at: Timestamp| at.duration_since(begun).as_secs_f64();
        let samples = self
            .samples
            .iter()
            .map(|(run, at, prediction)| plot::Prediction {
                made: seconds(moment(*at)),
                predicted: seconds(prediction.expected),
                earliest: seconds(prediction.earliest),
                latest: prediction.latest.map(seconds),
                real: seconds(moment(self.runs[*run].ended.unwrap())),
            });
        samples.collect()
    }

    /// Returns a number below `end`.
    fn draw(&mut self, end: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % end
    }

    fn is_out(&self) -> bool {
        self.case.outage.contains(&(self.now / SECOND))
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive => {
                let taxpayer = i64::try_from(self.draw(TAXPAYERS)).unwrap() + 1;
                self.runs.push(SimulatedRun {
                    taxpayer,
                    done: 0,
                    call: None,
                    step_began: self.now,
                    ended: None,
                });
                let run = self.runs.len() - 1;
                self.due.entry(taxpayer).or_default().push_back(run);
            }
            Event::Answer { run } => self.answer(run),
            Event::Fail { run } => self.fail(run),
            Event::GiveUp { run } => self.give_up(run),
            // The next call is the probe.
            Event::Probe => {}
            Event::Sample => self.sample(),
        }
    }

    /// Gives free workers their runs. While the breaker is open, only the probe is made.
    fn claim(&mut self) {
        while self.at_work.len() < usize::try_from(WORKERS).unwrap() {
            if self.breaker.is_blocking(self.now) {
                return;
            }
            let next = self.due.range(self.last_taxpayer + 1..).next();
            let first = self.due.iter().next();
            let Some(taxpayer) = next.or(first).map(|(id, _)| *id) else {
                return;
            };
            let queue = self.due.get_mut(&taxpayer).unwrap();
            let run = queue.pop_front().unwrap();
            if queue.is_empty() {
                self.due.remove(&taxpayer);
            }
            self.last_taxpayer = taxpayer;
            self.at_work.push(run);
            self.runs[run].step_began = self.now;
            self.breaker.record_call(self.now);
            self.enter(run);
        }
    }

    /// Makes the next call of a run, or queues it for a slot.
    fn enter(&mut self, run: usize) {
        let call = &mut self.calls[self.runs[run].done];
        if call.limit.in_flight() >= call.limit.capacity() {
            call.waiting.push_back(run);
            return self
                .schedule
                .plan(self.now + WAIT_MAX, Event::GiveUp { run });
        }
        let start = call.limit.start();
        self.runs[run].call = Some((start, self.now));
        if self.is_out() {
            return self
                .schedule
                .plan(self.now + FAILS_AFTER, Event::Fail { run });
        }
        self.at_authority.push_back(run);
        self.serve();
    }

    /// Lets the authority begin what it has room for. A call takes between half and one and a half times the mean.
    fn serve(&mut self) {
        while self.served < self.case.at_once {
            let Some(run) = self.at_authority.pop_front() else {
                return;
            };
            self.served += 1;
            let mean = (self.case.service_time)(self.now);
            let takes = mean / 2 + self.draw(mean);
            self.schedule.plan(self.now + takes, Event::Answer { run });
        }
    }

    fn answer(&mut self, run: usize) {
        self.served -= 1;
        self.serve();
        let (start, began) = self.runs[run].call.take().unwrap();
        let done = self.runs[run].done;
        let took = Duration::from_micros(self.now - began);
        let call = &mut self.calls[done];
        call.limit
            .settle(start, LoadSignal::Succeeded(took), moment(self.now));
        let needs_measurement = call.limit.needs_measurement();
        call.answer_time = Some(call.answer_time.map_or(took, |mean| (mean * 7 + took) / 8));
        if needs_measurement {
            for call in &mut self.calls {
                call.limit.begin_measurement();
            }
        }
        self.times.record(
            steps()[done],
            Duration::from_micros(self.now - self.runs[run].step_began),
            moment(self.now),
        );
        self.breaker.record_answer();
        self.runs[run].done += 1;
        self.runs[run].step_began = self.now;
        if self.runs[run].done == steps().len() {
            self.runs[run].ended = Some(self.now);
            self.at_work.retain(|other| *other != run);
            self.past.judge_ended_run(run_id(run), moment(self.now));
        } else {
            self.enter(run);
        }
        self.serve_waiting(done);
    }

    fn serve_waiting(&mut self, step: usize) {
        while self.calls[step].limit.in_flight() < self.calls[step].limit.capacity() {
            let Some(next) = self.calls[step].waiting.pop_front() else {
                return;
            };
            self.enter(next);
        }
    }

    /// A failed run goes back to the front of its taxpayer's queue. Enough failures open the breaker.
    fn fail(&mut self, run: usize) {
        let (start, _) = self.runs[run].call.take().unwrap();
        let done = self.runs[run].done;
        self.calls[done]
            .limit
            .settle(start, LoadSignal::Overloaded, moment(self.now));
        self.put_back(run);
        if self.breaker.record_failure(self.now) {
            for step in 0..steps().len() {
                for waiting in std::mem::take(&mut self.calls[step].waiting) {
                    self.put_back(waiting);
                }
            }
        }
        if self.breaker.open_since.is_some() {
            self.schedule.plan(self.breaker.next_probe, Event::Probe);
        }
        self.serve_waiting(done);
    }

    /// A run that still waits for its slot goes back to the front of its taxpayer's queue.
    fn give_up(&mut self, run: usize) {
        let SimulatedRun {
            done, step_began, ..
        } = self.runs[run];
        // A run that has ended is at no call.
        let Some(call) = self.calls.get_mut(done) else {
            return;
        };
        let place = call.waiting.iter().position(|other| *other == run);
        if let Some(place) = place.filter(|_| self.now - step_began >= WAIT_MAX) {
            call.waiting.remove(place);
            self.times
                .record_abandoned_wait(steps()[done], moment(self.now));
            self.put_back(run);
        }
    }

    fn put_back(&mut self, run: usize) {
        self.at_work.retain(|other| *other != run);
        let taxpayer = self.runs[run].taxpayer;
        self.due.entry(taxpayer).or_default().push_front(run);
    }

    fn sample(&mut self) {
        if let Some((run, position)) = self.last_run() {
            let prediction = self.predict(run, position);
            self.past
                .remember(run_id(run), &prediction, moment(self.now));
            self.samples.push((run, self.now, prediction));
        }
        if !self.schedule.is_empty() {
            self.schedule.plan(self.now + SAMPLE_EVERY, Event::Sample);
        }
    }

    /// Returns the last run in the queue with its position, else the run that a worker has had for the shortest time.
    fn last_run(&self) -> Option<(usize, Option<u64>)> {
        let turns = WaitingRuns {
            due: self
                .due
                .iter()
                .map(|(taxpayer, runs)| (*taxpayer, runs.len() as u64))
                .collect(),
            last_taxpayer: self.last_taxpayer,
        };
        let last_of_each = self.due.iter().map(|(taxpayer, runs)| {
            let position = turns.position(*taxpayer, runs.len() as u64 - 1);
            (position, *runs.back().unwrap())
        });
        last_of_each
            .max()
            .map(|(position, run)| (run, Some(position)))
            .or_else(|| Some((*self.at_work.last()?, None)))
    }

    fn predict(&self, run: usize, position: Option<u64>) -> Prediction {
        let backlog = Backlog {
            at_work: self.at_work.len() as u64,
            position,
            processes: 1,
            workers: WORKERS,
        };
        let run_steps = RunSteps {
            all: steps(),
            done: &steps()[..self.runs[run].done],
            under_way: Some(Duration::from_micros(self.now - self.runs[run].step_began)),
        };
        let takes = self
            .times
            .time_to_end(run_steps, &backlog, moment(self.now), |step| {
                let at = steps().iter().position(|other| *other == step).unwrap();
                CallCapacity {
                    limit: self.calls[at].limit.bound(),
                    answer_time: self.calls[at].answer_time,
                }
            });
        let start = match self.breaker.open_since {
            None => ContinuationTime::At(moment(self.now)),
            Some(since) => {
                let probe = self.breaker.next_probe.max(self.now);
                ContinuationTime::AfterOutage {
                    earliest: moment(probe),
                    expected: moment(probe.max(2 * self.now - since)),
                }
            }
        };
        self.past.predict(start, takes, moment(self.now))
    }
}
