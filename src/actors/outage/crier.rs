//! Tells the taxpayers that asked for it, through their actors, some at a time: one replica does it, and its place
//! is written down after each part. One that cannot be told holds up no other; it gets another turn.

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
use crate::store::operations::outages;

/// Taxpayers that are told at once: so few that their actors and the database have room for others.
const AT_ONCE: u64 = 32;
/// When those that could not be told get another turn.
const AFTER_MISS: Duration = Duration::from_secs(1);

/// Tells of outages.
#[derive(Clone)]
pub struct Crier {
    pub store: Store,
    pub clock: SharedClock,
    pub taxpayers: Arc<TaxpayerHandle>,
    /// Names this process in the lease.
    pub owner: String,
    pub lease: Duration,
}

impl Crier {
    /// Tells some of those that are to be told; whether there are more to tell at once.
    pub async fn tell_due(&self) -> Result<bool, StoreError> {
        if !lanes::any_due(&self.store, LaneKind::Outage).await? {
            return Ok(false);
        }
        let claimed = lanes::claim(&self.store, LaneKind::Outage, &self.owner, self.lease, 1).await?;
        let Some(lease) = claimed.into_iter().next() else { return Ok(false) };
        let told = match outages::to_tell(self.store.reader()).await? {
            Some(outage) => self.tell_some(&outage).await?,
            None => None,
        };
        match self.end(&lease, told).await {
            // Another has taken over meanwhile; whom we told, it finds told.
            Err(StoreError::Stale) => Ok(false),
            ended => ended,
        }
    }

    async fn tell_some(&self, outage: &Outage) -> Result<Option<(OutageId, NotifiedBatch)>, StoreError> {
        let (Some(telling), Some(notice)) = (outage.telling, outage.notice()) else { return Ok(None) };
        let news = (outage.id, telling.edge);
        let next = outages::untold(&self.store, news, telling.reached, AT_ONCE).await?;
        let told = join_all(next.iter().map(|id| self.tell(*id, notice.clone()))).await;
        let has_missed = told.contains(&false);
        Ok(Some((outage.id, NotifiedBatch { edge: telling.edge, reached: next.last().copied(), has_missed })))
    }

    /// Whether a taxpayer has had its turn. One whose books cannot be written at all has had it.
    async fn tell(&self, id: TaxpayerId, notice: OutageNotice) -> bool {
        let Err(failure) = self.taxpayers.notify_outage(id, notice).await else { return true };
        let is_passing = is_passing(&failure);
        if is_passing {
            tracing::info!(taxpayer = %id, %failure, "a taxpayer could not be told of an outage yet");
        } else {
            tracing::error!(taxpayer = %id, %failure, "a taxpayer cannot be told of an outage");
        }
        !is_passing
    }

    async fn end(&self, lease: &Lease, told: Option<(OutageId, NotifiedBatch)>) -> Result<bool, StoreError> {
        let tx = self.store.begin().await?;
        lanes::fence(&tx, lease).await?;
        let mut delay = Duration::ZERO;
        if let Some((id, part)) = told
            && let Some(outage) = outages::with_id(&tx, id).await?
        {
            let after = outage.told(part, self.clock.now());
            let starts_again =
                part.reached.is_none() && after.telling.is_some_and(|next| next.edge == part.edge);
            delay = if starts_again { AFTER_MISS } else { Duration::ZERO };
            outages::save(&tx, &after).await?;
        }
        let is_left = outages::to_tell(&tx).await?.is_some();
        lanes::release(&tx, lease, is_left.then_some(delay)).await?;
        tx.commit().await?;
        Ok(is_left && delay.is_zero())
    }
}

