//! Notifies a subscribed taxpayer of the start or the end of an outage, through the taxpayer's actor. A taxpayer that
//! cannot be notified does not delay other taxpayers: its lane is due again later.

use std::sync::Arc;

use database::StoreError;
use timing::clock::SharedClock;

use crate::actors::dispatch::WorkStatus;
use crate::actors::taxpayer::commands::NotifyOutage;
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::store::Store;
use crate::store::lanes::Lease;
use crate::store::lanes::leases::{self, LaneRelease, NextClaim};
use crate::store::operations::outages::{self, QueuedNotice};

/// The maximum number of taxpayers that a process notifies at the same time. It is small, to leave actors and database
/// free for requests.
pub const NOTICES_MAX: usize = 32;

#[derive(Clone)]
pub struct OutageNotifier {
    pub store: Store,
    pub clock: SharedClock,
    pub taxpayers: Arc<TaxpayerHandle>,
}

impl OutageNotifier {
    /// Sends the notification for which this lane was queued, then deletes the lane. If earlier notifications of the
    /// taxpayer are still queued, sends them first, so that no taxpayer learns of the end of an outage before its
    /// start.
    pub async fn notify(&self, lease: &Lease) -> Result<WorkStatus, StoreError> {
        for notice in outages::queued_notices_up_to(&self.store, lease).await? {
            if !self.send(notice).await? {
                return Ok(WorkStatus::Unfinished);
            }
        }
        let tx = self.store.begin().await?;
        let release = LaneRelease {
            next_claim: NextClaim::Never,
            ..LaneRelease::new(lease, None)
        };
        leases::release(&tx, &[release]).await?;
        tx.commit().await?;
        Ok(WorkStatus::Released)
    }

    /// Sends a notification. Returns false if it must be tried again. A notification that cannot succeed or has become
    /// too old is given up and logged as an error.
    async fn send(
        &self,
        QueuedNotice { taxpayer, event }: QueuedNotice,
    ) -> Result<bool, StoreError> {
        let Some(outage) = outages::find_by_id(self.store.reader(), event.outage).await? else {
            return Ok(true);
        };
        let notice = outage.notice(event.edge);
        let Err(failure) = self.taxpayers.send(taxpayer, NotifyOutage(notice)).await else {
            return Ok(true);
        };
        let is_retried =
            is_transient(&failure) && outage.is_worth_notifying(event.edge, self.clock.now());
        if is_retried {
            tracing::info!(%taxpayer, %failure, "failed to notify a taxpayer of an outage; will retry");
        } else {
            tracing::error!(%taxpayer, %failure, "failed to notify a taxpayer of an outage");
        }
        Ok(!is_retried)
    }
}

/// True if the same notification may succeed later.
fn is_transient(failure: &TaxpayerError) -> bool {
    match failure {
        TaxpayerError::Busy { .. }
        | TaxpayerError::Overloaded { .. }
        | TaxpayerError::Paused
        | TaxpayerError::Interrupted { .. } => true,
        TaxpayerError::Store(error) => !matches!(error, StoreError::Corrupt { .. }),
        TaxpayerError::Refused(_)
        | TaxpayerError::Quarantined { .. }
        | TaxpayerError::AlreadyProcessed => false,
    }
}

/// Tests on real databases: one or several replicas detect an outage, and each taxpayer is notified exactly once.
#[cfg(test)]
mod tests {
    use std::time::Duration;

    use database::page::Page;
    use futures_util::future::join_all;
    use jiff::{SignedDuration, Timestamp};
    use supervision::Arbiters;
    use timing::clock::{Clock, MockClock};

