//! The turns of large commands. A large command occupies the writer of SQLite, or a good part of PostgreSQL, for so
//! long that the small commands of all other taxpayers would wait for it. So only a few large commands run at a time,
//! each in one of a few places. If other taxpayers write, the place of a large command stays closed for a while after
//! its end: it rests. If nobody else writes, the next large command starts at once. Payers take turns: an integrator
//! with many taxpayers delays the large command of another integrator by only one of its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::actors::turn_gate::{BudgetPortion, TurnGate};
use crate::domain::access::payer::Payer;
use crate::domain::kernel::ids::TaxpayerId;

/// A place rests for this many times the duration of its last command. So of the small commands that others send one
/// after another, fewer than one in a hundred waits for a large command.
const REST_FACTOR: u32 = 5;
/// A taxpayer counts as writing for this long after its last commit. The duration of the large command that just ended
/// is added, because the taxpayer may have waited for it.
const BUSY_FOR: Duration = Duration::from_secs(1);
/// The interval at which a resting place checks whether other taxpayers still write.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(super) struct LargeTurns {
    places: Arc<TurnGate>,
    writers: Mutex<LastWriters>,
}

/// The two taxpayers whose small commands were committed last. Two are enough to tell, for any taxpayer, whether
/// another taxpayer writes.
#[derive(Debug, Default)]
struct LastWriters {
    last: Option<(TaxpayerId, Instant)>,
    other: Option<(TaxpayerId, Instant)>,
}

/// The turn of one large command. Dropping it makes its place free at once.
pub(super) struct LargeTurn {
    turns: Arc<LargeTurns>,
    taxpayer: TaxpayerId,
    begun: Instant,
    place: BudgetPortion,
}

impl LargeTurns {
    pub(super) fn new(places: usize) -> Self {
        Self {
            places: TurnGate::new(places),
            writers: Mutex::default(),
        }
    }

    /// Waits for a place. `payer` is the account that pays for the taxpayer; `None` if it is not known.
    pub(super) async fn wait_for_turn(
        turns: &Arc<Self>,
        taxpayer: TaxpayerId,
        payer: Option<Payer>,
    ) -> LargeTurn {
        let place = turns.places.take(payer, 1).await;
        LargeTurn {
            turns: Arc::clone(turns),
            taxpayer,
            begun: Instant::now(),
            place,
        }
    }

    /// Records that small commands of a taxpayer were committed.
    pub(super) fn record_small_commit(&self, taxpayer: TaxpayerId) {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if writers.last.is_some_and(|(last, _)| last != taxpayer) {
            writers.other = writers.last;
        }
        writers.last = Some((taxpayer, Instant::now()));
    }

    /// True if small commands of another taxpayer were committed within this time.
    fn has_another_written(&self, taxpayer: TaxpayerId, within: Duration) -> bool {
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let another = [writers.last, writers.other]
            .into_iter()
            .flatten()
            .find(|(id, _)| *id != taxpayer);
        another.is_some_and(|(_, at)| at.elapsed() < within)
    }
}

impl LargeTurn {
    /// Ends the turn. If other taxpayers write, the place rests before it is free again.
    pub(super) fn end(self) {
        let took = self.begun.elapsed();
        if !self
            .turns
            .has_another_written(self.taxpayer, took + BUSY_FOR)
        {
            return;
        }
        tokio::spawn(async move {
            let begun = Instant::now();
            while begun.elapsed() < took.saturating_mul(REST_FACTOR)
                && (begun.elapsed() < BUSY_FOR
                    || self.turns.has_another_written(self.taxpayer, BUSY_FOR))
            {
                sleep(LOOK_EVERY).await;
            }
            drop(self.place);
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const LARGE: TaxpayerId = TaxpayerId(1);
    const SMALL: TaxpayerId = TaxpayerId(2);

    #[tokio::test]
    async fn a_place_rests_only_while_another_taxpayer_writes() {
        let turns = Arc::new(LargeTurns::new(1));
        for writes in [&[] as &[TaxpayerId], &[LARGE], &[LARGE, LARGE]] {
            for taxpayer in writes {
                turns.record_small_commit(*taxpayer);
            }
            LargeTurns::wait_for_turn(&turns, LARGE, None).await.end();
            let next = LargeTurns::wait_for_turn(&turns, LARGE, None).now_or_never();
            drop(next.unwrap_or_else(|| panic!("nobody else writes: {writes:?}")));
        }
        for writes in [
            &[SMALL] as &[TaxpayerId],
            &[SMALL, LARGE],
            &[LARGE, SMALL, LARGE, LARGE],
        ] {
            let turns = Arc::new(LargeTurns::new(1));
            for taxpayer in writes {
                turns.record_small_commit(*taxpayer);
            }
            LargeTurns::wait_for_turn(&turns, LARGE, None).await.end();
            let mut next = Box::pin(LargeTurns::wait_for_turn(&turns, LARGE, None));
            assert!(
                (&mut next).now_or_never().is_none(),
                "its place rests: {writes:?}"
            );
            drop(next.await);
        }
    }
}