/// Whether the same may work in a moment.
fn is_passing(failure: &TaxpayerError) -> bool {
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

/// Outages on real databases: seen by one or several replicas, told once whatever happens in between.
#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::actors::outage::Watch;
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

    /// A replica: its own actors on a database that others may share.
    struct Replica {
        watch: Watch,
        crier: Crier,
        clock: Arc<MockClock>,
        arbiters: Arc<Arbiters>,
    }

    impl Replica {
        fn new(test: &TestStore, name: &str, clock: &Arc<MockClock>) -> Self {
            let arbiters = Arc::new(Arbiters::start(1));
            let taxpayers = Arc::new(TaxpayerHandle::in_tests(&test.store, clock.clone(), &arbiters));
            let (store, quiet) = (test.store.clone(), SignedDuration::try_from(QUIET).unwrap());
            let watch = Watch { store: store.clone(), clock: clock.clone(), quiet };
            let (owner, lease) = (name.to_owned(), Duration::from_secs(30));
            let crier = Crier { store, clock: clock.clone(), taxpayers, owner, lease };
            Self { watch, crier, clock: Arc::clone(clock), arbiters }
        }

        fn now(&self) -> Timestamp {
            self.clock.now()
        }

        /// A breaker that is open and whose last call failed just now.
        async fn sees_it_fail(&self) {
            let held_since = Some(self.now());
            self.sees(OperationCalls {
                operation: "sign",
                held_since,
                failed_at: held_since,
                answered_at: None,
            })
            .await;
        }

        async fn sees_an_answer(&self) {
            let answered_at = Some(self.now());
            self.sees(OperationCalls { operation: "sign", held_since: None, failed_at: None, answered_at })
                .await;
        }

        async fn sees(&self, sighting: OperationCalls) {
            self.watch.look(&[sighting], async || panic!("nobody has to ask")).await.unwrap();
        }

        /// Takes in closed breakers that were never used.
        async fn sees_nothing(&self, is_alive: bool) {
            self.watch.look(&[], async || is_alive).await.unwrap();
        }

        async fn tell_all(&self) -> usize {
            let mut parts = 1;
            while self.crier.tell_due().await.unwrap() {
                parts += 1;
            }
            parts
        }

        async fn subscribe(&self, id: i64, names: &[&str]) {
            let id = TaxpayerId(id);
            self.crier.taxpayers.onboard(id, Onboarding::sample(id)).await.unwrap();
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let url = "https://hooks.example.com".to_owned();
            let retry_schedule = ScheduleChange::Keep;
            let by = Actor::CommandLine;
            let change = WebhookChange { url, enabled_events: Some(names), retry_schedule, by };
            self.crier.taxpayers.set_webhook(id, change).await.unwrap();
        }

        async fn close(self) {
            self.arbiters.stop();
            self.arbiters.join().await;
        }
    }

    fn clock() -> Arc<MockClock> {
        Arc::new(MockClock::at(Timestamp::from_second(1_800_000_000).unwrap()))
    }

    /// The log of a taxpayer, which must be whole, without the setup of its webhook.
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
    async fn those_that_name_the_events_are_told_once_and_nobody_else_is() {
        for test in stores().await {
            let replica = Replica::new(&test, "one", &clock());
            replica.subscribe(1, &[STARTED, ENDED]).await;
            replica.subscribe(2, &["invoice.created"]).await;
            replica.subscribe(3, &[ENDED]).await;
            replica.subscribe(4, &[STARTED]).await;
            let endpoint = webhooks::owned_by(test.store.reader(), TaxpayerId(4)).await.unwrap().unwrap();
            let gone = (TaxpayerId(4), endpoint.updated_at, "it is gone".into());
            replica.crier.taxpayers.disable_endpoint(gone.0, gone.1, gone.2).await.unwrap();
            replica.sees_it_fail().await;
            replica.tell_all().await;
            assert_eq!((names(&test, 1).await, names(&test, 3).await), (vec![STARTED], vec![]));
            replica.clock.advance(Duration::from_secs(30));
            replica.sees_an_answer().await;
            replica.tell_all().await;
            assert!(last(&test).await.is_open(), "30 s after the last failure");
            replica.clock.advance(Duration::from_secs(30));
            replica.sees_an_answer().await;
            replica.tell_all().await;
            assert_eq!(names(&test, 1).await, [STARTED, ENDED]);
            assert_eq!(names(&test, 2).await, [""; 0]);
            assert_eq!((names(&test, 3).await, names(&test, 4).await), (vec![ENDED], vec![STARTED]));
            assert_eq!(last(&test).await.duration_s(replica.now()), 30, "until the first answer");
            assert_eq!(
                deliveries::count_pending(test.store.reader()).await.unwrap(),
                3,
                "not to whom is gone"
            );
            replica.close().await;
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn many_are_told_a_part_at_a_time_and_a_walk_goes_on_where_it_was() {
        for test in stores().await {
            let many = i64::try_from(AT_ONCE).unwrap() * 2 + 3;
            let replica = Replica::new(&test, "one", &clock());
            for id in 1..=many {
                replica.subscribe(id, &[STARTED]).await;
            }
            replica.sees_it_fail().await;
            assert!(replica.crier.tell_due().await.unwrap(), "there are more");
            let telling = last(&test).await.telling.unwrap();
            assert_eq!(
                (telling.edge, telling.reached),
                (OutageEdge::Started, TaxpayerId(AT_ONCE.cast_signed()))
            );
            assert_eq!(names(&test, many).await, [""; 0]);
            let other = Replica::new(&test, "two", &replica.clock);
            assert_eq!(other.tell_all().await, 3, "two parts, and nobody left");
            for id in 1..=many {
                assert_eq!(names(&test, id).await, [STARTED], "taxpayer {id}");
            }
            assert_eq!(last(&test).await.telling, None);
            let told = outages::told_of(&test.store, &[last(&test).await]).await.unwrap();
            assert_eq!(told.values().sum::<u64>(), many.cast_unsigned());
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
            replica.sees_it_fail().await;
            // The first was told, and then the process was gone before its place was written down.
            let notice = last(&test).await.notice().unwrap();
            let twice = [notice.clone(), notice.clone()]
                .map(|notice| replica.crier.taxpayers.notify_outage(TaxpayerId(1), notice));
            assert!(futures_util::future::join_all(twice).await.into_iter().all(|told| told.is_ok()));
            let other = Replica::new(&test, "two", &replica.clock);
            other.tell_all().await;
            other.crier.taxpayers.notify_outage(TaxpayerId(2), notice).await.unwrap();
            assert_eq!((names(&test, 1).await, names(&test, 2).await), (vec![STARTED], vec![STARTED]));
            replica.close().await;
            other.close().await;
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn of_replicas_that_see_the_same_outage_one_writes_it_down_and_any_ends_it() {
        for test in stores().await {
            let clock = clock();
            let [one, other] = ["one", "two"].map(|name| Replica::new(&test, name, &clock));
            one.subscribe(1, &[STARTED, ENDED]).await;
            futures_util::future::join(one.sees_it_fail(), other.sees_it_fail()).await;
            one.tell_all().await;
            other.tell_all().await;
            let (found, total) = outages::page(&test.store, Page { number: 1, per_page: 10 }).await.unwrap();
            assert_eq!((found.len(), total), (1, 1));
            // The first one is gone; the other one starts again, with closed breakers.
            let restarted = Replica::new(&test, "three", &clock);
            clock.advance(Duration::from_secs(90));
            restarted.sees_nothing(true).await;
            assert!(last(&test).await.is_open(), "nobody has heard an answer");
            restarted.sees_an_answer().await;
            restarted.tell_all().await;
            assert_eq!(names(&test, 1).await, [STARTED, ENDED]);
            for replica in [one, other, restarted] {
                replica.close().await;
            }
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn an_outage_of_what_nobody_calls_any_more_ends_when_the_authority_says_that_it_is_well() {
        for test in stores().await {
            let replica = Replica::new(&test, "one", &clock());
            replica.sees_it_fail().await;
            replica.clock.advance(Duration::from_mins(5));
            replica.sees_nothing(false).await;
            assert!(last(&test).await.is_open());
            replica.clock.advance(Duration::from_mins(5));
            replica.sees_nothing(true).await;
            assert_eq!(last(&test).await.duration_s(replica.now()), 600);
            replica.close().await;
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_breaker_that_flaps_is_one_pair_of_events() {
        for test in stores().await {
            let replica = Replica::new(&test, "one", &clock());
            replica.subscribe(1, &[STARTED, ENDED]).await;
            for _ in 0..30 {
                replica.sees_it_fail().await;
                replica.tell_all().await;
                replica.clock.advance(Duration::from_secs(8));
                replica.sees_an_answer().await;
                replica.tell_all().await;
                replica.clock.advance(Duration::from_secs(8));
            }
            replica.clock.advance(QUIET);
            replica.sees_an_answer().await;
            replica.tell_all().await;
            assert_eq!(names(&test, 1).await, [STARTED, ENDED]);
            replica.close().await;
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn an_outage_that_is_over_before_all_were_told_is_told_from_its_start() {
        for test in stores().await {
            let replica = Replica::new(&test, "one", &clock());
            replica.subscribe(1, &[STARTED, ENDED]).await;
            replica.sees_it_fail().await;
            replica.clock.advance(Duration::from_secs(90));
            replica.sees_an_answer().await;
            // And the next one begins meanwhile.
            replica.clock.advance(Duration::from_secs(1));
            replica.sees_it_fail().await;
            replica.tell_all().await;
            assert_eq!(names(&test, 1).await, [STARTED, ENDED, STARTED]);
            replica.close().await;
            test.store.close().await;
        }
    }
}