    use super::*;
    use crate::actors::outage::OutageDetector;
    use crate::actors::taxpayer::commands::{DisableEndpoint, Onboard, SetWebhook};
    use crate::domain::events::endpoint::RetryScheduleChange;
    use crate::domain::events::event::{Event, EventKind, LogHead};
    use crate::domain::kernel::audit::Actor;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::outage::{OperationCalls, Outage, OutageEdge};
    use crate::store::events;
    use crate::store::lanes::LaneKind;
    use crate::store::operations::outages::OutageEvent;
    use crate::store::testing::{TestStore, claim_due, stores};
    use crate::store::webhooks;
    use crate::store::webhooks::deliveries;

    const QUIET: Duration = Duration::from_mins(1);
    const STARTED: &str = "authority.outage-started";
    const ENDED: &str = "authority.outage-ended";

    /// A replica with actors of its own. Several replicas may share one database.
    struct Replica {
        name: &'static str,
        detector: OutageDetector,
        notifier: OutageNotifier,
        clock: Arc<MockClock>,
        arbiters: Arc<Arbiters>,
    }

    impl Replica {
        fn new(test: &TestStore, name: &'static str, clock: &Arc<MockClock>) -> Self {
            let arbiters = Arc::new(Arbiters::start(1));
            let taxpayers = Arc::new(TaxpayerHandle::in_tests(
                &test.store,
                clock.clone(),
                &arbiters,
            ));
            let store = test.store.clone();
            let quiet = SignedDuration::try_from(QUIET).unwrap();
            let detector = OutageDetector {
                store: store.clone(),
                clock: clock.clone(),
                quiet,
            };
            let notifier = OutageNotifier {
                store,
                clock: clock.clone(),
                taxpayers,
            };
            Self {
                name,
                detector,
                notifier,
                clock: Arc::clone(clock),
                arbiters,
            }
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

        async fn observe(&self, sighting: OperationCalls) -> Vec<&'static str> {
            self.detector
                .observe(&[sighting], async || panic!("no probe is needed"))
                .await
                .unwrap()
        }

        /// Observes that no breaker has seen a call. A probe of the authority returns `is_alive`.
        async fn observe_nothing(&self, is_alive: bool) {
            self.detector.observe(&[], async || is_alive).await.unwrap();
        }

        /// Claims up to `limit` lanes and works on them at the same time. Returns the number of claimed lanes.
        async fn notify(&self, limit: u64) -> usize {
            let store = &self.notifier.store;
            let lease = Duration::from_secs(30);
            let leases = claim_due(store, LaneKind::Outage, self.name, lease, limit)
                .await
                .unwrap();
            let notified = join_all(leases.iter().map(|lease| self.notifier.notify(lease))).await;
            assert!(
                notified
                    .iter()
                    .all(|status| matches!(status, Ok(WorkStatus::Released))),
                "{notified:?}"
            );
            leases.len()
        }

        async fn notify_all(&self) {
            while self.notify(9).await > 0 {}
        }

        async fn subscribe(&self, id: i64, names: &[&str]) {
            let id = TaxpayerId(id);
            self.notifier
                .taxpayers
                .send(id, Onboard::sample(id))
                .await
                .unwrap();
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let url = "https://hooks.example.com".to_owned();
            let retry_schedule = RetryScheduleChange::Keep;
            let by = Actor::CommandLine;
            let change = SetWebhook {
                url,
                enabled_events: Some(names),
                retry_schedule,
                by,
            };
            self.notifier.taxpayers.send(id, change).await.unwrap();
        }

        async fn close(self) {
            self.arbiters.stop();
            self.arbiters.join().await;
        }
    }

    fn clock() -> Arc<MockClock> {
        Arc::new(MockClock::at(
            Timestamp::from_second(1_800_000_000).unwrap(),
        ))
    }

    /// Returns a taxpayer's event log without its `WebhookUpdated` events, and checks the hash chain.
    async fn log(test: &TestStore, id: i64) -> Vec<Event> {
        let mut log = events::owned_by_after(&test.store, TaxpayerId(id), 0, 10_000)
            .await
            .unwrap();
        let mut head = LogHead::default();
        assert!(
            log.iter().all(|event| head.advance_if_next(event)),
            "the chain is broken"
        );
        log.retain(|event| event.kind != EventKind::WebhookUpdated);
        log
    }

