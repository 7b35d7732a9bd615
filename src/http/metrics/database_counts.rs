//! Counts from the database for operators and for the metrics page, read at most once every few seconds.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::domain::events::endpoint_health::EndpointHealth;
use crate::domain::party::verification::VerificationStatus;
use crate::domain::pipeline::RunState;
use crate::domain::quarantine::WorkKind;
use crate::http::cached::Cached;
use crate::store::accounts::taxpayers;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::lanes::views::{self, LaneCount};
use crate::store::operations::outages;
use crate::store::operations::quarantine_list;
use crate::store::operations::reconciliations;
use crate::store::operations::reference_lists;
use crate::store::runs::unfinished::{self, UnfinishedRuns};
use crate::store::webhooks::{deliveries, endpoint_list};

/// How long the counts are cached.
const COUNTS_LIFETIME: Duration = Duration::from_secs(5);

/// The last counts that were read; `None` if the database did not answer.
#[derive(Debug)]
pub struct CachedCounts(Cached<Option<Arc<DatabaseCounts>>>);

/// The counts that were read from the database at one time.
#[derive(Debug)]
pub(crate) struct DatabaseCounts {
    pub(crate) counted_at: Timestamp,
    /// The runs of all taxpayers that have not ended, by state and wait reason. A group without runs is absent.
    pub(crate) runs: Vec<UnfinishedRuns>,
    pub(crate) lanes: Vec<LaneCount>,
    pub(crate) deliveries_pending: i64,
    pub(crate) deliveries_dead: i64,
    /// The work that waits in quarantine, by kind.
    pub(crate) quarantined: Vec<(WorkKind, i64)>,
    /// The number of endpoints in each state of health.
    pub(crate) endpoints: Vec<(EndpointHealth, i64)>,
    /// True if an outage of the authority is in force.
    pub(crate) is_outage_open: bool,
    /// The number of differences from the authority's ledger that an operator must resolve, by kind of difference.
    pub(crate) findings: Vec<(String, i64)>,
    pub(crate) reconciled_at: Option<Timestamp>,
    pub(crate) oldest_list_fetched_at: Option<Timestamp>,
    /// The number of taxpayers, by verification status.
    pub(crate) verifications: Vec<(VerificationStatus, i64)>,
}

impl Default for CachedCounts {
    fn default() -> Self {
        Self(Cached::new(COUNTS_LIFETIME))
    }
}

impl CachedCounts {
    pub(crate) async fn current_counts(
        &self,
        store: &Store,
        now: Timestamp,
    ) -> Option<Arc<DatabaseCounts>> {
        let look = async {
            let counted = DatabaseCounts::read(store, now).await.inspect_err(|error| {
                tracing::warn!(%error, "the metrics page lacks what the database knows");
            });
            counted.ok().map(Arc::new)
        };
        self.0.get_or_load(Box::pin(look)).await
    }
}

impl DatabaseCounts {
    async fn read(store: &Store, now: Timestamp) -> Result<Self, StoreError> {
        let outage = outages::last(store.reader()).await?;
        Ok(Self {
            counted_at: now,
            runs: unfinished::count(store, now).await?,
            lanes: views::counts_by_kind(store).await?.into(),
            deliveries_pending: deliveries::count_pending(store.reader()).await?,
            deliveries_dead: deliveries::count_dead(store.reader()).await?,
            quarantined: quarantine_list::counts(store).await?,
            endpoints: endpoint_list::count_by_health(store).await?,
            is_outage_open: outage.is_some_and(|outage| outage.is_open()),
            findings: reconciliations::open_findings_by_kind(store).await?,
            reconciled_at: reconciliations::last_ended(store).await?,
            oldest_list_fetched_at: reference_lists::oldest(store).await?,
            verifications: taxpayers::count_by_verification(store).await?,
        })
    }

    /// Returns the number of runs in a state, and the creation time of the oldest of them.
    pub(crate) fn runs_in(&self, state: RunState) -> (i64, Option<Timestamp>) {
        let groups = || self.runs.iter().filter(|group| group.state == state);
        (
            groups().map(|group| group.runs).sum(),
            groups().map(|group| group.oldest).min(),
        )
    }

    /// Returns the number of runs that have not ended and have missed their deadlines.
    pub(crate) fn overdue_runs(&self) -> i64 {
        self.runs.iter().map(|group| group.overdue).sum()
    }

    /// Returns the number of runs that have not ended and whose deadlines are within an hour.
    pub(crate) fn runs_due_soon(&self) -> i64 {
        self.runs.iter().map(|group| group.due_soon).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::stores;

    #[tokio::test]
    async fn however_often_the_page_is_asked_for_the_database_is_asked_every_few_seconds() {
        for test in stores().await {
            let counts = CachedCounts::default();
            let first = counts
                .current_counts(&test.store, Timestamp::UNIX_EPOCH)
                .await
                .unwrap();
            for _ in 0..3 {
                assert!(Arc::ptr_eq(
                    &first,
                    &counts
                        .current_counts(&test.store, Timestamp::UNIX_EPOCH)
                        .await
                        .unwrap()
                ));
            }
        }
    }
}
