//! Fetches the authority's reference lists in the background. A list that cannot be fetched keeps its content.

use std::time::Duration;

use authority_client::{Authority, ResourceList};
use database::StoreError;
use timing::clock::SharedClock;

use crate::domain::reference::catalog::{Catalog, ReferenceList, SharedCatalog};
use crate::store::Store;
use crate::store::operations::reference_lists;

/// The lists are fetched again after this time.
const REFRESH_EVERY: Duration = Duration::from_hours(6);
/// The delay of the next refresh if a list could not be fetched or stored.
const RETRY_EVERY: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct ReferenceRefresher {
    pub store: Store,
    pub authority: Authority,
    pub catalog: SharedCatalog,
    pub clock: SharedClock,
}

impl ReferenceRefresher {
    /// Loads the stored lists and returns the delay before the next refresh. If a list is missing or old, an embedded
    /// authority (the simulator in this process) is asked at once. A remote authority is asked after the start, so that
    /// it does not delay the start.
    pub async fn load(&self, is_embedded: bool) -> Result<Duration, StoreError> {
        let stored = reference_lists::load(&self.store).await?;
        let oldest = stored.oldest_fetched_at;
        self.catalog.set(stored.catalog);
        if !is_embedded {
            return Ok(Duration::ZERO);
        }
        let age =
            oldest.and_then(|at| Duration::try_from(self.clock.now().duration_since(at)).ok());
        match age.map_or(Duration::ZERO, |age| REFRESH_EVERY.saturating_sub(age)) {
            Duration::ZERO => Ok(self.refresh_and_schedule().await),
            left => Ok(left),
        }
    }

    /// Fetches every list. Returns the number of lists that could not be fetched.
    pub async fn refresh(&self) -> Result<usize, StoreError> {
        let mut catalog = Catalog::clone(&self.catalog.get());
        let mut missed = 0;
        for list in ReferenceList::ALL {
            let Some(resource) = ResourceList::from_name(list.as_str()) else {
                continue;
            };
            match self.authority.fetch_resource_list(resource).await {
                Ok(items) => {
                    let values = items.values;
                    reference_lists::save(&self.store, *list, &values, self.clock.now()).await?;
                    catalog.load(*list, &values);
                }
                Err(failure) => {
                    missed += 1;
                    tracing::warn!(%list, %failure, "failed to fetch a reference list; keeping the last one");
                }
            }
        }
        self.catalog.set(catalog);
        Ok(missed)
    }

    /// Fetches every list and returns the delay before the next refresh.
    pub async fn refresh_and_schedule(&self) -> Duration {
        match self.refresh().await {
            Ok(0) => REFRESH_EVERY,
            Ok(_) => RETRY_EVERY,
            Err(error) => {
                tracing::warn!(%error, "failed to store the reference lists; will retry");
                RETRY_EVERY
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use authority_client::testing::authority;
    use jiff::Timestamp;
    use serde_json::json;
    use timing::clock::{Clock, MockClock};

    use super::*;
    use crate::store::testing::stores;

    #[tokio::test]
    async fn an_embedded_authority_is_asked_at_start_if_a_list_is_missing_or_old() {
        for test in stores().await {
            let clock = Arc::new(MockClock::at(Timestamp::UNIX_EPOCH));
            let store = test.store.clone();
            let now = clock.clone() as SharedClock;
            // No server listens on this port, so every fetch fails at once.
            let authority = authority("http://127.0.0.1:9", now.clone());
            let refresher = ReferenceRefresher {
                store,
                authority,
                catalog: SharedCatalog::default(),
                clock: now,
            };
            let (first, others) = ReferenceList::ALL.split_first().unwrap();
            let save = async |list: &ReferenceList| {
                let items = json!([{ "code": "380", "value": "Invoice" }]);
                reference_lists::save(&refresher.store, *list, &items, clock.now())
                    .await
                    .unwrap();
            };
            save(first).await;
            assert_eq!(
                refresher.load(true).await.unwrap(),
                RETRY_EVERY,
                "others are missing"
            );
            clock.advance(Duration::from_hours(1));
            for list in others {
                save(list).await;
            }
            assert_eq!(refresher.load(true).await.unwrap(), Duration::from_hours(5));
            assert_eq!(
                refresher.load(false).await.unwrap(),
                Duration::ZERO,
                "a remote one may have others"
            );
            clock.advance(Duration::from_hours(5));
            assert_eq!(
                refresher.load(true).await.unwrap(),
                RETRY_EVERY,
                "the first is old"
            );
        }
    }
}
