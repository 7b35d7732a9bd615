//! Detects that the machine's or the database's clock was set back, and then makes waiting work due at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use database::StoreError;
use jiff::{SignedDuration, Timestamp};
use timing::clock::SharedClock;
use tokio::time::sleep;

use crate::store::Store;
use crate::store::lanes::leases::{self, LeasesToEnd};
use crate::store::lanes::{self, WaitingLanes};
use crate::store::operations::{mails, notices};
use crate::store::webhooks::delivery_queue;

pub const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A step back by at most this much is ignored, because clocks are corrected by such amounts all the time.
const TOLERANCE: SignedDuration = SignedDuration::from_millis(1_000);
/// A lease that ends later than now plus this many lease durations was granted before the clock was set back.
const LEASE_DURATIONS: u32 = 2;
/// A mail waits for less than this between two attempts.
const MAIL_WAIT_MAX: SignedDuration = SignedDuration::from_hours(24);

/// Detects that the machine's or the database's clock was set back, and then makes waiting work due.
#[derive(Clone)]
pub struct ClockWatch {
    store: Store,
    clock: SharedClock,
    lease: Duration,
    /// The readings of the machine's clock and of the database's clock at the last call of `check_clocks`.
    last_readings: Arc<Mutex<Option<[ClockReading; 2]>>>,
}

/// The time that a clock showed, and the monotonic instants just before and just after the clock was read.
#[derive(Debug, Clone, Copy)]
struct ClockReading {
    clock_time: Timestamp,
    before: Instant,
    after: Instant,
}

impl ClockReading {
    /// Returns how far the clock was set back since the reading `last`; `None` if by at most `TOLERANCE`.
    fn time_set_back_since(&self, last: &Self) -> Option<SignedDuration> {
        let elapsed = self.before.saturating_duration_since(last.after);
        let due = last
            .clock_time
            .saturating_add(elapsed)
            .unwrap_or(Timestamp::MAX);
        Some(due.duration_since(self.clock_time)).filter(|back| *back > TOLERANCE)
    }
}

impl ClockWatch {
    pub fn new(store: Store, clock: SharedClock, lease: Duration) -> Self {
        Self {
            store,
            clock,
            lease,
            last_readings: Arc::default(),
        }
    }

    /// Reads both clocks. If one of them was set back since the last call, makes waiting work due now. The first call
    /// instead repairs stored times that are too far in the future, and returns a delay of zero, so that the next call
    /// follows at once. All other calls return `None`.
    pub async fn check_clocks(&self) -> Result<Option<Duration>, StoreError> {
        // The clocks are read before a repair, so that the next call detects a clock that is set back during the
        // repair.
        let readings = self.read_both_clocks().await?;
        let last = *self.lock_last_readings();
        let Some(last) = last else {
            // If the repair fails, the next call repeats it.
            self.repair_future_times().await?;
            *self.lock_last_readings() = Some(readings);
            return Ok(Some(Duration::ZERO));
        };
        let back = readings
            .iter()
            .zip(&last)
            .filter_map(|(now, last)| now.time_set_back_since(last))
            .max();
        if let Some(back) = back {
            tracing::warn!(
                seconds = back.as_secs(),
                "a clock was set back; waiting work is due now"
            );
            self.repair_after_set_back().await?;
        }
        *self.lock_last_readings() = Some(readings);
        Ok(None)
    }

    fn lock_last_readings(&self) -> MutexGuard<'_, Option<[ClockReading; 2]>> {
        self.last_readings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the machine's clock first and the database's clock second.
    async fn read_both_clocks(&self) -> Result<[ClockReading; 2], StoreError> {
        let before = Instant::now();
        let clock_time = self.clock.now();
        let machine = ClockReading {
            clock_time,
            before,
            after: Instant::now(),
        };
        let before = Instant::now();
        let clock_time = self.store.database_now().await?;
        Ok([
            machine,
            ClockReading {
                clock_time,
                before,
                after: Instant::now(),
            },
        ])
    }

    /// Makes waiting work due now, and expires leases that end too far in the future unless a live process renews them.
    async fn repair_after_set_back(&self) -> Result<(), StoreError> {
        self.shorten_overlong_waits(SignedDuration::ZERO).await?;
        lanes::make_waiting_due(&self.store, WaitingLanes::All).await?;
        sleep(self.lease / LEASE_DURATIONS).await;
        leases::end_leases(
            &self.store,
            LeasesToEnd::Beyond(self.lease * LEASE_DURATIONS),
        )
        .await?;
        Ok(())
    }

