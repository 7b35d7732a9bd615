//! Detects that the machine's or the database's clock was set back, and then makes waiting work due at once.

use std::time::{Duration, Instant};

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use jiff::{SignedDuration, Timestamp};
use tokio::time::sleep;

use crate::actors::supervision::{Arbiters, NodeKind, RestartPolicy, Tree, supervise};
use crate::domain::kernel::clock::SharedClock;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::lanes::clock_setback;

const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A step back by at most this much is ignored, because clocks are corrected by such amounts all the time.
const TOLERANCE: SignedDuration = SignedDuration::from_millis(1_000);
/// A lease that ends later than now plus this many lease durations was granted before the clock was set back.
const LEASES: u32 = 2;

#[derive(Clone)]
pub struct ClockWatch {
    pub store: Store,
    pub clock: SharedClock,
    pub lease: Duration,
}

/// The time that a clock showed, and the monotonic instants just before and just after the clock was read.
#[derive(Debug, Clone, Copy)]
struct ClockReading {
    shown: Timestamp,
    before: Instant,
    after: Instant,
}

impl ClockReading {
    /// Returns how far the clock was set back since the reading `last`; `None` if by at most `TOLERANCE`.
    fn set_back_since(&self, last: &Self) -> Option<SignedDuration> {
        let elapsed = self.before.saturating_duration_since(last.after);
        let due = last.shown.saturating_add(elapsed).unwrap_or(Timestamp::MAX);
        Some(due.duration_since(self.shown)).filter(|back| *back > TOLERANCE)
    }
}

impl ClockWatch {
    /// Starts the clock watch under supervision on the background arbiter.
    pub fn start(self, tree: &Tree, arbiters: &Arbiters) -> Addr<ClockActor> {
        let node = tree.node(NodeKind::Janitor, 0, "clock-watch");
        supervise(arbiters.background(), node, RestartPolicy::default(), |ctx| ClockActor {
            watch: self,
            _address: ctx.address(),
        })
    }

    async fn run(self) {
        // Read before the repair, so that the loop also detects a clock that is set back during the repair.
        let mut last = self.read().await.ok();
        if let Err(error) = self.repair_future_times().await {
            tracing::warn!(%error, "failed to look for due times of a clock that was set back");
        }
        loop {
            match self.look(last).await {
                Ok(readings) => last = Some(readings),
                Err(error) => tracing::warn!(%error, "failed to compare the clocks; will retry"),
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Reads both clocks. If one of them was set back since the readings `last`, makes waiting work due now.
    async fn look(&self, last: Option<[ClockReading; 2]>) -> Result<[ClockReading; 2], StoreError> {
        let readings = self.read().await?;
        let back = last.and_then(|last| {
            readings.iter().zip(&last).filter_map(|(now, last)| now.set_back_since(last)).max()
        });
        if let Some(back) = back {
            tracing::warn!(seconds = back.as_secs(), "a clock was set back; waiting work is due now");
            self.repair().await?;
        }
        Ok(readings)
    }

    /// Reads the machine's clock first and the database's clock second.
    async fn read(&self) -> Result<[ClockReading; 2], StoreError> {
        let before = Instant::now();
        let shown = self.clock.now();
        let machine = ClockReading { shown, before, after: Instant::now() };
        let before = Instant::now();
        let shown = clock_setback::database_now(&self.store).await?;
        Ok([machine, ClockReading { shown, before, after: Instant::now() }])
    }

    /// Makes waiting work due now, and expires leases that end too far in the future unless a live process renews them.
    async fn repair(&self) -> Result<(), StoreError> {
        clock_setback::restore_delivery_delays(&self.store, self.clock.now()).await?;
        clock_setback::make_waiting_lanes_due(&self.store).await?;
        sleep(self.lease / LEASES).await;
        clock_setback::expire_leases_beyond(&self.store, self.lease * LEASES).await?;
        Ok(())
    }

    async fn repair_future_times(&self) -> Result<(), StoreError> {
        let moved = clock_setback::restore_delivery_delays(&self.store, self.clock.now()).await?;
        sleep(self.lease / LEASES).await;
        let ended = clock_setback::expire_leases_beyond(&self.store, self.lease * LEASES).await?;
        if moved + ended > 0 {
            tracing::warn!(moved, ended, "a clock was set back before this start; waiting work is due now");
            clock_setback::make_waiting_lanes_due(&self.store).await?;
        }
        Ok(())
    }
}

pub struct ClockActor {
    watch: ClockWatch,
    /// The actor's own address. actix does not stop the actor while this address exists.
    _address: Addr<Self>,
}

impl Actor for ClockActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(self.watch.clone().run().into_actor(self));
    }
}

impl Supervised for ClockActor {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::kernel::clock::MockClock;
    use crate::store::lanes::{self, LaneKind, Lease};
    use crate::store::testing::stores;

