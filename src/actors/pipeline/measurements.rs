//! Measures how fast this process gets runs through their steps, and how far its predictions were off.

use std::collections::HashMap;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::metrics::histogram::Histogram;
use timing::recent_count::RecentCount;

use crate::domain::kernel::ids::RunId;
use crate::domain::pipeline::capacity::StepTimes;
use crate::domain::pipeline::prediction::{
    ContinuationTime, MedianPredictionError, PastPredictions, Prediction,
};
use crate::domain::pipeline::{Run, RunState, Step};
use crate::store::lanes::claim::ROUND_START;

/// The measurements of this process. The workers of runs write them, and the queue estimates read them.
pub struct RunMeasurements {
    measured: Mutex<MeasuredState>,
    /// The errors of predictions, as a fraction of the time that the run really took.
    pub prediction_errors: Histogram,
    /// Counts the runs that ended with the authority's answer: they succeeded or were refused.
    pub recent_ends: RecentCount,
    /// The id of the taxpayer whose run was claimed last.
    pub last_taxpayer: Arc<AtomicI64>,
}

#[derive(Default)]
struct MeasuredState {
    times: StepTimes,
    past: PastPredictions,
    /// The time at which a step was last answered.
    answered_at: Option<Timestamp>,
    /// For each run whose step this process calls now: the step and the start of its call.
    under_way: HashMap<RunId, (Step, Timestamp)>,
}

/// The step of a run that counts as under way until this value is dropped.
pub struct StepUnderWay<'a> {
    measurements: &'a RunMeasurements,
    run: RunId,
}

impl StepUnderWay<'_> {
    /// Ends the step. If its call failed, the prediction for the run is not judged, because it assumed that the
    /// authority answers.
    pub fn end(self, has_failed: bool) {
        if has_failed {
            self.measurements.lock().past.forget(self.run);
        }
    }
}

impl Drop for StepUnderWay<'_> {
    fn drop(&mut self) {
        self.measurements.lock().under_way.remove(&self.run);
    }
}

impl Default for RunMeasurements {
    fn default() -> Self {
        let errors = [0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0];
        Self {
            measured: Mutex::default(),
            prediction_errors: Histogram::new(errors),
            recent_ends: RecentCount::default(),
            last_taxpayer: Arc::new(AtomicI64::new(ROUND_START)),
        }
    }
}

impl RunMeasurements {
    /// Records that a step of the run begins now.
    pub fn begin_step(&self, run: RunId, step: Step, now: Timestamp) -> StepUnderWay<'_> {
        self.lock().under_way.insert(run, (step, now));
        StepUnderWay {
            measurements: self,
            run,
        }
    }

    /// Returns the step of the run that this process calls now, and the start of the call.
    pub fn step_under_way(&self, run: RunId) -> Option<(Step, Timestamp)> {
        self.lock().under_way.get(&run).copied()
    }

    /// Records how long an answered step took, up to the start of the next step.
    pub fn record_step(&self, step: Step, took: Duration, now: Timestamp) {
        let mut measured = self.lock();
        measured.times.record(step, took, now);
        measured.answered_at = Some(now);
    }

    /// Records that a call of this step got no slot, because our limit of calls to the authority was used up.
    pub fn record_missing_slot(&self, step: Step, now: Timestamp) {
        self.lock().times.record_abandoned_wait(step, now);
    }

    /// Counts a run that ended with the authority's answer, and compares its end with the prediction. Forgets the
    /// prediction of a run that stopped for another reason.
    pub fn record_run_end(&self, run: &Run, now: Timestamp) {
        let past = &mut self.lock().past;
        if !matches!(run.state(), RunState::Succeeded | RunState::Refused) {
            return past.forget(run.id);
        }
        self.recent_ends.increment();
        if let Some(thousandths) = past.judge_ended_run(run.id, now) {
            // A ratio in thousandths becomes a float by way of a duration: 1,500 ms are 1.5 s.
            let error = Duration::from_millis(thousandths).as_secs_f64();
            self.prediction_errors.observe(error);
        }
    }

    /// Calls `read` with the measured times of the steps, and returns its result.
    pub fn read_step_times<T>(&self, read: impl FnOnce(&StepTimes) -> T) -> T {
        read(&self.lock().times)
    }

    /// Predicts the end of a run whose next step can be called at `start`, and which needs the time `takes` from then
    /// on.
    pub fn predict(&self, start: ContinuationTime, takes: Duration, now: Timestamp) -> Prediction {
        self.lock().past.predict(start, takes, now)
    }

    /// Keeps a prediction, to compare it with the end of the run.
    pub fn keep_prediction(&self, run: &Run, prediction: &Prediction, now: Timestamp) {
        self.lock().past.remember(run.id, prediction, now);
    }

    /// Returns the median error of recent predictions; `None` if no prediction was compared with the end of its run
    /// lately.
    pub fn median_prediction_error(&self, now: Timestamp) -> Option<MedianPredictionError> {
        self.lock().past.median_prediction_error(now)
    }

    /// Returns the time since a step was last answered; `None` if no step was answered yet.
    pub fn time_since_last_answer(&self, now: Timestamp) -> Option<Duration> {
        let answered_at = self.lock().answered_at?;
        Some(Duration::try_from(now.duration_since(answered_at)).unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, MeasuredState> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
