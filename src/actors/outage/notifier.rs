//! Notifies subscribed taxpayers of outages, in batches and through the taxpayers' actors. One replica does this at a
//! time and stores its progress after each batch. A taxpayer that cannot be notified does not delay other taxpayers,
//! and is notified later.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::domain::kernel::clock::SharedClock;
use crate::domain::kernel::ids::{OutageId, TaxpayerId};
use crate::domain::outage::{NotifiedBatch, Outage, OutageNotice};
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::lanes::{self, LaneKind, Lease};
use crate::store::operations::outages::{self, OutageEvent};

/// The maximum number of taxpayers in one batch. They are notified concurrently. The number is small, to leave actors
/// and database free for requests.
const BATCH_MAX: u64 = 32;
/// The delay before taxpayers that could not be notified are tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct OutageNotifier {
    pub store: Store,
    pub clock: SharedClock,
    pub taxpayers: Arc<TaxpayerHandle>,
    /// The owner name that this process writes into its leases.
    pub owner: String,
    pub lease: Duration,
}

impl OutageNotifier {
    /// Notifies one batch of taxpayers if a notification of an outage is due. Returns true if another batch is due at
    /// once.
    pub async fn notify_due(&self) -> Result<bool, StoreError> {
        if !lanes::any_due(&self.store, LaneKind::Outage).await? {
            return Ok(false);
        }
        let claimed = lanes::claim(&self.store, LaneKind::Outage, &self.owner, self.lease, 1).await?;
        let Some(lease) = claimed.into_iter().next() else { return Ok(false) };
        let batch = match outages::to_notify(self.store.reader()).await? {
            Some(outage) => self.notify_batch(&outage).await?,
            None => None,
        };
        match self.finish(&lease, batch).await {
            // Another replica has taken over the lease. It repeats our notifications, and a repeated notification adds
            // no event.
            Err(StoreError::Stale) => Ok(false),
            ended => ended,
        }
    }

    async fn notify_batch(&self, outage: &Outage) -> Result<Option<(OutageId, NotifiedBatch)>, StoreError> {
        let (Some(progress), Some(notice)) = (outage.notifying, outage.notice()) else { return Ok(None) };
        let event = OutageEvent { outage: outage.id, edge: progress.edge };
        let next = outages::not_notified(&self.store, event, progress.last_taxpayer, BATCH_MAX).await?;
        let notified = join_all(next.iter().map(|id| self.notify(*id, notice.clone()))).await;
        let has_missed = notified.contains(&false);
        Ok(Some((
            outage.id,
            NotifiedBatch { edge: progress.edge, last_taxpayer: next.last().copied(), has_missed },
        )))
    }

    /// Notifies one taxpayer. Returns false after a transient failure. After a permanent failure logs an error and
    /// returns true, so that the taxpayer is skipped.
    async fn notify(&self, id: TaxpayerId, notice: OutageNotice) -> bool {
        let Err(failure) = self.taxpayers.notify_outage(id, notice).await else { return true };
        let is_transient = is_transient(&failure);
        if is_transient {
            tracing::info!(taxpayer = %id, %failure, "failed to notify a taxpayer of an outage; will retry");
        } else {
            tracing::error!(taxpayer = %id, %failure, "failed to notify a taxpayer of an outage");
        }
        !is_transient
    }

    async fn finish(
        &self,
        lease: &Lease,
        batch: Option<(OutageId, NotifiedBatch)>,
    ) -> Result<bool, StoreError> {
        let tx = self.store.begin().await?;
        lanes::fence(&tx, lease).await?;
        let mut delay = Duration::ZERO;
        if let Some((id, part)) = batch
            && let Some(outage) = outages::with_id(&tx, id).await?
        {
            let after = outage.notified(part, self.clock.now());
            let starts_again =
                part.last_taxpayer.is_none() && after.notifying.is_some_and(|next| next.edge == part.edge);
            delay = if starts_again { RETRY_AFTER } else { Duration::ZERO };
            outages::save(&tx, &after).await?;
        }
        let is_more_due = outages::to_notify(&tx).await?.is_some();
        lanes::release(&tx, lease, is_more_due.then_some(delay)).await?;
        tx.commit().await?;
        Ok(is_more_due && delay.is_zero())
    }
}

