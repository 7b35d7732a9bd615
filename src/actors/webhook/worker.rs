//! The actor of an endpoint: a shell around the courier. The pool is the number of endpoints served at once.

use std::sync::Arc;

use futures_util::FutureExt;

use crate::actors::dispatch::{self, Dispatcher, Duty, Handled};
use crate::actors::supervision::{
    Admission, Arbiters, Batch, CommandId, Kind, Policy, Registry, Settings, Tree, Worker, serial,
};
use crate::actors::webhook::courier::{Satchel, Stop};
use crate::domain::ids::TaxpayerId;
use crate::store::failure::StoreError;
use crate::store::lanes::Lease;

/// Delivers what is due to the endpoint of a lane.
#[derive(Debug)]
pub struct Deliver(pub Lease);

/// The actors of endpoints with work, by the key of their lane.
pub type WebhookActors = Registry<String, Deliver, Handled>;

struct WebhookActor {
    satchel: Arc<Satchel>,
}

impl Worker for WebhookActor {
    type Command = Deliver;
    type Reply = Handled;

    fn name(_: &Deliver) -> &'static str {
        "deliver"
    }

    async fn work(self, batch: Batch<Deliver>) -> (Self, Vec<(CommandId, Handled)>) {
        let mut replies = Vec::new();
        for task in batch.tasks() {
            replies.push((task.id, self.deliver(&task.0).await));
        }
        (self, replies)
    }
}

impl WebhookActor {
    async fn deliver(&self, lease: &Lease) -> Handled {
        let Ok(taxpayer) = lease.key.parse().map(TaxpayerId) else { return Handled::Unfinished };
        match self.satchel.deliver(lease, taxpayer).await {
            Ok(handled) => handled,
            Err(Stop::Store(StoreError::Stale)) => Handled::Released,
            Err(stop) => {
                tracing::warn!(%taxpayer, error = %stop, "deliveries stopped; they will go on later");
                Handled::Unfinished
            }
        }
    }
}

/// Makes the registry of the pool's actors and the dispatcher that feeds it.
pub fn dispatcher(
    satchel: Arc<Satchel>,
    duty: Duty,
    tree: &Tree,
    arbiters: &Arc<Arbiters>,
) -> (Dispatcher, Arc<WebhookActors>) {
    let limits = dispatch::limits(&duty);
    let admission = Admission::new(limits, Arc::clone(tree.counters()));
    let settings = Settings { kind: Kind::Webhook, policy: Policy::default() };
    let store = satchel.store.clone();
    let actors = Arc::new(Registry::new(tree, arbiters, admission, settings, move |_: &String, seat| {
        let satchel = Arc::clone(&satchel);
        serial::start(seat, 1, move || WebhookActor { satchel: Arc::clone(&satchel) })
    }));
    let registry = Arc::clone(&actors);
    let dispatcher = Dispatcher::new(store, duty, move |lease| {
        let actors = Arc::clone(&registry);
        async move { dispatch::rounds(&actors, &lease.key, || Deliver(lease.clone())).await }.boxed_local()
    });
    (dispatcher, actors)
}
