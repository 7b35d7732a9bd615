//! Fetches the lists one by one. A list that cannot be fetched keeps its last content and is tried again soon.

use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use tokio::time::sleep;

use crate::actors::supervision::{Arbiters, Kind, Policy, Tree, supervise};
use crate::authority::{Authority, ResourceList};
use crate::domain::catalog::{Catalog, List, SharedCatalog};
use crate::domain::clock::SharedClock;
use crate::store::database::Store;
use crate::store::failure::StoreError;
use crate::store::reference_lists;

/// How old the lists may grow.
const REFRESH_EVERY: Duration = Duration::from_hours(6);
/// When to try again after a list could not be fetched.
const RETRY_EVERY: Duration = Duration::from_secs(30);

/// Keeps the snapshot.
#[derive(Clone)]
pub struct Snapshot {
    pub store: Store,
    pub authority: Authority,
    pub catalog: SharedCatalog,
    pub clock: SharedClock,
}

impl Snapshot {
    /// Shows what the database has of earlier times.
    pub async fn load(&self) -> Result<(), StoreError> {
        let (catalog, _) = reference_lists::load(&self.store).await?;
        self.catalog.set(catalog);
        Ok(())
    }

    /// Fetches every list; how many could not be.
    pub async fn refresh(&self) -> Result<usize, StoreError> {
        let mut catalog = Catalog::clone(&self.catalog.get());
        let mut missed = 0;
        for list in List::ALL {
            let Some(resource) = ResourceList::named(list.as_str()) else { continue };
            match self.authority.resource(resource).await {
                Ok(items) => {
                    reference_lists::save(&self.store, *list, &items, self.clock.now()).await?;
                    catalog.load(*list, &items);
                }
                Err(failure) => {
                    missed += 1;
                    tracing::warn!(%list, %failure, "a reference list could not be fetched; the last one stands");
                }
            }
        }
        self.catalog.set(catalog);
        Ok(missed)
    }

    /// Fetches every list and says when to do it again.
    pub async fn keep_fresh(&self) -> Duration {
        match self.refresh().await {
            Ok(0) => REFRESH_EVERY,
            Ok(_) => RETRY_EVERY,
            Err(error) => {
                tracing::warn!(%error, "the reference lists could not be kept");
                RETRY_EVERY
            }
        }
    }

    /// Runs under supervision on the office arbiter, the first time after `wait`.
    pub fn start(self, tree: &Tree, arbiters: &Arbiters, wait: Duration) -> Addr<SnapshotActor> {
        let node = tree.node(Kind::Reference, 0, "reference-lists");
        supervise(arbiters.office(), node, Policy::default(), move |ctx| SnapshotActor {
            snapshot: self,
            wait,
            _address: ctx.address(),
        })
    }

    async fn run(self, mut wait: Duration) {
        loop {
            sleep(wait).await;
            wait = self.keep_fresh().await;
        }
    }
}

/// The shell that keeps the snapshot fresh.
pub struct SnapshotActor {
    snapshot: Snapshot,
    wait: Duration,
    /// Its own address: it stays though nobody sends to it.
    _address: Addr<Self>,
}

impl Actor for SnapshotActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(self.snapshot.clone().run(self.wait).into_actor(self));
    }
}

impl Supervised for SnapshotActor {}
