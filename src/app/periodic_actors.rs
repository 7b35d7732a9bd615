//! The actors that repeat work at intervals, such as the janitor, checkpoints, the deletion of old rows, and the watch
//! over clocks and outages.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::Addr;
use jiff::SignedDuration;
use supervision::watchdog;
use supervision::{Period, PeriodicActor};

use crate::actors::checkpoint::{self, Checkpointer};
use crate::actors::clock_watch::{self, ClockWatch};
use crate::actors::key_usage::{self, KeyUsage};
use crate::actors::outage::{OBSERVE_EVERY, OutageDetector};
use crate::actors::quarantine_lift::{self, QuarantineLift};
use crate::actors::reference::ReferenceRefresher;
use crate::actors::request_log::{self, RequestLog};
use crate::actors::taxpayer::quarantined;
use crate::actors::{kinds, sweeper};
use crate::app::build_context::BuildContext;

/// The interval at which the janitor runs.
const JANITOR_INTERVAL: Duration = Duration::from_secs(1);
/// An actor that failed too often stays down for this long before it may start again.
const RESTART_PAUSE: Duration = Duration::from_mins(1);

impl BuildContext<'_> {
    pub(super) fn start_periodic<W, E>(&self, period: Period, work: W) -> Addr<PeriodicActor>
    where
        W: AsyncFn() -> Result<Option<Duration>, E> + Clone + Send + 'static,
        E: std::fmt::Display + 'static,
    {
        PeriodicActor::start(&self.tree, &self.arbiters, period, work)
    }

    /// Starts periodic checkpoints. Returns `None` if the interval is 0, which means that checkpoints are made on
    /// demand only.
    pub(super) fn start_checkpoints(
        &self,
        checkpointer: Checkpointer,
    ) -> Option<Addr<PeriodicActor>> {
        let interval = Duration::from_secs(self.settings.checkpoints.every_s);
        if interval.is_zero() {
            return None;
        }
        let period = Period::new(kinds::JANITOR, "checkpoints", interval);
        let period = Period {
            first_after: interval.min(checkpoint::FIRST_DELAY_MAX),
            ..period
        };
        Some(self.start_periodic(period, async move || {
            checkpointer.checkpoint().await.map(|()| None)
        }))
    }

    pub(super) fn start_key_usage_writer(&self, usage: &Arc<KeyUsage>) -> Addr<PeriodicActor> {
        let usage = Arc::clone(usage);
        let store = self.store.clone();
        let clock = self.clock.clone();
        let period = Period::new(kinds::JANITOR, "key-usage", key_usage::WRITE_EVERY);
        self.start_periodic(period, async move || {
            usage
                .write_recorded_uses(&store, &clock)
                .await
                .map(|()| None)
        })
    }

    pub(super) fn start_request_log_writer(&self, log: &Arc<RequestLog>) -> Addr<PeriodicActor> {
        let log = Arc::clone(log);
        let store = self.store.clone();
        let period = Period::new(kinds::JANITOR, "request-log", request_log::WRITE_EVERY);
        self.start_periodic(period, async move || log.write_batch(&store).await)
    }

    pub(super) fn start_sweeper(&self, log: &Arc<RequestLog>) -> Addr<PeriodicActor> {
        let store = self.store.clone();
        let clock = self.clock.clone();
        let log = Arc::clone(log);
        let period = Period::new(kinds::JANITOR, "sweeper", sweeper::SWEEP_EVERY);
        self.start_periodic(period, async move || {
            sweeper::sweep(&store, &clock, &log).await
        })
    }

    pub(super) fn start_quarantine_writer(&self) -> Addr<PeriodicActor> {
        let store = self.store.clone();
        let tree = self.tree.clone();
        let period = Period::new(kinds::JANITOR, "quarantine", quarantined::STORE_EVERY);
        self.start_periodic(period, async move || {
            quarantined::store_all(&store, &tree).await.map(|()| None)
        })
    }

    /// Starts the periodic work that lifts quarantines. Returns `None` if `cluster.quarantine_lift_s` is 0, which means
    /// never.
    pub(super) fn start_quarantine_lift(&self) -> Option<Addr<PeriodicActor>> {
        let lift_after = Duration::from_secs(self.settings.cluster.quarantine_lift_s);
        if lift_after.is_zero() {
            return None;
        }
        let lift = QuarantineLift {
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            clock: self.clock.clone(),
            started_at: self.clock.now(),
            lift_after: SignedDuration::try_from(lift_after).unwrap_or(SignedDuration::MAX),
            last_run: Arc::default(),
        };
        let interval = lift_after.min(quarantine_lift::LOOK_EVERY);
        let period = Period::new(kinds::JANITOR, "quarantine-lift", interval);
        Some(self.start_periodic(period, async move || lift.lift_due_quarantines().await))
    }

    pub(super) fn start_clock_watch(&self) -> Addr<PeriodicActor> {
        let watch = ClockWatch::new(self.store.clone(), self.clock.clone(), self.lease);
        let period = Period::new(kinds::JANITOR, "clock-watch", clock_watch::LOOK_EVERY);
        let period = Period {
            first_after: Duration::ZERO,
            ..period
        };
        self.start_periodic(period, async move || watch.check_clocks().await)
    }

    pub(super) fn start_outage_detector(&self) -> Addr<PeriodicActor> {
        let clear_after =
            i64::try_from(self.settings.authority.outage_clear_after_s).unwrap_or(i64::MAX);
        let detector = OutageDetector {
            store: self.store.clone(),
            clock: self.clock.clone(),
            quiet: SignedDuration::from_secs(clear_after),
        };
        let authority = self.authority.clone();
        let period = Period::new(kinds::INBOUND, "outages", OBSERVE_EVERY);
        self.start_periodic(period, async move || {
            detector.observe_authority(&authority).await.map(|()| None)
        })
    }

    pub(super) fn start_reference_refresh(
        &self,
        refresher: ReferenceRefresher,
        fetch_delay: Duration,
    ) -> Addr<PeriodicActor> {
        let period = Period::new(kinds::REFERENCE, "reference-lists", fetch_delay);
        self.start_periodic(period, async move || {
            Ok::<_, Infallible>(Some(refresher.refresh_and_schedule().await))
        })
    }

    /// Starts the janitor. It stops idle actors, lets actors that failed too often start again after `RESTART_PAUSE`,
    /// and reports actors that spend too long on one batch.
    pub(super) fn start_janitor(&self) -> Addr<PeriodicActor> {
        let settings = self.settings;
        let idle = Duration::from_secs(settings.taxpayers.idle_s);
        let active_max = settings.taxpayers.active_max;
        let taxpayers = Arc::clone(&self.taxpayers);
        let tree = self.tree.clone();
        let external_timeout = Duration::from_secs(
            settings
                .authority
                .timeout_s
                .max(settings.webhooks.timeout_s),
        );
        let period = Period::new(kinds::JANITOR, "janitor", JANITOR_INTERVAL);
        self.start_periodic(period, async move || {
            let now = Instant::now();
            taxpayers.registry().passivate_idle(now, idle, active_max);
            taxpayers.registry().allow_restart(now, RESTART_PAUSE);
            watchdog::scan(
                &tree,
                |kind| kinds::watchdog_limits(kind, external_timeout),
                now,
            );
            Ok::<_, Infallible>(None)
        })
    }
}
