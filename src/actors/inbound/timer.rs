//! The timer of the pull: it asks whether a turn is due, and nothing else.

use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use tokio::time::sleep;

use crate::actors::inbound::pull::Pull;
use crate::actors::supervision::{ActorKind, Arbiters, RestartPolicy, Tree, supervise};

/// How often to look whether a turn is due.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Pull {
    /// Runs under supervision on the background arbiter.
    pub fn start(self, tree: &Tree, arbiters: &Arbiters) -> Addr<PullActor> {
        let node = tree.node(ActorKind::Inbound, 0, "transit-pull");
        supervise(arbiters.background(), node, RestartPolicy::default(), |ctx| PullActor {
            pull: self,
            _address: ctx.address(),
        })
    }

    async fn run(self) {
        loop {
            let is_left = self.pull_due().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "the pull of invoices in transit could not take its turn");
                false
            });
            if !is_left {
                sleep(LOOK_EVERY).await;
            }
        }
    }
}

/// The shell that takes the turns.
pub struct PullActor {
    pull: Pull,
    /// Its own address: it stays though nobody sends to it.
    _address: Addr<Self>,
}

impl Actor for PullActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(self.pull.clone().run().into_actor(self));
    }
}

impl Supervised for PullActor {}
