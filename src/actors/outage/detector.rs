//! Derives outages from what this process observes of the authority. The detector first checks without a lock whether
//! an observation changes the stored outage, because most observations change nothing. If it does, the detector locks
//! the lane, reads the outage again and applies the observation to that current state.

use std::time::Duration;

use authority_client::{Authority, BreakerView, CauseKind};
use database::StoreError;
use jiff::SignedDuration;
use timing::clock::{self, SharedClock};

use crate::domain::outage::{Observation, OperationCalls, Outage};
use crate::store::Store;
use crate::store::lanes::{self, IfLocked, LaneKind, LaneName};
use crate::store::operations::notices;
use crate::store::operations::outages::{self, OutageEvent};

/// The key of the lane that writers of outages lock. It is never due.
const LANE: &str = "authority";

/// The interval at which the breakers are observed. Breakers that open within one interval are reported together.
pub const OBSERVE_EVERY: Duration = Duration::from_secs(1);

/// Records the outages that this process observes.
#[derive(Clone)]
pub struct OutageDetector {
    pub store: Store,
    pub clock: SharedClock,
    /// An outage is over when no call has failed for this long (`authority.outage_clear_after_s`).
    pub quiet: SignedDuration,
}

impl OutageDetector {
    /// Records the start, a change or the end of an outage, as the authority's breakers show it now. Closes the
    /// breakers that are still open although their outage has ended.
    pub async fn observe_authority(&self, authority: &Authority) -> Result<(), StoreError> {
        let breakers = authority.breakers();
        let calls: Vec<_> = breakers.iter().map(operation_calls).collect();
        let left_open = self
            .observe(&calls, async || authority.is_alive().await)
            .await?;
        breakers
            .iter()
            .filter(|breaker| left_open.contains(&breaker.operation.name()))
            .for_each(|breaker| authority.end_outage(breaker.operation, breaker.failed_at));
        Ok(())
    }

    /// Records the start, a change or the end of an outage, as the observed `calls` show it. If an outage is open and
    /// its operations have not been called for a while, calls `alive` to find out whether the authority works again.
    /// Returns the operations whose breakers are still open although their outage had ended before.
    pub(super) async fn observe(
        &self,
        calls: &[OperationCalls],
        alive: impl AsyncFnOnce() -> bool,
    ) -> Result<Vec<&'static str>, StoreError> {
        let last = outages::load_open_or_last(self.store.reader()).await?;
        let id = clock::new_id();
        let now = self.clock.now();
        let quiet = self.quiet;
        let mut observation = Observation {
            id,
            now,
            quiet,
            sightings: calls,
            is_alive: None,
        };
        if observation.needs_probe(last.as_ref()) {
            observation.is_alive = Some(alive().await);
        }
        if is_changed(
            last.as_ref(),
            observation.current_outage(last.as_ref()).as_ref(),
        ) {
            self.write_outage(&observation).await?;
        }
        Ok(observation.operations_left_open(last.as_ref()))
    }

    async fn write_outage(&self, observation: &Observation<'_>) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        lanes::lock(
            &tx,
            &[LaneName::new(LaneKind::Outage, LANE)],
            IfLocked::Await,
        )
        .await?;
        // The time is read again, because this process may have waited since the observation. Otherwise an end that
        // another replica has recorded meanwhile would look like one from before the clock was set back.
        let observation = &Observation {
            now: self.clock.now(),
            ..*observation
        };
        let last = outages::load_open_or_last(&tx).await?;
        let Some(after) = observation
            .current_outage(last.as_ref())
            .filter(|after| is_changed(last.as_ref(), Some(after)))
        else {
            return tx.rollback().await;
        };
        let before = last.filter(|outage| outage.id == after.id);
        outages::save(&tx, &after).await?;
        if let Some(edge) = after.change_since(before.as_ref()) {
            outages::queue_notices(
                &tx,
                OutageEvent {
                    outage: after.id,
                    edge,
                },
            )
            .await?;
            notices::add_outage_notices(&tx, &after, edge, self.clock.now()).await?;
        }
        tx.commit().await?;
        log(before.is_none(), &after, observation);
        Ok(())
    }
}

fn is_changed(before: Option<&Outage>, after: Option<&Outage>) -> bool {
    after.is_some() && before != after
}

fn log(is_new: bool, outage: &Outage, observation: &Observation<'_>) {
    let id = outage.id;
    let operations = outage.operations().join(", ");
    if is_new {
        tracing::warn!(outage = %id, operations, "an outage of the authority started");
    }
    if !outage.is_open() {
        let duration_s = outage.duration_s(observation.now);
        tracing::info!(outage = %id, operations, duration_s, "an outage of the authority ended");
    }
}

/// Returns the observation of one operation. A breaker that opened because of our key or a certificate is no sign of an
/// outage: taxpayers would otherwise be notified of a fault of ours. If the authority fails while it is still open, the
/// outage begins with the first of these failures.
fn operation_calls(view: &BreakerView) -> OperationCalls {
    let is_ours = view
        .cause
        .or(view.past_cause)
        .is_some_and(CauseKind::is_ours);
    let opened_at = view.since.filter(|_| view.is_outage && !is_ours);
    OperationCalls {
        operation: view.operation.name(),
        held_since: opened_at.map(|at| view.first_not_ours_at.map_or(at, |first| first.max(at))),
        failed_at: view.failed_at,
        answered_at: view.answered_at,
    }
}

#[cfg(test)]
mod tests {
    use authority_client::{BreakerState, HeldCallers, Operation};
    use jiff::Timestamp;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// Returns the view of a breaker that opened at second 10 for everybody.
    fn open_breaker(cause: Option<CauseKind>, first_not_ours_at: Option<i64>) -> BreakerView {
        BreakerView {
            operation: Operation::Search,
            state: BreakerState::Open,
            held: HeldCallers::Everybody,
            open_for: HeldCallers::Everybody,
            due_probes: Vec::new(),
            is_outage: true,
            is_tripped: false,
            has_callers: true,
            since: Some(at(10)),
            cause,
            past_cause: None,
            first_not_ours_at: first_not_ours_at.map(at),
            calls: 9,
            failures: 9,
            next_probe_at: None,
            answered_at: None,
            failed_at: Some(at(95)),
            openings: 1,
        }
    }

    #[test]
    fn an_outage_begins_when_its_breaker_opens_or_when_the_cause_is_ours_no_more() {
        use CauseKind::{Down, KeyRefused, Malformed, TimedOut};
        // The cause, the first failure that is not ours, and the beginning.
        for (cause, first_not_ours_at, held_since) in [
            (Some(Down), Some(4), Some(10)),
            (Some(TimedOut), None, Some(10)),
            (None, Some(4), Some(10)),
            (Some(KeyRefused), None, None),
            (Some(KeyRefused), Some(90), None),
            (Some(Malformed), Some(90), Some(90)),
        ] {
            let view = open_breaker(cause, first_not_ours_at);
            let seen = operation_calls(&view);
            assert_eq!(seen.held_since, held_since.map(at), "{cause:?}");
            let over = BreakerView {
                cause: None,
                past_cause: Some(KeyRefused),
                ..view
            };
            assert_eq!(operation_calls(&over).held_since, None, "{cause:?}");
        }
    }
}
