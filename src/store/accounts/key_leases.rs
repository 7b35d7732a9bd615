//! Keeps the keys that all processes have cached in agreement with the database (docs/adr/0014). Every change of keys
//! raises the generation in the same transaction (`start_new_generation`). A process that caches keys has a lease:
//! every few milliseconds it looks for a new generation and acknowledges it. A request that changes keys is answered
//! only after all other processes have acknowledged the change or their leases have ended
//! (`await_key_change_everywhere`).
//!
//! A lease is granted for the current generation only. It ends `LEASE_DURATION` after the moment just before it was
//! requested. So all leases of older generations have ended `LEASE_DURATION` after a change. Clocks of different
//! machines are never compared.

use std::time::{Duration, Instant};

use database::sql::dialect;
use database::{StoreError, Transaction};
use sea_orm::{ConnectionTrait, Statement};
use tokio::time::{sleep, timeout};

use crate::store::Store;

/// The length of a lease, and the time for which a change of keys waits for a process that does not answer.
const LEASE_DURATION: Duration = Duration::from_secs(2);
/// The time for which a process uses its lease. It is shorter than `LEASE_DURATION`, because the clocks of two machines
/// differ a little in speed.
const TRUSTED_FOR: Duration = Duration::from_millis(1_800);
/// A lease that is this old is renewed if a request has used it meanwhile; otherwise it is given up.
const RENEW_AFTER: Duration = Duration::from_millis(600);
/// The interval at which the holder of a lease looks for a new generation.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A request that changed keys checks at this interval whether all other processes have acknowledged the change.
const ACKNOWLEDGEMENT_LOOK_EVERY: Duration = Duration::from_millis(4);

/// The lease of this process. The process may use its cached keys only while it has the lease.
#[derive(Debug)]
pub struct KeyLease {
    store: Store,
    renewed: Option<Instant>,
}

impl KeyLease {
    pub fn new(store: Store) -> Self {
        Self {
            store,
            renewed: None,
        }
    }

