//! Stores when and from where API keys were last used. Requests record their key in memory, and periodic work writes
//! the recorded keys to the database.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use database::StoreError;
use timing::clock::SharedClock;

use crate::store::Store;
use crate::store::accounts::keys::{self, ValidKey};
use crate::store::key_cache::KeyDigest;

pub const WRITE_EVERY: Duration = Duration::from_secs(10);
/// The maximum number of keys recorded in memory. When it is reached, uses of further keys are not recorded.
const WAITING_MAX: usize = 65_536;

/// The recorded keys that are not written yet.
#[derive(Debug, Default)]
pub struct KeyUsage(Mutex<HashMap<KeyDigest, Option<IpAddr>>>);

impl KeyUsage {
    /// Records the use of a key from an address, unless the stored time of its last use is recent.
    pub fn record_use(&self, key: &ValidKey, address: Option<IpAddr>) {
        if !key.must_store_use {
            return;
        }
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING_MAX {
            waiting.insert(key.digest, address);
        }
    }

    /// Writes the recorded keys to the database. If the write fails, these uses are lost, and further uses of the same
    /// keys are not recorded for up to a minute.
    pub async fn write_recorded_uses(
        &self,
        store: &Store,
        clock: &SharedClock,
    ) -> Result<(), StoreError> {
        let used = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut used: Vec<_> = used.into_iter().collect();
        used.sort_unstable();
        keys::record_uses(store, &used, clock.now()).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use timing::clock::MockClock;

    use super::*;
    use crate::domain::access::api_key::{KeyOwner, NewKey};
    use crate::domain::access::caller::KeyKind;
    use crate::domain::access::session::OperatorRole;
    use crate::store::accounts::{NewOperator, add_operator};
    use crate::store::testing::stores;

    #[tokio::test]
    async fn a_use_is_written_once_however_often_it_is_recorded() {
        for test in stores().await {
            let store = &test.store;
            let now = Timestamp::UNIX_EPOCH;
            let operator = NewOperator {
                email: "op@example.com".into(),
                password_hash: "hash".into(),
                role: OperatorRole::Viewer,
                key: NewKey::from(secrecy::SecretString::from("opk_one")),
            };
            add_operator(store, &operator, now).await.unwrap();
            let owner = KeyOwner {
                kind: KeyKind::Operator,
                id: 1,
            };
            let usage = KeyUsage::default();
            let address = IpAddr::from([192, 0, 2, 7]);
            let clock: SharedClock = Arc::new(MockClock::at(now + Duration::from_secs(5)));
            let found = keys::find_valid(store, owner.kind, "opk_one", now)
                .await
                .unwrap()
                .unwrap();
            usage.record_use(&found, Some(address));
            usage.record_use(&found, Some(address));
            usage.write_recorded_uses(store, &clock).await.unwrap();
            let found = keys::find_valid(store, owner.kind, "opk_one", now)
                .await
                .unwrap()
                .unwrap();
            assert!(!found.must_store_use);
            usage.record_use(&found, Some(address));
            assert_eq!(usage.0.lock().unwrap().len(), 0);
            let listed = keys::owned_by_accounts(store, owner.kind, &[1])
                .await
                .unwrap();
            let used = &listed[&1][0];
            assert_eq!(used.last_used_at, Some(now + Duration::from_secs(5)));
            assert_eq!(used.last_used_from, Some(address));
        }
    }
}
