//! Runs the detector and the notifier periodically. The two run independently, so that the end of an outage is detected
//! while taxpayers are still being notified of its start.

use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use tokio::time::sleep;

use crate::actors::outage::{OutageDetector, OutageNotifier};
use crate::actors::supervision::{Arbiters, NodeKind, RestartPolicy, Tree, supervise};
use crate::authority::Authority;

/// The interval at which the breakers are observed. Breakers that open within one interval are reported together.
const OBSERVE_EVERY: Duration = Duration::from_secs(1);
/// The pause between two batches of notifications. It leaves the database free for other work.
const BATCH_PAUSE: Duration = Duration::from_millis(50);

/// Runs the detector and the notifier as two tasks.
pub struct OutageActor {
    detector: OutageDetector,
    authority: Authority,
    notifier: OutageNotifier,
    /// The actor's own address. actix does not stop the actor while this address exists.
    _address: Addr<Self>,
}

impl OutageActor {
    /// Starts the actor under supervision on the background arbiter.
    pub fn start(
        detector: OutageDetector,
        authority: Authority,
        notifier: OutageNotifier,
        tree: &Tree,
        arbiters: &Arbiters,
    ) -> Addr<Self> {
        let node = tree.node(NodeKind::Inbound, 0, "outages");
        supervise(arbiters.background(), node, RestartPolicy::default(), |ctx| Self {
            detector,
            authority,
            notifier,
            _address: ctx.address(),
        })
    }
}

impl Actor for OutageActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(detect(self.detector.clone(), self.authority.clone()).into_actor(self));
        ctx.spawn(notify(self.notifier.clone()).into_actor(self));
    }
}

impl Supervised for OutageActor {}

async fn detect(detector: OutageDetector, authority: Authority) {
    loop {
        sleep(OBSERVE_EVERY).await;
        if let Err(error) = detector.observe_authority(&authority).await {
            tracing::warn!(%error, "failed to record an observation of the authority; will retry");
        }
    }
}

async fn notify(notifier: OutageNotifier) {
    loop {
        let is_more_due = notifier.notify_due().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "failed to notify taxpayers of an outage; will retry");
            false
        });
        sleep(if is_more_due { BATCH_PAUSE } else { OBSERVE_EVERY }).await;
    }
}