    /// Ends the waits that a clock set back has made too long: a delivery waits from now for as long as was intended,
    /// and mails that would wait for longer than `mail_wait_max` become due now. Returns the number of changed
    /// deliveries and mails.
    async fn shorten_overlong_waits(
        &self,
        mail_wait_max: SignedDuration,
    ) -> Result<u64, StoreError> {
        let now = self.clock.now();
        let deliveries =
            delivery_queue::restore_delays_after_clock_set_back(&self.store, now).await?;
        let latest = now.saturating_add(mail_wait_max).unwrap_or(Timestamp::MAX);
        let made_due = mails::make_due_after_clock_set_back(&self.store, now, latest).await?;
        notices::reset_future_times(&self.store, now).await?;
        Ok(deliveries + made_due)
    }

    async fn repair_future_times(&self) -> Result<(), StoreError> {
        let moved = self.shorten_overlong_waits(MAIL_WAIT_MAX).await?;
        sleep(self.lease / LEASE_DURATIONS).await;
        let ended = leases::end_leases(
            &self.store,
            LeasesToEnd::Beyond(self.lease * LEASE_DURATIONS),
        )
        .await?;
        if moved + ended > 0 {
            tracing::warn!(
                moved,
                ended,
                "a clock was set back before this start; waiting work is due now"
            );
            lanes::make_waiting_due(&self.store, WaitingLanes::All).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::ConnectionTrait as _;
    use timing::clock::MockClock;

    use super::*;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::notice::{Notice, NoticeKind, NoticeScope, NoticeTopic};
    use crate::store::lanes::leases::LaneRelease;
    use crate::store::lanes::{self, LaneKind, LanesToWake, Lease};
    use crate::store::operations::mails::{Letter, MailChannel, NewMail};
    use crate::store::operations::notices::GatherDelays;
    use crate::store::testing::{claim_due, stores};

    #[test]
    fn a_step_back_is_one_that_no_delay_explains() {
        let begun = Instant::now();
        let clock_time = Timestamp::from_second(1_800_000_000).unwrap();
        let at = |second: u64| begun + Duration::from_secs(second);
        let reading = |seconds: i64, (before, after)| ClockReading {
            clock_time: clock_time + SignedDuration::from_secs(seconds),
            before: at(before),
            after: at(after),
        };
        let last = reading(0, (0, 3));
        let back = |now: ClockReading| now.time_set_back_since(&last).map(|back| back.as_secs());
        assert_eq!(back(reading(10, (10, 11))), None);
        assert_eq!(
            back(reading(7, (10, 20))),
            None,
            "the answers took their time"
        );
        assert_eq!(back(reading(600, (10, 10))), None, "set forward");
        assert_eq!(back(reading(-593, (10, 11))), Some(600));
    }

    async fn claim(store: &Store) -> Option<Lease> {
        claim_due(store, LaneKind::Endpoint, "me", Duration::from_secs(30), 9)
            .await
            .unwrap()
            .pop()
    }

    async fn have_a_lane_wait(store: &Store) {
        let tx = store.begin().await.unwrap();
        lanes::wake(&tx, LaneKind::Endpoint, &["7".to_owned()], LanesToWake::All)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let held = claim(store).await.unwrap();
        let tx = store.begin().await.unwrap();
        leases::release(
            &tx,
            &[LaneRelease::new(&held, Some(Duration::from_mins(10)))],
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn a_clock_that_is_set_back_just_after_the_start_is_seen() {
        for test in stores().await {
            let clock = Arc::new(MockClock::at(
                Timestamp::from_second(1_800_000_000).unwrap(),
            ));
            // The repair sleeps for half a lease, here half a second. During this sleep the test sets the clock back.
            let lease = Duration::from_secs(1);
            let watch = ClockWatch::new(test.store.clone(), clock.clone(), lease);
            have_a_lane_wait(&test.store).await;
            let due = async {
                sleep(lease / 4).await;
                clock.set_back(Duration::from_mins(10));
                while claim(&test.store).await.is_none() {
                    sleep(Duration::from_millis(20)).await;
                }
            };
            let looks = async {
                while watch.check_clocks().await.unwrap().is_some() {}
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = looks => {}
                seen = tokio::time::timeout(LOOK_EVERY, due) => assert!(seen.is_ok(), "it waits for ten minutes"),
            }
        }
    }

    #[tokio::test]
    async fn a_repair_at_the_start_that_failed_is_repeated() {
        for test in stores().await {
            let clock = Arc::new(MockClock::at(
                Timestamp::from_second(1_800_000_000).unwrap(),
            ));
            let watch = ClockWatch::new(test.store.clone(), clock, Duration::from_millis(20));
            let rename = async |from: &str, to: &str| {
                let tx = test.store.begin().await.unwrap();
                let sql = format!("ALTER TABLE {from} RENAME TO {to}");
                tx.execute_unprepared(&sql).await.unwrap();
                tx.commit().await.unwrap();
            };
            rename("deliveries", "hidden").await;
            assert!(watch.check_clocks().await.is_err());
            rename("hidden", "deliveries").await;
            for delay in [Some(Duration::ZERO), None] {
                assert_eq!(watch.check_clocks().await.unwrap(), delay);
            }
        }
    }

    /// Adds a mail and a notice that are due now.
    async fn add_mail_and_notice(store: &Store, now: Timestamp) {
        let scope = NoticeScope::Taxpayer(TaxpayerId(7));
        let letter = Letter {
            subject: "subject".to_owned(),
            text: "text".to_owned(),
            html: "text".to_owned(),
        };
        let mail = NewMail {
            recipient: "ada@example.com".to_owned(),
            topic: NoticeTopic::Invoices,
            letter,
            unsubscribe: None,
            link_for: None,
            scope,
            person: None,
        };
        let notice = Notice::new(scope, NoticeKind::InvoiceRejected, now);
        let tx = store.begin().await.unwrap();
        mails::add(&tx, vec![mail], now).await.unwrap();
        notices::add(&tx, &[notice]).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Returns the numbers of due mails and of due groups of notices.
    async fn count_due_mails(store: &Store, now: Timestamp) -> (usize, usize) {
        let due = mails::load_due(store, now, MailChannel::Mail, 9).await;
        let policy = GatherDelays {
            gather: SignedDuration::ZERO,
            repeat: SignedDuration::from_hours(1),
        };
        let groups = notices::due_groups(store, now, policy).await;
        (due.unwrap().len(), groups.unwrap().len())
    }

    #[tokio::test]
    async fn mails_from_before_a_clock_was_set_back_are_due() {
        for is_restarted in [false, true] {
            for test in stores().await {
                let store = &test.store;
                let begun = Timestamp::from_second(1_800_000_000).unwrap();
                let clock = Arc::new(MockClock::at(begun));
                let lease = Duration::from_millis(20);
                let ahead = Duration::from_hours(48);
                let mut watch = ClockWatch::new(store.clone(), clock.clone(), lease);
                clock.advance(ahead);
                while watch.check_clocks().await.unwrap().is_some() {}
                add_mail_and_notice(store, begun + ahead).await;
                clock.set_back(ahead);
                assert_eq!(count_due_mails(store, begun).await, (0, 0));
                if is_restarted {
                    watch = ClockWatch::new(store.clone(), clock.clone(), lease);
                }
                watch.check_clocks().await.unwrap();
                let due = count_due_mails(store, begun).await;
                assert_eq!(due, (1, 1), "restarted: {is_restarted}");
            }
        }
    }

    #[tokio::test]
    async fn waiting_lanes_are_due_after_a_clock_was_set_back() {
        for test in stores().await {
            let clock = Arc::new(MockClock::at(
                Timestamp::from_second(1_800_000_000).unwrap(),
            ));
            let lease = Duration::from_millis(20);
            let watch = ClockWatch::new(test.store.clone(), clock.clone(), lease);
            have_a_lane_wait(&test.store).await;
            let claim = || claim(&test.store);
            watch.check_clocks().await.unwrap();
            watch.check_clocks().await.unwrap();
            assert_eq!(
                claim().await,
                None,
                "the clock stood still, and that is within what clocks do"
            );
            clock.set_back(Duration::from_mins(10));
            watch.check_clocks().await.unwrap();
            assert!(claim().await.is_some());
        }
    }
}
