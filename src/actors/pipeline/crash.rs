//! Counts crashes and panics for the runs whose steps were active. After its second crash a run must run alone: only
//! one such run begins at a time. After its third crash or its second panic it is quarantined. The calls that a crash
//! cut off get an outcome in the log of calls.

use std::time::Duration;

use database::{StoreError, Transaction};

use crate::actors::dispatch::IsolationTurn;
use crate::actors::pipeline::runner::PipelineDeps;
use crate::domain::kernel::crash::CrashHistory;
use crate::domain::pipeline::{Run, RunState, Step, parse_run_lane_key};
use crate::store::Store;
use crate::store::lanes::leases::{self, LaneNote, LaneRelease, NextClaim};
use crate::store::lanes::{self, IfLocked, LaneKind, LaneName, Lease, LeasedLane};
use crate::store::runs;
use crate::store::runs::step_log;

/// A run that is tried for the last time waits this long before it looks again whether it would be alone.
const LOOK_AGAIN_DELAY: Duration = Duration::from_secs(1);

impl PipelineDeps {
    /// Counts a crash for the run of each of these lanes, unless the run has ended. Releases the leases of the runs
    /// that must now run alone. Returns the other leases that this process still holds: their work may begin again.
    pub(super) async fn record_crashes(
        &self,
        crashed: &[LeasedLane],
    ) -> Result<Vec<Lease>, StoreError> {
        let leases: Vec<_> = crashed.iter().map(|lane| lane.lease.clone()).collect();
        let tx = self.store.begin().await?;
        let runs = load_leased_runs(&tx, &leases).await?;
        let runs: Vec<_> = runs
            .into_iter()
            .map(|(lease, run)| (lease, run.map(Run::after_crash)))
            .collect();
        runs::save(
            &tx,
            &runs
                .iter()
                .filter_map(|(_, run)| run.as_ref())
                .collect::<Vec<_>>(),
        )
        .await?;
        let mut going_on = Vec::new();
        for (lease, run) in runs {
            if let Some(run) = run.filter(|run| run.must_run_alone() && !run.is_quarantined()) {
                release_to_run_alone(&tx, &lease, &run, Duration::ZERO).await?;
            } else {
                leases::write_note(&tx, &lease, LaneNote::CrashesCounted).await?;
                going_on.push(lease);
            }
        }
        tx.commit().await?;
        Ok(going_on)
    }

    /// Counts a panic for the run with this lease, if the run is still open.
    pub(super) async fn count_panic(&self, lease: &Lease) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        let held = load_leased_runs(&tx, std::slice::from_ref(lease)).await?;
        let panicked = held
            .into_iter()
            .find_map(|(_, run)| run)
            .map(Run::after_panic);
        runs::save(&tx, &panicked.iter().collect::<Vec<_>>()).await?;
        tx.commit().await
    }

    /// Releases the lease of a run that must run alone, but was claimed without the permit for that, the turn
    /// (`dispatch::isolation`), or would not be alone now. It is then claimed again with the turn, after `delay`.
    pub(super) async fn release_to_wait_for_turn(
        &self,
        lease: &Lease,
        run: &Run,
        delay: Duration,
    ) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        release_to_run_alone(&tx, lease, run, delay).await?;
        tx.commit().await
    }
}

/// Returns how long a run must wait before it is claimed again with the turn of isolated runs; `None` if it may begin.
/// The last try of a run begins only when no other isolated run is under way, so that a crash is counted for good only
/// for a run that was alone.
pub(super) fn delay_before_turn(
    history: CrashHistory,
    turn: Option<&IsolationTurn>,
) -> Option<Duration> {
    if !history.must_run_alone() {
        return None;
    }
    match turn {
        None => Some(Duration::ZERO),
        Some(turn) if history.is_last_try() && !turn.is_alone() => Some(LOOK_AGAIN_DELAY),
        Some(_) => None,
    }
}

/// Records in the log of calls that the last calls of the run were cut off, if a process ended before it recorded their
/// outcomes. The run is still `Running` then, with the intent to call its step. The caller holds the run's lease.
pub(super) async fn end_interrupted_attempts(store: &Store, run: &Run) -> Result<(), StoreError> {
    if run.state() == RunState::Running && run.progress.intent.is_some() {
        step_log::end_interrupted(store, run.taxpayer_id, run.id).await?;
    }
    Ok(())
}

async fn release_to_run_alone(
    tx: &Transaction,
    lease: &Lease,
    run: &Run,
    delay: Duration,
) -> Result<(), StoreError> {
    let release = LaneRelease {
        next_step: run.next_step().map(Step::as_str),
        next_claim: NextClaim::Alone,
        ..LaneRelease::new(lease, Some(delay))
    };
    leases::release(tx, &[release]).await
}

/// Locks the lanes of the runs and of their taxpayers, in the order in which all writers lock. Returns the leases that
/// are still held, each with its run, or with `None` if the run is not open.
async fn load_leased_runs(
    tx: &Transaction,
    leases: &[Lease],
) -> Result<Vec<(Lease, Option<Run>)>, StoreError> {
    let taxpayers: Vec<_> = leases
        .iter()
        .filter_map(|lease| parse_run_lane_key(&lease.key))
        .map(|(taxpayer, _)| LaneName::new(LaneKind::Taxpayer, taxpayer.to_string()))
        .collect();
    lanes::lock(tx, &taxpayers, IfLocked::Await).await?;
    let mut found = Vec::new();
    for lease in leases::fence(tx, leases, IfLocked::Await).await?.held {
        let run = match parse_run_lane_key(&lease.key) {
            Some((taxpayer, id)) => runs::find_owned_by_id(tx, taxpayer, id).await?,
            None => None,
        };
        found.push((lease, run.filter(|run| run.state().is_open())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::actors::dispatch::{IsolationTurns, run_in_turn};

    fn history(crashes: u32, is_lifted: bool) -> CrashHistory {
        CrashHistory {
            crashes,
            panics: 0,
            is_lifted,
        }
    }

    #[tokio::test]
    async fn a_run_begins_in_its_turn_and_its_last_try_only_alone() {
        let turns = IsolationTurns::default();
        let at_once = Some(Duration::ZERO);
        // The history, and the delay without a turn, in a turn alone, and in a turn beside another run.
        let cases = [
            (history(0, false), [None, None, None]),
            (history(1, false), [None, None, None]),
            (history(2, false), [at_once, None, None]),
            (history(2, true), [at_once, None, Some(LOOK_AGAIN_DELAY)]),
        ];
        let first = turns.take().await;
        let alone = cases.map(|(history, _)| delay_before_turn(history, first.as_ref()));
        let (answer, answered) = oneshot::channel::<()>();
        let look_beside = async {
            let second = turns.take().await;
            let beside = cases.map(|(history, _)| delay_before_turn(history, second.as_ref()));
            answer.send(()).unwrap();
            beside
        };
        let waiting = run_in_turn(first, history(2, false), answered);
        let (ended, beside) = tokio::join!(waiting, look_beside);
        ended.unwrap();
        for (((history, expected), alone), beside) in cases.into_iter().zip(alone).zip(beside) {
            let without = delay_before_turn(history, None);
            assert_eq!([without, alone, beside], expected, "{history:?}");
        }
    }
}
