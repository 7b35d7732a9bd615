//! The capacity of the pipeline: the time in which a queue of runs is processed.
//!
//! It is computed from the times of recent calls (Little's law). The number of runs that ended would not show it: after
//! a quiet hour that is the demand. If W workers need T seconds for each run, including all waits, then W / T runs end
//! in a second. But T includes the waits for a free call slot only once all workers are busy. Before that, a second
//! bound counts as well: if L calls of a step are allowed at a time and a call takes A seconds, then L / A calls end in
//! a second. The lower bound is used.
//!
//! T does not include waits that were given up because no slot became free. If there were such waits, the slots of the
//! step were never idle, so its rate is simply the number of its recent answers in a second.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use crate::domain::pipeline::Step;

/// The maximum number of calls and of answers of each step that are kept to compute its mean time and its rate.
const TIMES_MAX: usize = 64;
/// If the mean time of this many newest calls differs much from that of the calls before them, the older ones are
/// dropped.
const NEWEST: usize = 12;
/// If a call of a step gave up waiting for a slot within this time, the rate of the step is computed from its answers
/// within this time.
const RATE_WINDOW: Duration = Duration::from_mins(1);
/// A call in progress is expected to take at least a further quarter of its usual time or, once it has taken longer
/// than usual, of the time that it has taken so far. A quarter is right for calls whose times are spread evenly between
/// half and one and a half of the usual time.
const LATE_SHARE: u32 = 4;
/// The time that a step is assumed to take until a call of any step has been answered.
const STEP_TIME_DEFAULT: Duration = Duration::from_millis(500);

/// The times that the newest calls of each step took in this process. A time lasts from the start of a call to the
/// start of the next call of the same run. So it includes the wait for a slot and the recording of the outcome.
#[derive(Debug, Default)]
pub struct StepTimes([CallTimes; Step::ALL.len()]);

#[derive(Debug, Default)]
struct CallTimes {
    took: VecDeque<Duration>,
    /// The times at which the newest calls were answered.
    answered_at: VecDeque<Timestamp>,
    /// The time at which a call last gave up waiting for a slot.
    gave_up_at: Option<Timestamp>,
}

/// The limit and the speed of the calls of one step, in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCapacity {
    /// The number of concurrent calls that are allowed.
    pub limit: u32,
    /// The time that the authority takes to answer; `None` before the first answer.
    pub answer_time: Option<Duration>,
}

/// The runs that end before a run or together with it, and the workers for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// The number of runs that workers are processing.
    pub at_work: u64,
    /// The position of the run among those that wait for a worker; `None` if a worker has taken it.
    pub position: Option<u64>,
    /// The number of processes.
    pub processes: u64,
    /// The number of workers of each process. Each works on one run at a time.
    pub workers: u64,
}

/// The steps of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunSteps<'a> {
    pub all: &'a [Step],
    pub done: &'a [Step],
    /// The time since this process started the call of the first step that is not done; `None` if it is not calling it.
    pub under_way: Option<Duration>,
}

impl StepTimes {
    /// Records the time of a call that was answered at `now`. Drops older times if the newest ones differ much from
    /// them.
    pub fn record(&mut self, step: Step, took: Duration, now: Timestamp) {
        let of_step = &mut self.0[step as usize];
        push_newest(&mut of_step.answered_at, now);
        let times = &mut of_step.took;
        push_newest(times, took);
        let older = times.len().saturating_sub(NEWEST);
        if older == 0 {
            return;
        }
        let before = mean_time(times.iter().take(older));
        let newest = mean_time(times.iter().skip(older));
        // The newest times differ much if they are, on average, more than one and a half times as long as the older
        // ones, or less than two thirds as long.
        if newest * 2 > before * 3 || newest * 3 < before * 2 {
            times.drain(..older);
        }
    }

    /// Records that a call gave up waiting for a slot.
    pub fn record_abandoned_wait(&mut self, step: Step, now: Timestamp) {
        self.0[step as usize].gave_up_at = Some(now);
    }

