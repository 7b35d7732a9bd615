//! The timer of the watch and of the crier: it asks whether something is due, and nothing else. The two do not wait
//! for each other, so that an outage is seen to end while its start is still being told.

use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use tokio::time::sleep;

use crate::actors::outage::{Crier, Watch};
use crate::actors::supervision::{ActorKind, Arbiters, RestartPolicy, Tree, supervise};
use crate::authority::Authority;

/// How often to look. Breakers that open within one look are named together.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Between two parts of a walk, so that others get at the database.
const PAUSE: Duration = Duration::from_millis(50);

/// The shell that runs both.
pub struct OutageActor {
    watch: Watch,
    authority: Authority,
    crier: Crier,
    /// Its own address: it stays though nobody sends to it.
    _address: Addr<Self>,
}

impl OutageActor {
    /// Runs under supervision on the background arbiter.
    pub fn start(
        (watch, authority): (Watch, Authority),
        crier: Crier,
        tree: &Tree,
        arbiters: &Arbiters,
    ) -> Addr<Self> {
        let node = tree.node(ActorKind::Inbound, 0, "outages");
        supervise(arbiters.background(), node, RestartPolicy::default(), |ctx| Self {
            watch,
            authority,
            crier,
            _address: ctx.address(),
        })
    }
}

impl Actor for OutageActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(watch(self.watch.clone(), self.authority.clone()).into_actor(self));
        ctx.spawn(tell(self.crier.clone()).into_actor(self));
    }
}

impl Supervised for OutageActor {}

async fn watch(watch: Watch, authority: Authority) {
    loop {
        sleep(LOOK_EVERY).await;
        if let Err(error) = watch.look_at(&authority).await {
            tracing::warn!(%error, "what is seen of the authority could not be written down; it will be");
        }
    }
}

async fn tell(crier: Crier) {
    loop {
        let is_left = crier.tell_due().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "taxpayers could not be told of an outage; they will be");
            false
        });
        sleep(if is_left { PAUSE } else { LOOK_EVERY }).await;
    }
}
