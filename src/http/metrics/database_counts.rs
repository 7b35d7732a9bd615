//! Counts from the database for operators and for the metrics page, read at most once every few seconds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use database::StoreError;
use jiff::Timestamp;

use crate::domain::events::endpoint_health::EndpointHealth;
use crate::domain::incident::{CountAndOldest, WorkFacts};
use crate::domain::outage::Outage;
use crate::domain::party::verification::VerificationStatus;
use crate::domain::pipeline::RunState;
use crate::http::cached::Cached;
use crate::store::Store;
use crate::store::accounts::taxpayers;
use crate::store::lanes::LaneKind;
use crate::store::lanes::views::{self, DueLaneGroup, LaneCount};
use crate::store::operations::outages;
use crate::store::operations::quarantine_list;
use crate::store::operations::reconciliations;
use crate::store::operations::reference_lists;
use crate::store::operations::work_facts;
use crate::store::runs::unfinished::{self, UnfinishedRuns};
use crate::store::webhooks::{deliveries, endpoint_list};

/// The time for which the counts are cached.
const COUNTS_LIFETIME: Duration = Duration::from_secs(5);

/// The last counts that were read. They are kept while the database does not answer.
#[derive(Debug)]
pub struct CachedCounts {
    current: Cached<Option<Arc<DatabaseCounts>>>,
    last: Mutex<Option<Arc<DatabaseCounts>>>,
}

/// The counts that were read from the database at one time.
#[derive(Debug)]
pub(crate) struct DatabaseCounts {
    pub(crate) counted_at: Timestamp,
    /// The runs of all taxpayers that have not ended, by state and wait reason. A group without runs is absent.
    pub(crate) runs: Vec<UnfinishedRuns>,
    pub(crate) lanes: Vec<LaneCount>,
    /// The runs that are due and that no replica works on.
    pub(crate) due_runs: Vec<DueLaneGroup>,
    pub(crate) deliveries_pending: i64,
    pub(crate) deliveries_dead: i64,
    /// The number of endpoints in each state of health.
    pub(crate) endpoints: Vec<(EndpointHealth, i64)>,
    /// The facts about stored work from which incidents are found.
    pub(crate) work: WorkFacts,
    /// The number of taxpayers, by verification status.
    pub(crate) verifications: Vec<(VerificationStatus, i64)>,
}

impl Default for CachedCounts {
    fn default() -> Self {
        Self {
            current: Cached::new(COUNTS_LIFETIME),
            last: Mutex::default(),
        }
    }
}

impl CachedCounts {
    /// Returns counts that are a few seconds old at most; `None` if the database does not answer.
    pub(crate) async fn current_counts(
        &self,
        store: &Store,
        now: Timestamp,
    ) -> Option<Arc<DatabaseCounts>> {
        let load = async {
            let counts = DatabaseCounts::read(store, now).await.inspect_err(|error| {
                tracing::warn!(%error, "the work in the database could not be counted");
            });
            counts.ok().map(Arc::new)
        };
        let counts = self.current.get_or_load(Box::pin(load)).await;
        if counts.is_some() {
            self.lock_last_counts().clone_from(&counts);
        }
        counts
    }

    /// Returns the counts that were read last, however long ago.
    pub(crate) fn last_counts(&self) -> Option<Arc<DatabaseCounts>> {
        self.lock_last_counts().clone()
    }

    fn lock_last_counts(&self) -> MutexGuard<'_, Option<Arc<DatabaseCounts>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DatabaseCounts {
    async fn read(store: &Store, now: Timestamp) -> Result<Self, StoreError> {
        let runs = unfinished::count(store, now).await?;
        let endpoints = endpoint_list::count_by_health(store).await?;
        let work = Self::read_work_facts(store, &runs, &endpoints, now).await?;
        Ok(Self {
            counted_at: now,
            lanes: views::counts_by_kind(store).await?.into(),
            due_runs: views::due_groups(store, LaneKind::Run).await?,
            deliveries_pending: deliveries::count_pending(store.reader()).await?,
            deliveries_dead: deliveries::count_dead(store.reader()).await?,
            verifications: taxpayers::count_by_verification(store).await?,
            runs,
            endpoints,
            work,
        })
    }

    async fn read_work_facts(
        store: &Store,
        runs: &[UnfinishedRuns],
        endpoints: &[(EndpointHealth, i64)],
        now: Timestamp,
    ) -> Result<WorkFacts, StoreError> {
        let outage = outages::load_open_or_last(store.reader()).await?;
        let disabled = endpoints
            .iter()
            .filter(|(health, _)| *health == EndpointHealth::Disabled);
        let endpoints_disabled = to_unsigned(disabled.map(|(_, count)| count).sum());
        let list_ages = reference_lists::find_ages(store).await?;
        let endpoint_count: i64 = endpoints.iter().map(|(_, count)| count).sum();
        Ok(WorkFacts {
            counted_at: Some(now),
            overdue: CountAndOldest {
                count: to_unsigned(runs.iter().map(|group| group.overdue).sum()),
                since: runs.iter().filter_map(|group| group.missed_deadline).min(),
            },
            due_soon: to_unsigned(runs.iter().map(|group| group.due_soon).sum()),
            next_deadline: runs.iter().filter_map(|group| group.next_deadline).min(),
            quarantined: quarantine_list::count_by_kind(store).await?,
            endpoints_active: to_unsigned(endpoint_count).saturating_sub(endpoints_disabled),
            endpoints_disabled,
            differences: reconciliations::count_open_findings_by_kind(store).await?,
            reconciled_at: reconciliations::last_completion_time(store).await?,
            oldest_list_fetched_at: list_ages.oldest_fetched_at,
            missing_lists: list_ages.missing,
            outage_since: outage
                .filter(Outage::is_open)
                .map(|outage| outage.started_at),
            ..work_facts::load_facts(store, now).await?
        })
    }

    /// True if an outage of the authority has not ended.
    pub(crate) fn is_outage_open(&self) -> bool {
        self.work.outage_since.is_some()
    }

    /// Returns the number of runs in a state, and the creation time of the oldest of them.
    pub(crate) fn count_runs_and_oldest(&self, state: RunState) -> (i64, Option<Timestamp>) {
        let groups = self.runs.iter().filter(|group| group.state == state);
        (
            groups.clone().map(|group| group.runs).sum(),
            groups.map(|group| group.oldest).min(),
        )
    }
}

/// Converts a count for a response or a gauge. A count that is too large becomes the largest number.
pub(crate) fn gauge_value(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Converts a count of the database, where counts are signed. A negative number becomes 0.
fn to_unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::stores;

    #[tokio::test]
    async fn many_requests_of_the_page_read_the_database_once_in_a_few_seconds() {
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