    /// Returns the mean time of the calls of a step. For a step without calls it is the mean of the other steps.
    fn mean_time(&self, step: Step) -> Duration {
        let own = &self.0[step as usize].took;
        if !own.is_empty() {
            return mean_time(own.iter());
        }
        let all = self.0.iter().map(|of_step| &of_step.took);
        let known: Vec<Duration> = all
            .filter(|times| !times.is_empty())
            .map(|times| mean_time(times.iter()))
            .collect();
        if known.is_empty() {
            STEP_TIME_DEFAULT
        } else {
            mean_time(known.iter())
        }
    }

    /// Returns the time from `now` to the expected end of the run. Assumes that the speed of the authority, the limits
    /// of calls and the number of workers stay as they are. `capacity` returns, for a step, how many calls are allowed
    /// at a time and how long the authority takes to answer one.
    pub fn time_to_end(
        &self,
        steps: RunSteps<'_>,
        backlog: &Backlog,
        now: Timestamp,
        capacity: impl Fn(Step) -> CallCapacity,
    ) -> Duration {
        let crowded = steps
            .all
            .iter()
            .filter_map(|step| self.0[*step as usize].answer_interval(now));
        let crowded = crowded.max().unwrap_or_default() / to_divisor(backlog.processes);
        let per_run = self
            .time_per_run(steps.all, backlog, &capacity)
            .max(crowded);
        let remaining: Vec<Step> = steps
            .all
            .iter()
            .copied()
            .filter(|step| !steps.done.contains(step))
            .collect();
        let queued = match (backlog.position, steps.under_way) {
            (Some(position), _) => multiply(per_run, backlog.at_work.saturating_add(position)),
            (None, Some(under_way)) => self.time_for_steps(&remaining, under_way),
            // The run is expected to end together with the other runs at work. Only its remaining steps count.
            (None, None) => {
                multiply(per_run, backlog.at_work) * to_divisor(count_items(&remaining))
                    / to_divisor(count_items(steps.all))
            }
        };
        let is_called = backlog.position.is_none() && steps.under_way.is_some();
        let alone: Duration = remaining
            .iter()
            .skip(usize::from(is_called))
            .map(|step| {
                let answer_time = capacity(*step).answer_time;
                answer_time.unwrap_or_else(|| self.mean_time(*step))
            })
            .sum();
        queued.max(alone)
    }

    /// Returns the expected time until the last of these steps ends. The call of the first step has already taken
    /// `under_way`.
    fn time_for_steps(&self, steps: &[Step], under_way: Duration) -> Duration {
        let Some((first, further)) = steps.split_first() else {
            return Duration::ZERO;
        };
        let usual = self.mean_time(*first);
        let rest = usual.saturating_sub(under_way);
        let further: Duration = further.iter().map(|step| self.mean_time(*step)).sum();
        rest.max(usual.max(under_way) / LATE_SHARE) + further
    }

    /// Returns the mean time between the ends of two runs, as long as there are enough runs to process.
    fn time_per_run(
        &self,
        steps: &[Step],
        backlog: &Backlog,
        capacity: impl Fn(Step) -> CallCapacity,
    ) -> Duration {
        let processes = to_divisor(backlog.processes);
        let through: Duration = steps.iter().map(|step| self.mean_time(*step)).sum();
        let by_workers = through / to_divisor(backlog.workers).saturating_mul(processes);
        if backlog.has_busy_workers() {
            return by_workers;
        }
        let slowest_call = steps.iter().map(|step| {
            let CallCapacity { limit, answer_time } = capacity(*step);
            answer_time.unwrap_or_default() / limit.max(1)
        });
        by_workers.max(slowest_call.max().unwrap_or_default() / processes)
    }
}