/// True if the same notification may succeed later.
fn is_transient(failure: &TaxpayerError) -> bool {
    match failure {
        TaxpayerError::Busy { .. } | TaxpayerError::Overloaded { .. } | TaxpayerError::Interrupted { .. } => {
            true
        }
        TaxpayerError::Store(error) => !matches!(error, StoreError::Corrupt { .. }),
        TaxpayerError::Refused(_) | TaxpayerError::Quarantined { .. } | TaxpayerError::AlreadyProcessed => {
            false
        }
    }
}

/// Tests on real databases: one or several replicas detect an outage, and each taxpayer is notified exactly once.
#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::actors::outage::OutageDetector;
    use crate::actors::supervision::Arbiters;
    use crate::actors::taxpayer::command::{Onboarding, WebhookChange};
    use crate::domain::events::delivery::ScheduleChange;
    use crate::domain::events::event::{Event, EventKind, LogHead};
    use crate::domain::kernel::audit::Actor;
    use crate::domain::kernel::clock::{Clock, MockClock};
    use crate::domain::outage::{OperationCalls, OutageEdge};
    use crate::store::db::page::Page;
    use crate::store::events;
    use crate::store::testing::{TestStore, stores};
    use crate::store::webhooks;
    use crate::store::webhooks::deliveries;

    const QUIET: Duration = Duration::from_mins(1);
    const STARTED: &str = "authority.outage-started";
    const ENDED: &str = "authority.outage-ended";

    /// A replica with actors of its own. Several replicas may share one database.
    struct Replica {
        detector: OutageDetector,
        notifier: OutageNotifier,
        clock: Arc<MockClock>,
        arbiters: Arc<Arbiters>,
    }

    impl Replica {
        fn new(test: &TestStore, name: &str, clock: &Arc<MockClock>) -> Self {
            let arbiters = Arc::new(Arbiters::start(1));
            let taxpayers = Arc::new(TaxpayerHandle::in_tests(&test.store, clock.clone(), &arbiters));
            let (store, quiet) = (test.store.clone(), SignedDuration::try_from(QUIET).unwrap());
            let detector = OutageDetector { store: store.clone(), clock: clock.clone(), quiet };
            let (owner, lease) = (name.to_owned(), Duration::from_secs(30));
            let notifier = OutageNotifier { store, clock: clock.clone(), taxpayers, owner, lease };
            Self { detector, notifier, clock: Arc::clone(clock), arbiters }
        }

        fn now(&self) -> Timestamp {
            self.clock.now()
        }

        /// Observes an open breaker whose last call failed just now.
        async fn observe_failure(&self) {
            let held_since = Some(self.now());
            self.observe(OperationCalls {
                operation: "sign",
                held_since,
                failed_at: held_since,
                answered_at: None,
            })
            .await;
        }

        async fn observe_answer(&self) {
            let answered_at = Some(self.now());
            self.observe(OperationCalls {
                operation: "sign",
                held_since: None,
                failed_at: None,
                answered_at,
            })
            .await;
        }

        async fn observe(&self, sighting: OperationCalls) {
            self.detector.observe(&[sighting], async || panic!("no probe is needed")).await.unwrap();
        }

        /// Observes that no breaker has seen a call. A probe of the authority returns `is_alive`.
        async fn observe_nothing(&self, is_alive: bool) {
            self.detector.observe(&[], async || is_alive).await.unwrap();
        }

        async fn notify_all(&self) -> usize {
            let mut batches = 1;
            while self.notifier.notify_due().await.unwrap() {
                batches += 1;
            }
            batches
        }

        async fn subscribe(&self, id: i64, names: &[&str]) {
            let id = TaxpayerId(id);
            self.notifier.taxpayers.onboard(id, Onboarding::sample(id)).await.unwrap();
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let url = "https://hooks.example.com".to_owned();
            let retry_schedule = ScheduleChange::Keep;
            let by = Actor::CommandLine;
            let change = WebhookChange { url, enabled_events: Some(names), retry_schedule, by };
            self.notifier.taxpayers.set_webhook(id, change).await.unwrap();
        }

        async fn close(self) {
            self.arbiters.stop();
            self.arbiters.join().await;
        }
    }

    fn clock() -> Arc<MockClock> {
        Arc::new(MockClock::at(Timestamp::from_second(1_800_000_000).unwrap()))
    }

    /// Returns a taxpayer's event log without its `WebhookUpdated` events, and checks the hash chain.
    async fn log(test: &TestStore, id: i64) -> Vec<Event> {
        let mut log = events::owned_by_after(&test.store, TaxpayerId(id), 0, 10_000).await.unwrap();
        let mut head = LogHead::default();
        assert!(log.iter().all(|event| head.accept(event)), "the chain is broken");
        log.retain(|event| event.kind != EventKind::WebhookUpdated);
        log
    }

    async fn names(test: &TestStore, id: i64) -> Vec<&'static str> {
        log(test, id).await.iter().map(|event| event.kind.as_str()).collect()
    }

    async fn last(test: &TestStore) -> Outage {
        outages::last(test.store.reader()).await.unwrap().unwrap()
    }

    #[actix_rt::test]
    async fn subscribed_taxpayers_are_notified_once_and_no_others() {
        for test in stores().await {
            let replica = Replica::new(&test, "one", &clock());
            replica.subscribe(1, &[STARTED, ENDED]).await;
            replica.subscribe(2, &["invoice.created"]).await;
            replica.subscribe(3, &[ENDED]).await;
            replica.subscribe(4, &[STARTED]).await;
            let endpoint = webhooks::owned_by(test.store.reader(), TaxpayerId(4)).await.unwrap().unwrap();
            let gone = (TaxpayerId(4), endpoint.updated_at, "it is gone".into());
            replica.notifier.taxpayers.disable_endpoint(gone.0, gone.1, gone.2).await.unwrap();
            replica.observe_failure().await;
            replica.notify_all().await;
            assert_eq!((names(&test, 1).await, names(&test, 3).await), (vec![STARTED], vec![]));
            replica.clock.advance(Duration::from_secs(30));
            replica.observe_answer().await;
            replica.notify_all().await;
            assert!(last(&test).await.is_open(), "30 s after the last failure");
            replica.clock.advance(Duration::from_secs(30));
            replica.observe_answer().await;
            replica.notify_all().await;
            assert_eq!(names(&test, 1).await, [STARTED, ENDED]);
            assert_eq!(names(&test, 2).await, [""; 0]);
            assert_eq!((names(&test, 3).await, names(&test, 4).await), (vec![ENDED], vec![STARTED]));
            assert_eq!(last(&test).await.duration_s(replica.now()), 30, "until the first answer");
            assert_eq!(
                deliveries::count_pending(test.store.reader()).await.unwrap(),
                3,
                "none for a disabled endpoint"
            );
            replica.close().await;
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn many_taxpayers_are_notified_in_batches_and_another_replica_continues() {
        for test in stores().await {
            let many = i64::try_from(BATCH_MAX).unwrap() * 2 + 3;
            let replica = Replica::new(&test, "one", &clock());
            for id in 1..=many {
                replica.subscribe(id, &[STARTED]).await;
            }
            replica.observe_failure().await;
            assert!(replica.notifier.notify_due().await.unwrap(), "there are more");
            let progress = last(&test).await.notifying.unwrap();
            assert_eq!(
                (progress.edge, progress.last_taxpayer),
                (OutageEdge::Started, TaxpayerId(BATCH_MAX.cast_signed()))
            );
            assert_eq!(names(&test, many).await, [""; 0]);
            let other = Replica::new(&test, "two", &replica.clock);
            assert_eq!(other.notify_all().await, 3, "two batches, then nothing is due");
            for id in 1..=many {
                assert_eq!(names(&test, id).await, [STARTED], "taxpayer {id}");
            }
            assert_eq!(last(&test).await.notifying, None);
            let counts = outages::count_notified(&test.store, &[last(&test).await]).await.unwrap();
            assert_eq!(counts.values().sum::<u64>(), many.cast_unsigned());
            assert!(!lanes::any_due(&test.store, lanes::LaneKind::Outage).await.unwrap());
            replica.close().await;
            other.close().await;
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_command_that_is_repeated_after_a_kill_adds_nothing() {
        for test in stores().await {
            let replica = Replica::new(&test, "one", &clock());
            replica.subscribe(1, &[STARTED]).await;
            replica.subscribe(2, &[STARTED]).await;
            replica.observe_failure().await;
            // Notifies the first taxpayer twice, as happens if a process dies after the notification and before it has
            // stored its progress.
            let notice = last(&test).await.notice().unwrap();
            let twice = [notice.clone(), notice.clone()]
                .map(|notice| replica.notifier.taxpayers.notify_outage(TaxpayerId(1), notice));
            assert!(futures_util::future::join_all(twice).await.into_iter().all(|notified| notified.is_ok()));
            let other = Replica::new(&test, "two", &replica.clock);
            other.notify_all().await;
            other.notifier.taxpayers.notify_outage(TaxpayerId(2), notice).await.unwrap();
            assert_eq!((names(&test, 1).await, names(&test, 2).await), (vec![STARTED], vec![STARTED]));
            replica.close().await;
            other.close().await;
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn one_of_several_replicas_records_an_outage_and_any_ends_it() {
        for test in stores().await {
            let clock = clock();
            let [one, other] = ["one", "two"].map(|name| Replica::new(&test, name, &clock));
            one.subscribe(1, &[STARTED, ENDED]).await;
            futures_util::future::join(one.observe_failure(), other.observe_failure()).await;
            one.notify_all().await;
            other.notify_all().await;
            let (found, total) = outages::page(&test.store, Page { number: 1, per_page: 10 }).await.unwrap();
            assert_eq!((found.len(), total), (1, 1));
            // The first replica makes no further observations. A restarted replica begins with closed breakers.
            let restarted = Replica::new(&test, "three", &clock);
            clock.advance(Duration::from_secs(90));
            restarted.observe_nothing(true).await;
            assert!(last(&test).await.is_open(), "no call was answered");
            restarted.observe_answer().await;
            restarted.notify_all().await;
            assert_eq!(names(&test, 1).await, [STARTED, ENDED]);
            for replica in [one, other, restarted] {
                replica.close().await;
            }
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn an_outage_without_calls_ends_when_a_probe_succeeds() {
        for test in stores().await {
            let replica = Replica::new(&test, "one", &clock());
            replica.observe_failure().await;
            replica.clock.advance(Duration::from_mins(5));
            replica.observe_nothing(false).await;
            assert!(last(&test).await.is_open());
            replica.clock.advance(Duration::from_mins(5));
            replica.observe_nothing(true).await;
            assert_eq!(last(&test).await.duration_s(replica.now()), 600);
            replica.close().await;
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_flapping_breaker_makes_one_pair_of_events() {
        for test in stores().await {
            let replica = Replica::new(&test, "one", &clock());
            replica.subscribe(1, &[STARTED, ENDED]).await;
            for _ in 0..30 {
                replica.observe_failure().await;
                replica.notify_all().await;
                replica.clock.advance(Duration::from_secs(8));
                replica.observe_answer().await;
                replica.notify_all().await;
                replica.clock.advance(Duration::from_secs(8));
            }
            replica.clock.advance(QUIET);
            replica.observe_answer().await;
            replica.notify_all().await;
            assert_eq!(names(&test, 1).await, [STARTED, ENDED]);
            replica.close().await;
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn an_outage_that_ends_before_its_start_was_notified_sends_both_events() {
        for test in stores().await {
            let replica = Replica::new(&test, "one", &clock());
            replica.subscribe(1, &[STARTED, ENDED]).await;
            replica.observe_failure().await;
            replica.clock.advance(Duration::from_secs(90));
            replica.observe_answer().await;
            // The next outage starts before the taxpayer was notified of the first one.
            replica.clock.advance(Duration::from_secs(1));
            replica.observe_failure().await;
            replica.notify_all().await;
            assert_eq!(names(&test, 1).await, [STARTED, ENDED, STARTED]);
            replica.close().await;
            test.store.close().await;
        }
    }
}