    async fn names(test: &TestStore, id: i64) -> Vec<&'static str> {
        log(test, id)
            .await
            .iter()
            .map(|event| event.kind.as_str())
            .collect()
    }

    async fn last(test: &TestStore) -> Outage {
        outages::load_open_or_last(test.store.reader())
            .await
            .unwrap()
            .unwrap()
    }

    #[actix_rt::test]
    async fn subscribed_taxpayers_are_notified_once_and_no_others() {
        for test in stores().await {
            let replica = Replica::new(&test, "one", &clock());
            replica.subscribe(1, &[STARTED, ENDED]).await;
            replica.subscribe(2, &["invoice.created"]).await;
            replica.subscribe(3, &[ENDED]).await;
            replica.subscribe(4, &[STARTED]).await;
            let endpoint = webhooks::find_by_key(test.store.reader(), TaxpayerId(4).into())
                .await
                .unwrap()
                .unwrap();
            let gone = (TaxpayerId(4), endpoint.updated_at, "it is gone".into());
            replica
                .notifier
                .taxpayers
                .send(
                    gone.0,
                    DisableEndpoint {
                        endpoint: TaxpayerId(4).into(),
                        as_of: gone.1,
                        reason: gone.2,
                    },
                )
                .await
                .unwrap();
            replica.observe_failure().await;
            replica.notify_all().await;
            assert_eq!(
                (names(&test, 1).await, names(&test, 3).await),
                (vec![STARTED], vec![])
            );
            replica.clock.advance(Duration::from_secs(30));
            replica.observe_answer().await;
            replica.notify_all().await;
            assert!(last(&test).await.is_open(), "30 s after the last failure");
            replica.clock.advance(Duration::from_secs(30));
            replica.observe_answer().await;
            replica.notify_all().await;
            assert_eq!(names(&test, 1).await, [STARTED, ENDED]);
            assert_eq!(names(&test, 2).await, [""; 0]);
            assert_eq!(
                (names(&test, 3).await, names(&test, 4).await),
                (vec![ENDED], vec![STARTED])
            );
            assert_eq!(
                last(&test).await.duration_s(replica.now()),
                30,
                "until the first answer"
            );
            assert_eq!(
                deliveries::count_pending(test.store.reader())
                    .await
                    .unwrap(),
                3,
                "none for a disabled endpoint"
            );
            replica.close().await;
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_replica_that_makes_no_call_closes_its_breaker_when_the_outage_has_ended() {
        for test in stores().await {
            let idle = Replica::new(&test, "one", &clock());
            let other = Replica::new(&test, "two", &idle.clock);
            let held_since = Some(idle.now());
            let failed = OperationCalls {
                operation: "sign",
                held_since,
                failed_at: held_since,
                answered_at: None,
            };
            assert_eq!(idle.observe(failed).await, [""; 0], "it has begun");
            idle.clock.advance(QUIET);
            assert_eq!(idle.observe(failed).await, [""; 0], "it goes on");
            other.observe_answer().await;
            assert!(!last(&test).await.is_open());
            assert_eq!(idle.observe(failed).await, ["sign"]);
            idle.close().await;
            other.close().await;
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn an_observation_that_is_written_late_begins_no_outage_again() {
        for (stopped_for, is_failing_again) in [
            (Duration::ZERO, false),
            (Duration::from_secs(15), false),
            (Duration::from_secs(15), true),
        ] {
            for test in stores().await {
                let slow = Replica::new(&test, "one", &clock());
                let other = Replica::new(&test, "two", &slow.clock);
                slow.observe_failure().await;
                let begun = last(&test).await;
                let held_since = Some(slow.now());
                let failed = OperationCalls {
                    operation: "sign",
                    held_since,
                    failed_at: held_since,
                    answered_at: None,
                };
                slow.clock.advance(Duration::from_mins(5));
                // While this replica probes the authority, the other one records the end of the outage.
                slow.detector
                    .observe(&[failed], async || {
                        slow.clock.advance(stopped_for);
                        other.observe_answer().await;
                        if is_failing_again {
                            slow.clock.advance(Duration::from_secs(1));
                            other.observe_failure().await;
                        }
                        false
                    })
                    .await
                    .unwrap();
                let outage = last(&test).await;
                let case = format!("{stopped_for:?} {is_failing_again}");
                assert_eq!(outage.is_open(), is_failing_again, "{case}");
                assert_eq!(outage.id == begun.id, !is_failing_again, "{case}");
                slow.close().await;
                other.close().await;
                test.store.close().await;
            }
        }
    }

    #[actix_rt::test]
    async fn a_replica_notifies_the_taxpayers_that_another_did_not_reach() {
        for test in stores().await {
            let replica = Replica::new(&test, "one", &clock());
            for id in 1..=9 {
                replica.subscribe(id, &[STARTED]).await;
            }
            replica.observe_failure().await;
            assert_eq!(replica.notify(4).await, 4);
            let started = OutageEvent {
                outage: last(&test).await.id,
                edge: OutageEdge::Started,
            };
            assert_eq!(
                outages::queued_events(&test.store).await.unwrap(),
                [started].into()
            );
            let other = Replica::new(&test, "two", &replica.clock);
            assert_eq!(other.notify(9).await, 5);
            for id in 1..=9 {
                assert_eq!(names(&test, id).await, [STARTED], "taxpayer {id}");
            }
            assert!(
                outages::queued_events(&test.store)
                    .await
                    .unwrap()
                    .is_empty()
            );
            let counts = outages::count_notified_taxpayers(&test.store, &[last(&test).await])
                .await
                .unwrap();
            assert_eq!(counts, [(started, 9)].into());
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
            // removed the lane.
            let notice = last(&test).await.notice(OutageEdge::Started);
            let twice = [notice.clone(), notice.clone()].map(|notice| {
                replica
                    .notifier
                    .taxpayers
                    .send(TaxpayerId(1), NotifyOutage(notice))
            });
            assert!(
                join_all(twice)
                    .await
                    .into_iter()
                    .all(|notified| notified.is_ok())
            );
            let other = Replica::new(&test, "two", &replica.clock);
            other.notify_all().await;
            other
                .notifier
                .taxpayers
                .send(TaxpayerId(2), NotifyOutage(notice))
                .await
                .unwrap();
            assert_eq!(
                (names(&test, 1).await, names(&test, 2).await),
                (vec![STARTED], vec![STARTED])
            );
            replica.close().await;
            other.close().await;
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_taxpayer_that_cannot_be_notified_is_retried_while_it_is_news() {
        for test in stores().await {
            let replica = Replica::new(&test, "one", &clock());
            replica.subscribe(1, &[STARTED]).await;
            replica.observe_failure().await;
            let lease = Duration::from_secs(30);
            let lease = claim_due(&test.store, LaneKind::Outage, "one", lease, 1)
                .await
                .unwrap()
                .remove(0);
            replica.notifier.taxpayers.registry().close();
            assert_eq!(
                replica.notifier.notify(&lease).await.unwrap(),
                WorkStatus::Unfinished
            );
            replica.clock.advance(Duration::from_hours(1));
            assert_eq!(
                replica.notifier.notify(&lease).await.unwrap(),
                WorkStatus::Released,
                "it is given up"
            );
            assert!(
                outages::queued_events(&test.store)
                    .await
                    .unwrap()
                    .is_empty()
            );
            assert_eq!(names(&test, 1).await, [""; 0]);
            replica.close().await;
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
            let (found, total) = outages::page(
                &test.store,
                Page {
                    number: 1,
                    per_page: 10,
                },
            )
            .await
            .unwrap();
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