impl CallTimes {
    /// Returns the mean time between two answers; `None` unless a call gave up waiting for a slot within `RATE_WINDOW`.
    fn answer_interval(&self, now: Timestamp) -> Option<Duration> {
        self.gave_up_at.filter(|at| is_recent(*at, now))?;
        let mut answers = self.answered_at.iter().filter(|at| is_recent(**at, now));
        let oldest = *answers.next()?;
        let number = answers.count() + 1;
        // If the list is full, answers within the window may have been dropped. Then the time since the oldest kept one
        // counts.
        let within = if number == TIMES_MAX {
            Duration::try_from(now.duration_since(oldest)).unwrap_or(RATE_WINDOW)
        } else {
            RATE_WINDOW
        };
        Some(within / to_divisor(u64::try_from(number).unwrap_or(u64::MAX)))
    }
}

/// Adds the newest entry, and drops the oldest one if there are more than `TIMES_MAX`.
fn push_newest<T>(newest: &mut VecDeque<T>, entry: T) {
    newest.push_back(entry);
    if newest.len() > TIMES_MAX {
        newest.pop_front();
    }
}

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    at.saturating_add(RATE_WINDOW).is_ok_and(|end| end > now)
}

impl Backlog {
    /// True if at least seven eighths of the workers have a run. The remaining workers may be reserved for taxpayers
    /// other than the busiest.
    fn has_busy_workers(&self) -> bool {
        let workers = self.workers.saturating_mul(self.processes.max(1));
        self.at_work.saturating_mul(8) >= workers.saturating_mul(7)
    }
}

fn mean_time<'a>(times: impl ExactSizeIterator<Item = &'a Duration>) -> Duration {
    let number = to_divisor(u64::try_from(times.len()).unwrap_or(u64::MAX));
    times.sum::<Duration>() / number
}

fn count_items<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}

fn to_divisor(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX).max(1)
}

