//! Decides for which of the due probes a lane may be claimed now. After each search for lanes, the next search for the
//! same probe waits for a pause.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::store::lanes::probe_claim::DueProbe;

/// If a probe is still due this long after a lane was claimed for it, another lane is claimed: the first one may have
/// been unable to make the probe.
const CLAIM_PAUSE: Duration = Duration::from_secs(1);
/// If a search finds no lane for a probe, the next search starts after this time. It may read all waiting lanes.
const SEARCH_PAUSE: Duration = Duration::from_secs(5);

/// A function that returns the probes that are due.
type ListDueProbes = Arc<dyn Fn() -> Vec<DueProbe> + Send + Sync>;

/// The last time at which this process queued a lane whose next step was blocked, by step.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockedLaneTimes(Arc<Mutex<HashMap<&'static str, Instant>>>);

/// The due probes, and the last search for lanes for each kind of probe.
#[derive(Clone)]
pub(super) struct ProbeClaims {
    list_due: ListDueProbes,
    blocked_lane_times: BlockedLaneTimes,
    searches: Arc<Mutex<HashMap<ProbeKind, Search>>>,
}

/// The last search for lanes that make a probe.
#[derive(Debug, Clone, Copy)]
struct Search {
    at: Instant,
    has_found_lane: bool,
}

/// The probes that share one search: those of a step that all callers may make, and those that only some may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ProbeKind {
    step: &'static str,
    is_for_all: bool,
}

impl From<&DueProbe> for ProbeKind {
    fn from(probe: &DueProbe) -> Self {
        Self {
            step: probe.step,
            is_for_all: probe.taxpayers.is_none() && probe.except_integrators.is_empty(),
        }
    }
}

impl Default for ProbeClaims {
    fn default() -> Self {
        Self {
            list_due: Arc::new(Vec::new),
            blocked_lane_times: BlockedLaneTimes::default(),
            searches: Arc::default(),
        }
    }
}

impl BlockedLaneTimes {
    /// Records that a lane was queued whose next step is blocked.
    pub(super) fn record(&self, step: &'static str, now: Instant) {
        self.lock().insert(step, now);
    }

    /// True if a lane whose next step is this one was queued at or after the time `since`.
    fn has_lane_since(&self, step: &str, since: Instant) -> bool {
        self.lock().get(step).is_some_and(|at| *at >= since)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProbeClaims {
    pub(super) fn with_due_probes(self, list_due: ListDueProbes) -> Self {
        Self { list_due, ..self }
    }

    pub(super) fn with_blocked_lane_times(self, blocked_lane_times: BlockedLaneTimes) -> Self {
        Self {
            blocked_lane_times,
            ..self
        }
    }

    pub(super) fn list_due(&self) -> Vec<DueProbe> {
        (self.list_due)()
    }

    /// Returns the due probes for which lanes may be claimed at this time.
    pub(super) fn list_claimable(&self, now: Instant) -> Vec<DueProbe> {
        let due = self.list_due();
        let searches = self.lock();
        let claimable = due.into_iter().filter(|probe| {
            let kind = ProbeKind::from(probe);
            let search = searches.get(&kind);
            search.is_none_or(|search| search.at + self.pause_after(kind, *search) <= now)
        });
        claimable.collect()
    }

    /// Returns the pause between this search and the next. If this search found no lane and one was queued since, the
    /// next search starts at once, or after `CLAIM_PAUSE` if the queued lane may not be allowed to make the probe.
    fn pause_after(&self, kind: ProbeKind, search: Search) -> Duration {
        if search.has_found_lane {
            CLAIM_PAUSE
        } else if !self.blocked_lane_times.has_lane_since(kind.step, search.at) {
            SEARCH_PAUSE
        } else if kind.is_for_all {
            Duration::ZERO
        } else {
            CLAIM_PAUSE
        }
    }

    /// Records a search for lanes for these probes, with the steps of the lanes that it found.
    pub(super) fn record_claims(
        &self,
        probes: &[DueProbe],
        found_steps: &HashSet<String>,
        now: Instant,
    ) {
        let mut searches = self.lock();
        for probe in probes {
            let search = Search {
                at: now,
                has_found_lane: found_steps.contains(probe.step),
            };
            searches.insert(ProbeKind::from(probe), search);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProbeKind, Search>> {
        self.searches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(step: &'static str, taxpayers: Option<Vec<i64>>) -> DueProbe {
        DueProbe {
            step,
            taxpayers,
            except_taxpayers: Vec::new(),
            except_integrators: Vec::new(),
        }
    }

    #[test]
    fn a_probe_that_stays_due_is_claimed_for_again_after_a_pause() {
        let sign = probe("sign", None);
        let send = probe("send", None);
        let some = probe("sign", Some(vec![1]));
        let due = vec![sign.clone(), send.clone(), some.clone()];
        let claims = ProbeClaims::default().with_due_probes(Arc::new(move || due.clone()));
        let start = Instant::now();
        let all = claims.list_claimable(start);
        assert_eq!(all, [sign.clone(), send.clone(), some.clone()]);
        let found = HashSet::from(["sign".to_owned()]);
        claims.record_claims(&[sign.clone(), send.clone()], &found, start);
        for (after, claimable) in [
            (Duration::ZERO, vec![some.clone()]),
            (CLAIM_PAUSE, vec![sign.clone(), some.clone()]),
            (SEARCH_PAUSE, vec![sign, send, some]),
        ] {
            assert_eq!(claims.list_claimable(start + after), claimable, "{after:?}");
        }
    }

    #[test]
    fn a_lane_that_is_queued_after_a_search_without_result_is_looked_for_at_once() {
        let all = probe("sign", None);
        let some = probe("sign", Some(vec![1]));
        let start = Instant::now();
        let moment = Duration::from_millis(10);
        // The step and the time of the queued lane, the step for which the search found a lane, and the probes for
        // which lanes are claimed a moment and a second after the search.
        for (step, queued_at, found, at_once, after_a_second) in [
            ("sign", start + moment, None, vec![&all], vec![&all, &some]),
            ("sign", start, None, vec![&all], vec![&all, &some]),
            (
                "sign",
                start + moment,
                Some("sign"),
                vec![],
                vec![&all, &some],
            ),
            ("send", start + moment, None, vec![], vec![]),
        ] {
            let due = vec![all.clone(), some.clone()];
            let blocked_lane_times = BlockedLaneTimes::default();
            let claims = ProbeClaims::default()
                .with_due_probes(Arc::new(move || due.clone()))
                .with_blocked_lane_times(blocked_lane_times.clone());
            let probes = claims.list_claimable(start);
            blocked_lane_times.record(step, queued_at);
            let found: HashSet<_> = found.into_iter().map(str::to_owned).collect();
            claims.record_claims(&probes, &found, start);
            for (after, expected) in [(moment, at_once), (CLAIM_PAUSE, after_a_second)] {
                let claimable = claims.list_claimable(start + after);
                let claimable: Vec<_> = claimable.iter().collect();
                assert_eq!(claimable, expected, "{step} {found:?} {after:?}");
            }
        }
    }
}
