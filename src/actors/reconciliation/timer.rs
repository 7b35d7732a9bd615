//! The timer of the reconciler: it asks whether a round is due, and nothing else.

use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use tokio::time::timeout;

use crate::actors::reconciliation::desk::Reconciler;
use crate::actors::supervision::{ActorKind, Arbiters, RestartPolicy, Tree, supervise};

/// How often to look whether a round is due, when nobody says so.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Reconciler {
    /// Runs under supervision on the background arbiter.
    pub fn start(self, tree: &Tree, arbiters: &Arbiters) -> Addr<ReconcilerActor> {
        let node = tree.node(ActorKind::Inbound, 0, "reconciler");
        supervise(arbiters.background(), node, RestartPolicy::default(), |ctx| ReconcilerActor {
            reconciler: self,
            _address: ctx.address(),
        })
    }

    async fn run(self) {
        loop {
            if let Err(error) = self.reconcile_due().await {
                tracing::warn!(%error, "the reconciler could not take its turn");
            }
            // Woken or not, the next look is the same.
            let _ = timeout(LOOK_EVERY, self.door.asked.notified()).await;
        }
    }
}

/// The shell that takes the turns.
pub struct ReconcilerActor {
    reconciler: Reconciler,
    /// Its own address: it stays though nobody sends to it.
    _address: Addr<Self>,
}

impl Actor for ReconcilerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(self.reconciler.clone().run().into_actor(self));
    }
}

impl Supervised for ReconcilerActor {}
