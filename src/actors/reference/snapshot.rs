//! Fetches the lists one by one. A list that cannot be fetched keeps its last content and is tried again soon.

use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use tokio::time::sleep;

use crate::actors::supervision::{ActorKind, Arbiters, RestartPolicy, Tree, supervise};
use crate::authority::{Authority, ResourceList};
use crate::domain::kernel::clock::SharedClock;
use crate::domain::reference::catalog::{Catalog, ReferenceList, SharedCatalog};
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::operations::reference_lists;

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
    /// Shows what the database has of earlier times, and says when to fetch every list again. A remote authority is
    /// asked as soon as it can be, meanwhile. The embedded one answers at once: the first request finds its lists.
    pub async fn begin(&self, is_embedded: bool) -> Result<Duration, StoreError> {
        let (catalog, oldest) = reference_lists::load(&self.store).await?;
        self.catalog.set(catalog);
        if !is_embedded {
            return Ok(Duration::ZERO);
        }
        let age = oldest.and_then(|at| Duration::try_from(self.clock.now().duration_since(at)).ok());
        match age.map_or(Duration::ZERO, |age| REFRESH_EVERY.saturating_sub(age)) {
            Duration::ZERO => Ok(self.keep_fresh().await),
            left => Ok(left),
        }
    }

    /// Fetches every list; how many could not be.
    pub async fn refresh(&self) -> Result<usize, StoreError> {
        let mut catalog = Catalog::clone(&self.catalog.get());
        let mut missed = 0;
        for list in ReferenceList::ALL {
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

    /// Runs under supervision on the background arbiter, the first time after `wait`.
    pub fn start(self, tree: &Tree, arbiters: &Arbiters, wait: Duration) -> Addr<SnapshotActor> {
        let node = tree.node(ActorKind::Reference, 0, "reference-lists");
        supervise(arbiters.background(), node, RestartPolicy::default(), move |ctx| SnapshotActor {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::authority::testing::authority;
    use crate::domain::kernel::clock::{Clock, MockClock};
    use crate::store::testing::stores;

    #[tokio::test]
    async fn an_embedded_authority_is_asked_at_a_start_where_a_list_is_missing_or_old() {
        for test in stores().await {
            let clock = Arc::new(MockClock::at(Timestamp::UNIX_EPOCH));
            let (store, now) = (test.store.clone(), clock.clone() as SharedClock);
            // Nobody is there: whoever asks it comes back soon.
            let authority = authority("http://127.0.0.1:9", now.clone());
            let snapshot = Snapshot { store, authority, catalog: SharedCatalog::default(), clock: now };
            let (first, others) = ReferenceList::ALL.split_first().unwrap();
            let save = async |list: &ReferenceList| {
                let items = json!([{ "code": "380", "value": "Invoice" }]);
                reference_lists::save(&snapshot.store, *list, &items, clock.now()).await.unwrap();
            };
            save(first).await;
            assert_eq!(snapshot.begin(true).await.unwrap(), RETRY_EVERY, "others are missing");
            clock.advance(Duration::from_hours(1));
            for list in others {
                save(list).await;
            }
            assert_eq!(snapshot.begin(true).await.unwrap(), Duration::from_hours(5));
            assert_eq!(snapshot.begin(false).await.unwrap(), Duration::ZERO, "a remote one may have others");
            clock.advance(Duration::from_hours(5));
            assert_eq!(snapshot.begin(true).await.unwrap(), RETRY_EVERY, "the first is old");
        }
    }
}