/// Multiplies without overflow.
fn multiply(duration: Duration, factor: u64) -> Duration {
    duration.saturating_mul(u32::try_from(factor).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [Step; 4] = [Step::IrnCheck, Step::DataCheck, Step::Sign, Step::Confirm];
    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const WAITING: Backlog = Backlog {
        at_work: 50,
        position: Some(150),
        processes: 1,
        workers: 50,
    };

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The times after each step took this long so often.
    fn measured(took: Duration, count: usize) -> StepTimes {
        let mut times = StepTimes::default();
        for step in STEPS {
            (0..count).for_each(|_| times.record(step, took, NOW));
        }
        times
    }

    fn time_to_end(times: &StepTimes, done: usize, backlog: Backlog, limit: u32) -> Duration {
        let steps = RunSteps {
            all: &STEPS,
            done: &STEPS[..done],
            under_way: None,
        };
        times.time_to_end(steps, &backlog, NOW, |_| CallCapacity {
            limit,
            answer_time: Some(ms(100)),
        })
    }

    #[test]
    fn workers_that_need_four_steps_for_a_run_end_one_each_in_that_time() {
        let times = measured(ms(250), 20);
        assert_eq!(time_to_end(&times, 0, WAITING, 64), ms(200 * 1_000 / 50));
        let replicas = Backlog {
            processes: 2,
            ..WAITING
        };
        assert_eq!(time_to_end(&times, 0, replicas, 64), ms(2_000));
    }

    #[test]
    fn the_limit_of_calls_is_the_capacity_until_a_queue_was_measured() {
        let times = measured(ms(100), 20);
        let burst = Backlog {
            at_work: 0,
            position: Some(200),
            ..WAITING
        };
        assert_eq!(time_to_end(&times, 0, burst, 64), ms(200 * 400 / 50));
        assert_eq!(
            time_to_end(&times, 0, burst, 4),
            ms(200 * 100 / 4),
            "four calls of a tenth of a second at a time"
        );
        assert_eq!(
            time_to_end(&times, 0, WAITING, 4),
            ms(200 * 400 / 50),
            "then the times contain the waits"
        );
    }

    #[test]
    fn the_answers_of_a_minute_count_while_calls_give_up_waiting() {
        let mut times = StepTimes::default();
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        for second in 0..120 {
            for step in STEPS {
                times.record(step, ms(250), at(second));
            }
        }
        let now = at(120);
        let takes = |times: &StepTimes, now| {
            let steps = RunSteps {
                all: &STEPS,
                done: &[],
                under_way: None,
            };
            times.time_to_end(steps, &WAITING, now, |_| CallCapacity {
                limit: 64,
                answer_time: Some(ms(100)),
            })
        };
        assert_eq!(
            takes(&times, now),
            ms(200 * 1_000 / 50),
            "nobody waits for a slot"
        );
        times.record_abandoned_wait(Step::IrnCheck, at(119));
        let in_crowd = takes(&times, now);
        assert!(
            (ms(200_000)..ms(207_000)).contains(&in_crowd),
            "one a second, not fifty: {in_crowd:?}"
        );
        for _ in 0..1_000 {
            times.record(Step::IrnCheck, ms(250), now);
        }
        assert_eq!(
            times.0[Step::IrnCheck as usize].answered_at.len(),
            TIMES_MAX
        );
        assert!(takes(&times, at(121)) < ms(4_100), "64 within a second");
        let set_back = takes(&times, at(60));
        assert!(
            set_back < ms(200_000),
            "a clock that was set back: {set_back:?}"
        );
        assert_eq!(
            takes(&times, at(179)),
            ms(200 * 1_000 / 50),
            "that was long ago"
        );
    }

    #[test]
    fn a_run_takes_at_least_as_long_as_its_own_calls() {
        let times = measured(ms(100), 20);
        let alone = Backlog {
            at_work: 0,
            position: Some(1),
            ..WAITING
        };
        assert_eq!(time_to_end(&times, 0, alone, 64), ms(400));
        assert_eq!(time_to_end(&times, 3, alone, 64), ms(100));
    }

    #[test]
    fn a_run_at_work_needs_the_rest_of_a_round() {
        let times = measured(ms(250), 20);
        let at_work = Backlog {
            position: None,
            ..WAITING
        };
        let remaining = [0, 1, 2, 3].map(|done| time_to_end(&times, done, at_work, 64));
        assert_eq!(remaining, [ms(1_000), ms(750), ms(500), ms(250)]);
    }

    #[test]
    fn a_run_whose_step_is_under_way_needs_the_rest_of_its_time() {
        let times = measured(ms(250), 20);
        let at_work = Backlog {
            position: None,
            ..WAITING
        };
        let takes = |done, under_way| {
            let steps = RunSteps {
                all: &STEPS,
                done: &STEPS[..done],
                under_way: Some(ms(under_way)),
            };
            times.time_to_end(steps, &at_work, NOW, |_| CallCapacity {
                limit: 64,
                answer_time: Some(ms(10)),
            })
        };
        assert_eq!(takes(0, 0), ms(1_000));
        assert_eq!(takes(0, 150), ms(850));
        assert_eq!(takes(2, 150), ms(350));
        assert_eq!(takes(3, 200), ms(250) / LATE_SHARE, "a quarter of it");
        assert_eq!(takes(3, 60_000), ms(15_000), "it is late");
    }

    #[test]
    fn a_dozen_calls_that_differ_much_replace_the_old_ones() {
        let mut times = measured(ms(100), TIMES_MAX);
        for _ in 0..NEWEST - 1 {
            times.record(Step::Sign, ms(125), NOW);
        }
        assert!(times.mean_time(Step::Sign) < ms(110), "a little slower");
        let mut times = measured(ms(100), TIMES_MAX);
        for _ in 0..NEWEST {
            times.record(Step::Sign, ms(5_000), NOW);
        }
        assert_eq!(times.mean_time(Step::Sign), ms(5_000));
        for _ in 0..NEWEST {
            times.record(Step::Sign, ms(100), NOW);
        }
        assert_eq!(times.mean_time(Step::Sign), ms(100), "and back");
    }

    #[test]
    fn a_step_without_calls_is_taken_to_be_like_the_others() {
        let mut times = StepTimes::default();
        assert_eq!(times.mean_time(Step::Sign), STEP_TIME_DEFAULT);
        times.record(Step::Confirm, ms(100), NOW);
        times.record(Step::IrnCheck, ms(300), NOW);
        assert_eq!(times.mean_time(Step::Sign), ms(200));
    }
}
