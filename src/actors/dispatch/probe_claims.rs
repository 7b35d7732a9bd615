//! The probes of blocked steps that are due, and the times from which lanes are claimed for them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::store::lanes::probe_claim::DueProbe;

/// If a probe is still due this long after a lane was claimed for it, another lane is claimed: the first one may have
/// been unable to make the probe.
const CLAIM_EVERY: Duration = Duration::from_secs(1);
/// If no lane could make the probe, lanes are looked for again after this time. The search may read all waiting lanes.
const SEARCH_EVERY: Duration = Duration::from_secs(5);

/// A function that returns the probes that are due.
type ListDueProbes = Arc<dyn Fn() -> Vec<DueProbe> + Send + Sync>;

/// Lists the probes that are due, and remembers for which of them lanes were claimed.
#[derive(Clone)]
pub(super) struct ProbeClaims {
    list_due: ListDueProbes,
    /// The times from which lanes are claimed again.
    resume_at: Arc<Mutex<HashMap<ProbeKind, Instant>>>,
}

/// The probes that share one time: those of a step that all callers may make, and those that only some may make.
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
        Self::new(Arc::new(Vec::new))
    }
}

impl ProbeClaims {
    pub(super) fn new(list_due: ListDueProbes) -> Self {
        Self {
            list_due,
            resume_at: Arc::default(),
        }
    }

    pub(super) fn list_due(&self) -> Vec<DueProbe> {
        (self.list_due)()
    }

    /// Returns the due probes for which lanes may be claimed at this time.
    pub(super) fn list_claimable(&self, now: Instant) -> Vec<DueProbe> {
        let due = self.list_due();
        let resume_at = self.lock();
        let claimable = due.into_iter().filter(|probe| {
            let at = resume_at.get(&ProbeKind::from(probe));
            at.is_none_or(|at| *at <= now)
        });
        claimable.collect()
    }

    /// Records that lanes were looked for, and the steps of those that were found.
    pub(super) fn record_claims(
        &self,
        probes: &[DueProbe],
        found_steps: &HashSet<String>,
        now: Instant,
    ) {
        let mut resume_at = self.lock();
        for probe in probes {
            let pause = if found_steps.contains(probe.step) {
                CLAIM_EVERY
            } else {
                SEARCH_EVERY
            };
            resume_at.insert(ProbeKind::from(probe), now + pause);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProbeKind, Instant>> {
        self.resume_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
        let claims = ProbeClaims::new(Arc::new(move || due.clone()));
        let start = Instant::now();
        let all = claims.list_claimable(start);
        assert_eq!(all, [sign.clone(), send.clone(), some.clone()]);
        let found = HashSet::from(["sign".to_owned()]);
        claims.record_claims(&[sign.clone(), send.clone()], &found, start);
        for (after, claimable) in [
            (Duration::ZERO, vec![some.clone()]),
            (CLAIM_EVERY, vec![sign.clone(), some.clone()]),
            (SEARCH_EVERY, vec![sign, send, some]),
        ] {
            assert_eq!(claims.list_claimable(start + after), claimable, "{after:?}");
        }
    }
}