    #[test]
    fn a_step_back_is_one_that_no_delay_explains() {
        let (begun, shown) = (Instant::now(), Timestamp::from_second(1_800_000_000).unwrap());
        let at = |second: u64| begun + Duration::from_secs(second);
        let reading = |seconds: i64, (before, after)| ClockReading {
            shown: shown + SignedDuration::from_secs(seconds),
            before: at(before),
            after: at(after),
        };
        let last = reading(0, (0, 3));
        let back = |now: ClockReading| now.set_back_since(&last).map(|back| back.as_secs());
        assert_eq!(back(reading(10, (10, 11))), None);
        assert_eq!(back(reading(7, (10, 20))), None, "the answers took their time");
        assert_eq!(back(reading(600, (10, 10))), None, "set forward");
        assert_eq!(back(reading(-593, (10, 11))), Some(600));
    }

    async fn claim(store: &Store) -> Option<Lease> {
        lanes::claim(store, LaneKind::Endpoint, "me", Duration::from_secs(30), 9).await.unwrap().pop()
    }

    async fn have_a_lane_wait(store: &Store) {
        let tx = store.begin().await.unwrap();
        lanes::make_due(&tx, LaneKind::Endpoint, &["7".to_owned()]).await.unwrap();
        tx.commit().await.unwrap();
        let held = claim(store).await.unwrap();
        let tx = store.begin().await.unwrap();
        lanes::release(&tx, &held, Some(Duration::from_mins(10))).await.unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn a_clock_that_is_set_back_just_after_the_start_is_seen() {
        for test in stores().await {
            let clock = Arc::new(MockClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
            // The repair sleeps for half a lease, here half a second. During this sleep the test sets the clock back.
            let lease = Duration::from_secs(1);
            let watch = ClockWatch { store: test.store.clone(), clock: clock.clone(), lease };
            have_a_lane_wait(&test.store).await;
            let due = async {
                sleep(lease / 4).await;
                clock.set_back(Duration::from_mins(10));
                while claim(&test.store).await.is_none() {
                    sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::select! {
                () = watch.run() => {}
                seen = tokio::time::timeout(LOOK_EVERY * 4 / 5, due) => assert!(seen.is_ok(), "it waits for ten minutes"),
            }
        }
    }

    #[tokio::test]
    async fn waiting_lanes_are_due_after_a_clock_was_set_back() {
        for test in stores().await {
            let clock = Arc::new(MockClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
            let lease = Duration::from_millis(20);
            let watch = ClockWatch { store: test.store.clone(), clock: clock.clone(), lease };
            have_a_lane_wait(&test.store).await;
            let claim = || claim(&test.store);
            let last = watch.look(None).await.unwrap();
            watch.look(Some(last)).await.unwrap();
            assert_eq!(claim().await, None, "the clock stood still, and that is within what clocks do");
            let last = watch.look(None).await.unwrap();
            clock.set_back(Duration::from_mins(10));
            watch.look(Some(last)).await.unwrap();
            assert!(claim().await.is_some());
        }
    }
}
