//! Holds this process's lease on cached API keys while requests need it. With the lease, requests may use cached keys.
//! Without it, they read their keys from the database.

use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use supervision::{Arbiters, RestartPolicy, Tree, supervise};
use tokio::time::sleep;

use crate::actors::kinds;
use crate::store::Store;
use crate::store::accounts::key_leases::KeyLease;

/// The pause after the database has failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub struct KeyLeaseActor {
    store: Store,
    /// The actor's own address. actix does not stop the actor while this address exists.
    _address: Addr<Self>,
}

impl KeyLeaseActor {
    /// Starts the actor under supervision on the background arbiter.
    pub fn start(store: Store, tree: &Tree, arbiters: &Arbiters) -> Addr<Self> {
        let node = tree.add_node(kinds::JANITOR, 0, "key-leases");
        supervise(
            arbiters.background(),
            node,
            RestartPolicy::default(),
            move |ctx| Self {
                store,
                _address: ctx.address(),
            },
        )
    }
}

impl Actor for KeyLeaseActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let mut lease = KeyLease::new(self.store.clone());
        let hold = async move {
            loop {
                if let Err(error) = lease.hold_while_needed().await {
                    tracing::warn!(%error, "failed to hold the lease of cached API keys; will retry");
                    sleep(RETRY_AFTER).await;
                }
            }
        };
        ctx.spawn(hold.into_actor(self));
    }
}

impl Supervised for KeyLeaseActor {}