    /// Waits until a request needs the lease, then holds the lease until no request has needed it for `RENEW_AFTER`.
    pub async fn hold_while_needed(&mut self) -> Result<(), StoreError> {
        self.store.key_cache().wait_until_lease_needed().await;
        while self.refresh_unless_unused().await? {
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Looks for a new generation and acknowledges it, and renews the lease if it is due. Returns false if the lease
    /// was given up because no request needed it.
    pub async fn refresh_unless_unused(&mut self) -> Result<bool, StoreError> {
        let cache = self.store.key_cache();
        let current = load_generations(&self.store).await?.current;
        let is_new = cache.record_generation_if_newer(current);
        let is_old = self
            .renewed
            .is_none_or(|renewed| renewed.elapsed() >= RENEW_AFTER);
        if is_old && !cache.take_used_flag() {
            self.release().await?;
            return Ok(false);
        }
        if is_new || is_old {
            let asked = Instant::now();
            if grant_lease(&self.store, current).await? {
                cache.set_lease_end(asked + TRUSTED_FOR);
                self.renewed = Some(asked);
            }
        }
        Ok(true)
    }

    async fn release(&mut self) -> Result<(), StoreError> {
        self.store.key_cache().end_lease();
        self.renewed = None;
        let process = self.store.key_cache().process_id().into();
        execute(
            &self.store,
            "DELETE FROM key_leases WHERE process = $1 RETURNING process",
            [process],
        )
        .await
        .map(drop)
    }
}

/// Starts a new generation of keys. Call this before the first change of keys in a transaction: every writer of keys
/// first locks the only row of `key_generation`, so two writers cannot deadlock. A generation is a time in
/// microseconds, so it is new even if PostgreSQL lost the last transactions in a failover.
pub(super) async fn start_new_generation(tx: &Transaction) -> Result<(), StoreError> {
    let now = dialect(tx.get_database_backend()).clock();
    let next = format!("CASE WHEN current < {now} THEN {now} ELSE current + 1 END");
    tx.execute_unprepared(&format!("UPDATE key_generation SET current = {next}"))
        .await?;
    Ok(())
}

/// Waits until no process uses the old state of a key that a committed transaction changed or deleted. Call this after
/// the commit and before the response.
pub async fn await_key_change_everywhere(store: &Store) {
    let mut target = None;
    if timeout(
        LEASE_DURATION,
        await_generation_everywhere(store, &mut target),
    )
    .await
    .is_ok()
    {
        return;
    }
    tracing::warn!("a process has not acknowledged a change of API keys; its lease has ended");
    let Some(target) = target else { return };
    let others = [target.into(), store.key_cache().process_id().into()];
    let forget = "DELETE FROM key_leases WHERE generation < $1 AND process <> $2 RETURNING process";
    if let Err(error) = execute(store, forget, others).await {
        tracing::warn!(%error, "failed to delete ended leases of API keys");
    }
}

async fn await_generation_everywhere(store: &Store, target: &mut Option<i64>) {
    loop {
        match load_generations(store).await {
            Ok(generations) => {
                let current = generations.current;
                store.key_cache().record_generation_if_newer(current);
                let target = *target.get_or_insert(current);
                let oldest = generations.oldest_leased;
                if oldest.is_none_or(|oldest| oldest >= target) {
                    return;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "failed to read the leases of API keys; will retry");
            }
        }
        sleep(ACKNOWLEDGEMENT_LOOK_EVERY).await;
    }
}

/// The current generation of keys, and the oldest one that another process may still use.
struct KeyGenerations {
    current: i64,
    /// The oldest generation for which another process has a lease; `None` if no other process has a lease.
    oldest_leased: Option<i64>,
}

async fn load_generations(store: &Store) -> Result<KeyGenerations, StoreError> {
    let sql = "SELECT current, (SELECT MIN(generation) FROM key_leases WHERE process <> $1) AS oldest \
               FROM key_generation";
    let process = store.key_cache().process_id().into();
    let statement = Statement::from_sql_and_values(store.backend(), sql, [process]);
    let row = store
        .reader()
        .query_one_raw(statement)
        .await?
        .ok_or(StoreError::Stale)?;
    Ok(KeyGenerations {
        current: row.try_get("", "current")?,
        oldest_leased: row.try_get("", "oldest")?,
    })
}

/// Grants this process a lease if `current` is still the current generation; returns false if it is not. Locks the row
/// of the generation until the commit, so that the next process that raises the generation sees this lease.
async fn grant_lease(store: &Store, current: i64) -> Result<bool, StoreError> {
    let sql = format!(
        "INSERT INTO key_leases (process, generation) SELECT $1, current FROM key_generation WHERE current = $2 {} \
         ON CONFLICT (process) DO UPDATE SET generation = excluded.generation RETURNING process",
        dialect(store.backend()).share_lock()
    );
    execute(
        store,
        &sql,
        [store.key_cache().process_id().into(), current.into()],
    )
    .await
}

/// Executes one statement and commits it, so that its locks end with it. A transaction of several statements would keep
/// its locks as long as its process is frozen. Returns true if the statement returned a row.
async fn execute(
    store: &Store,
    sql: &str,
    values: impl IntoIterator<Item = sea_orm::Value>,
) -> Result<bool, StoreError> {
    let statement = Statement::from_sql_and_values(store.backend(), sql, values);
    Ok(store.execute_and_commit(statement).await?.is_some())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use database::PoolSettings;
    use database::vault::{KEY_LEN, Vault};
    use jiff::Timestamp;

    use super::*;
    use crate::domain::access::api_key::{KeyOwner, KeyTerms, NewKey};
    use crate::domain::access::caller::KeyKind;
    use crate::store::accounts::keys;
    use crate::store::testing::{TestStore, stores};

    const OWNER: KeyOwner = KeyOwner {
        kind: KeyKind::Integrator,
        id: 7,
    };
    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// Opens the database again, as another process would.
    async fn other_process(test: &TestStore) -> Store {
        let vault = Vault::new(&STANDARD.encode([7; KEY_LEN])).unwrap();
        Store::open(&test.url, &PoolSettings::default(), vault)
            .await
            .unwrap()
    }

    async fn rotate(store: &Store, text: &str, overlap: Duration) {
        let terms = KeyTerms {
            overlap,
            ..KeyTerms::default()
        };
        let tx = store.begin().await.unwrap();
        keys::rotate(&tx, OWNER, &NewKey::new(text.to_owned().into(), terms), NOW)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        await_key_change_everywhere(store).await;
    }

    async fn is_valid_at(store: &Store, text: &str, now: Timestamp) -> bool {
        keys::find_valid(store, OWNER.kind, text, now)
            .await
            .unwrap()
            .is_some()
    }

    async fn is_valid(store: &Store, text: &str) -> bool {
        is_valid_at(store, text, NOW).await
    }

    /// Gives this process a lease and lets it cache the key.
    async fn hold_lease(store: &Store, text: &str) -> KeyLease {
        let mut lease = KeyLease::new(store.clone());
        assert!(is_valid(store, text).await);
        assert!(lease.refresh_unless_unused().await.unwrap());
        assert!(is_valid(store, text).await);
        lease
    }

    /// Deletes all keys but starts no new generation of them, as if somebody had deleted them in the database itself.
    async fn delete_silently(store: &Store) {
        execute(store, "DELETE FROM api_keys RETURNING hash", [])
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn a_cached_key_is_not_read_again_until_a_key_changes() {
        for test in stores().await {
            let store = &test.store;
            rotate(store, "sik_a", Duration::ZERO).await;
            let _lease = hold_lease(store, "sik_a").await;
            delete_silently(store).await;
            assert!(
                is_valid(store, "sik_a").await,
                "the key comes from the cache"
            );
            assert!(
                !is_valid(store, "sik_b").await,
                "an unknown key is never cached"
            );
            let tx = store.begin().await.unwrap();
            keys::revoke_all(&tx, OWNER).await.unwrap();
            tx.commit().await.unwrap();
            await_key_change_everywhere(store).await;
            assert!(!is_valid(store, "sik_a").await);
        }
    }

    #[tokio::test]
    async fn a_cached_key_ends_with_its_overlap() {
        for test in stores().await {
            let store = &test.store;
            rotate(store, "sik_a", Duration::ZERO).await;
            let _lease = hold_lease(store, "sik_a").await;
            rotate(store, "sik_b", Duration::from_hours(1)).await;
            let last = NOW + Duration::from_hours(1) - Duration::from_micros(1);
            for _ in 0..2 {
                assert!(is_valid_at(store, "sik_a", last).await);
                assert!(!is_valid_at(store, "sik_a", NOW + Duration::from_hours(1)).await);
            }
        }
    }

    #[tokio::test]
    async fn a_change_is_answered_after_every_process_knows_it() {
        for test in stores().await {
            let first = &test.store;
            let second = other_process(&test).await;
            rotate(first, "sik_a", Duration::ZERO).await;
            let mut lease = hold_lease(&second, "sik_a").await;
            let follows = tokio::spawn(async move {
                while lease.refresh_unless_unused().await.unwrap() {
                    sleep(Duration::from_millis(50)).await;
                }
            });
            let begun = Instant::now();
            rotate(first, "sik_b", Duration::ZERO).await;
            assert!(!is_valid(&second, "sik_a").await);
            assert!(
                begun.elapsed() < TRUSTED_FOR,
                "acknowledged before the lease ended"
            );
            follows.abort();
        }
    }

    #[tokio::test]
    async fn a_process_that_does_not_answer_has_lost_its_lease_before_a_change_is_answered() {
        for test in stores().await {
            let first = &test.store;
            let second = other_process(&test).await;
            rotate(first, "sik_a", Duration::ZERO).await;
            let mut lease = hold_lease(&second, "sik_a").await;
            delete_silently(first).await;
            let begun = Instant::now();
            let changes = rotate(first, "sik_b", Duration::ZERO);
            let still_cached = async {
                sleep(TRUSTED_FOR / 2).await;
                is_valid(&second, "sik_a").await
            };
            let ((), still_cached) = tokio::join!(changes, still_cached);
            // The first rotation found no key to replace, so it raised no generation and waited for no other process.
            assert!(still_cached && begun.elapsed() < TRUSTED_FOR);
            rotate(first, "sik_c", Duration::ZERO).await;
            assert!(begun.elapsed() >= LEASE_DURATION);
            assert!(!is_valid(&second, "sik_a").await && !is_valid(&second, "sik_b").await);
            let begun = Instant::now();
            rotate(first, "sik_d", Duration::ZERO).await;
            assert!(
                begun.elapsed() < TRUSTED_FOR,
                "the ended lease is forgotten"
            );
            assert!(lease.refresh_unless_unused().await.unwrap());
            assert!(is_valid(&second, "sik_d").await);
        }
    }

    #[tokio::test]
    async fn a_lease_is_granted_for_the_present_generation_only() {
        for test in stores().await {
            let store = &test.store;
            let old = load_generations(store).await.unwrap().current;
            rotate(store, "sik_a", Duration::ZERO).await;
            rotate(store, "sik_b", Duration::ZERO).await;
            let current = load_generations(store).await.unwrap().current;
            assert!(current > old);
            assert!(!grant_lease(store, old).await.unwrap());
            assert!(grant_lease(store, current).await.unwrap());
        }
    }

    #[tokio::test]
    async fn a_lease_that_no_request_needs_is_given_up() {
        for test in stores().await {
            let store = &test.store;
            let second = other_process(&test).await;
            rotate(store, "sik_a", Duration::ZERO).await;
            let mut lease = hold_lease(store, "sik_a").await;
            assert!(
                load_generations(&second)
                    .await
                    .unwrap()
                    .oldest_leased
                    .is_some()
            );
            sleep(RENEW_AFTER).await;
            assert!(
                lease.refresh_unless_unused().await.unwrap(),
                "a request needed it"
            );
            sleep(RENEW_AFTER).await;
            assert!(!lease.refresh_unless_unused().await.unwrap());
            assert_eq!(load_generations(&second).await.unwrap().oldest_leased, None);
            delete_silently(store).await;
            assert!(
                !is_valid(store, "sik_a").await,
                "without a lease the database is asked"
            );
        }
    }

    const ROTATIONS: usize = 40;

    /// Asks for the newest keys again and again. A key that was replaced before the question must not be valid. Returns
    /// the number of answers that accepted a key.
    async fn ask(store: Store, replaced: &AtomicUsize) -> usize {
        let mut accepted = 0;
        loop {
            let before = replaced.load(Ordering::SeqCst);
            if before == ROTATIONS {
                return accepted;
            }
            for number in before.saturating_sub(1)..=before {
                let is_valid = is_valid(&store, &format!("sik_{number}")).await;
                assert!(
                    !is_valid || number >= before,
                    "key {number} was replaced {before} rotations ago"
                );
                accepted += usize::from(is_valid);
            }
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_process_accepts_a_replaced_key_while_requests_go_on() {
        for test in stores().await {
            let first = test.store.clone();
            let second = other_process(&test).await;
            rotate(&first, "sik_0", Duration::ZERO).await;
            let leases = [&first, &second].map(|store| {
                let mut lease = KeyLease::new(store.clone());
                tokio::spawn(async move {
                    loop {
                        lease.hold_while_needed().await.unwrap();
                    }
                })
            });
            let replaced = AtomicUsize::new(0);
            let rotates = async {
                for number in 1..=ROTATIONS {
                    rotate(
                        [&first, &second][number % 2],
                        &format!("sik_{number}"),
                        Duration::ZERO,
                    )
                    .await;
                    replaced.store(number, Ordering::SeqCst);
                    sleep(Duration::from_millis(2)).await;
                }
            };
            let one = ask(first.clone(), &replaced);
            let two = ask(second.clone(), &replaced);
            let ((), one, two) = tokio::join!(rotates, one, two);
            assert!(
                one > ROTATIONS && two > ROTATIONS,
                "{one} and {two} accepted"
            );
            for lease in leases {
                lease.abort();
            }
        }
    }
}
