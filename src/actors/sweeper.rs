//! Deletes what has had its time: the keys of requests and the answers they were given. A round takes bounded
//! batches until nothing is due; replicas that sweep at once pass over each other's rows.

use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use tokio::time::sleep;

use crate::actors::supervision::{ActorKind, Arbiters, RestartPolicy, Tree, supervise};
use crate::domain::kernel::clock::SharedClock;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::idempotency;

const EVERY: Duration = Duration::from_mins(1);
/// Rows of one transaction, so that writers wait for none of them for long.
const ROWS_MAX: u64 = 500;
/// Between two batches of a round.
const PAUSE: Duration = Duration::from_millis(50);

/// What the sweeper works with.
#[derive(Clone)]
pub struct Broom {
    pub store: Store,
    pub clock: SharedClock,
}

impl Broom {
    /// Deletes one batch of what is due now; whether there may be more.
    pub async fn sweep(&self) -> Result<bool, StoreError> {
        idempotency::sweep(&self.store, self.clock.now(), ROWS_MAX).await
    }

    /// Runs under supervision on the background arbiter.
    pub fn start(self, tree: &Tree, arbiters: &Arbiters) -> Addr<SweeperActor> {
        let node = tree.node(ActorKind::Janitor, 0, "sweeper");
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
                        tracing::warn!(%error, "what has expired could not be deleted; it is tried again");
                        break;
                    }
                }
            }
        }
    }
}

/// The shell that calls the broom.
pub struct SweeperActor {
    broom: Broom,
    /// Its own address: it stays though nobody sends to it.
    _address: Addr<Self>,
}

impl Actor for SweeperActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(self.broom.clone().run().into_actor(self));
    }
}

impl Supervised for SweeperActor {}
