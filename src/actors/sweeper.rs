//! Deletes expired idempotency keys in small batches. Replicas may do this at once: each skips locked rows.

use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use tokio::time::sleep;

use crate::actors::supervision::{Arbiters, NodeKind, RestartPolicy, Tree, supervise};
use crate::domain::kernel::clock::SharedClock;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::idempotency;

const EVERY: Duration = Duration::from_mins(1);
/// The maximum number of rows deleted in one transaction. It is small, so that other writers do not wait long.
const ROWS_MAX: u64 = 500;
/// The pause between two batches of a round.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub struct ExpiredKeySweeper {
    pub store: Store,
    pub clock: SharedClock,
}

impl ExpiredKeySweeper {
    /// Deletes one batch of expired keys. Returns true if there may be more.
    pub async fn sweep(&self) -> Result<bool, StoreError> {
        idempotency::sweep(&self.store, self.clock.now(), ROWS_MAX).await
    }

    /// Starts the sweeper under supervision on the background arbiter.
    pub fn start(self, tree: &Tree, arbiters: &Arbiters) -> Addr<SweeperActor> {
        let node = tree.node(NodeKind::Janitor, 0, "sweeper");
        supervise(arbiters.background(), node, RestartPolicy::default(), move |ctx| SweeperActor {
            broom: self,
            _address: ctx.address(),
        })
    }

    async fn run(self) {
        loop {
            sleep(EVERY).await;
            loop {
                match self.sweep().await {
                    Ok(true) => sleep(PAUSE).await,
                    Ok(false) => break,
                    Err(error) => {
                        tracing::warn!(%error, "failed to delete expired idempotency keys; will retry");
                        break;
                    }
                }
            }
        }
    }
}

pub struct SweeperActor {
    broom: ExpiredKeySweeper,
    /// The actor's own address. actix does not stop the actor while this address exists.
    _address: Addr<Self>,
}

impl Actor for SweeperActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(self.broom.clone().run().into_actor(self));
    }
}

impl Supervised for SweeperActor {}
