//! The part of a taxpayer's data that its actor keeps between batches. It is loaded again if the version of the
//! taxpayer's lane shows that another process has written since.

use std::collections::HashMap;

use database::{StoreError, Transaction};

use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::event::LogHead;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::Taxpayer;
use crate::store::accounts::taxpayers;
use crate::store::{events, webhooks};

#[derive(Debug, Clone)]
pub struct CachedState {
    /// The version of the taxpayer's lane for which this state is current: each writer raises it by 1.
    pub(crate) version: i64,
    /// `None` until the taxpayer is onboarded.
    pub(crate) taxpayer: Option<Taxpayer>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) head: LogHead,
}

impl CachedState {
    /// Loads the states of taxpayers whose lanes are locked. Each id comes with the version of its lane.
    pub(crate) async fn load(
        tx: &Transaction,
        versions: &[(TaxpayerId, i64)],
    ) -> Result<HashMap<TaxpayerId, Self>, StoreError> {
        if versions.is_empty() {
            return Ok(HashMap::new());
        }
        let ids: Vec<_> = versions.iter().map(|(id, _)| *id).collect();
        let mut taxpayers = taxpayers::find_by_ids(tx, &ids).await?;
        let mut endpoints = webhooks::owned_by_taxpayers(tx, &ids).await?;
        let mut heads = events::log_heads(tx, &ids).await?;
        let mut states = HashMap::with_capacity(ids.len());
        for (id, version) in versions {
            let state = Self {
                version: *version,
                taxpayer: taxpayers.remove(id),
                endpoints: endpoints.remove(id).unwrap_or_default(),
                head: heads.remove(id).unwrap_or_default(),
            };
            states.insert(*id, state);
        }
        Ok(states)
    }

    /// Returns this state for a transaction that was rolled back: locking the lane had raised its version by 1, and the
    /// rollback has undone that.
    pub(crate) fn with_version_before_lock(self) -> Self {
        Self {
            version: self.version - 1,
            ..self
        }
    }
}
