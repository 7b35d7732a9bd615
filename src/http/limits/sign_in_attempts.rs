//! Limits the attempts to guess a password or a code. A browser in which the person has signed in before has an
//! allowance of its own, for the account of this person only. All other browsers share one allowance for the person and
//! one for their address. Their attempts over an allowance are delayed, not refused, as long as only a few wait: a
//! stranger who guesses all day costs the person some seconds, but does not lock the account. Attempts that succeed are
//! not counted.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::domain::access::session::SessionOwner;
use crate::domain::party::email::email_key;
use crate::http::limits::allowances::subscriber_address;
use crate::http::limits::buckets::Buckets;
use crate::http::limits::headers::limit_error;
use crate::http::limits::keyed_semaphores::KeyedSemaphores;
use crate::http::limits::quota::{Quota, QuotaExceeded};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::store::accounts::devices::Device;

/// The delay of an attempt over the allowance.
const ATTEMPT_DELAY: Duration = Duration::from_secs(3);
/// The attempts that may wait at the same time: for one person, from one address, and in all.
const SLOWED_PER_PERSON_MAX: usize = 10;
const SLOWED_PER_ADDRESS_MAX: usize = 4;
const SLOWED_ATTEMPTS_MAX: usize = 1_024;

/// The number of attempts that are allowed per minute. 0 means no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct SignInRates {
    pub person_per_min: u32,
    pub address_per_min: u32,
}

/// The person whose password or code somebody tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TriedPerson {
    /// The first half of the SHA-256 of an email. An email without an account is counted in the same way.
    Password(u128),
    Code(SessionOwner),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) person: TriedPerson,
    /// The browser, if the person has signed in with it to this account before. If several accounts have the same
    /// email, each is tried in an attempt of its own, with the device only if the account knows the browser.
    pub(crate) device: Option<Device>,
    pub(crate) address: Option<IpAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum AttemptKey {
    Device(TriedPerson, Device),
    Person(TriedPerson),
    Address(IpAddr),
}

#[derive(Debug)]
pub struct SignInAttempts {
    person_quota: Option<Quota>,
    address_quota: Option<Quota>,
    buckets: Buckets<AttemptKey>,
    slowdown: Slowdown,
}

/// The delay of attempts over the allowance, and the limits on how many attempts may wait.
#[derive(Debug)]
struct Slowdown {
    delay: Duration,
    persons: KeyedSemaphores<TriedPerson>,
    addresses: KeyedSemaphores<IpAddr>,
    all: Arc<Semaphore>,
}

/// An attempt that stays counted as failed unless it is passed to `uncount_success`.
#[must_use]
#[derive(Debug)]
pub(crate) struct CountedAttempt(Vec<(AttemptKey, Quota)>);

impl TriedPerson {
    pub(crate) fn for_password(email: &str) -> Self {
        let digest = Sha256::digest(email_key(email));
        Self::Password(
            digest
                .iter()
                .take(16)
                .fold(0, |number, byte| number << 8 | u128::from(*byte)),
        )
    }
}

impl SignInAttempts {
    pub fn new(rates: SignInRates) -> Self {
        Self::with_slowdown(rates, ATTEMPT_DELAY)
    }

    fn with_slowdown(rates: SignInRates, delay: Duration) -> Self {
        Self {
            person_quota: Quota::per_minute(rates.person_per_min),
            address_quota: Quota::per_minute(rates.address_per_min),
            buckets: Buckets::default(),
            slowdown: Slowdown {
                delay,
                persons: KeyedSemaphores::new(SLOWED_PER_PERSON_MAX),
                addresses: KeyedSemaphores::new(SLOWED_PER_ADDRESS_MAX),
                all: Arc::new(Semaphore::new(SLOWED_ATTEMPTS_MAX)),
            },
        }
    }

    /// Waits until an attempt may begin: for a fixed delay if it is over the allowance, else not at all. Fails if too
    /// many attempts wait, or if a known browser is over its allowance.
    pub(crate) async fn begin_attempt(
        &self,
        attempt: Attempt,
        now: Timestamp,
    ) -> Result<CountedAttempt, ApiError> {
        let address = subscriber_address(attempt.address);
        if let Some(device) = attempt.device {
            let bucket = AttemptKey::Device(attempt.person, device);
            return self
                .count_in_buckets(&[(bucket, self.person_quota)], now)
                .map_err(limit_error);
        }
        let buckets = [
            (AttemptKey::Person(attempt.person), self.person_quota),
            (AttemptKey::Address(address), self.address_quota),
        ];
        if let Ok(counted) = self.count_in_buckets(&buckets, now) {
            return Ok(counted);
        }
        let _slots = self
            .slowdown
            .take_waiting_slots(attempt.person, address)
            .ok_or_else(|| self.slowdown.too_many_attempts_error())?;
        sleep(self.slowdown.delay).await;
        Ok(CountedAttempt(Vec::new()))
    }

    /// Removes an attempt with the right password or code from the count.
    pub(crate) fn uncount_success(&self, attempt: CountedAttempt, now: Timestamp) {
        self.give_back(attempt.0, now);
    }

    /// Counts an attempt in all of these buckets or, if one is exhausted, in none.
    fn count_in_buckets(
        &self,
        buckets: &[(AttemptKey, Option<Quota>)],
        now: Timestamp,
    ) -> Result<CountedAttempt, QuotaExceeded> {
        let mut counted = Vec::new();
        for (bucket, quota) in buckets
            .iter()
            .filter_map(|(bucket, quota)| Some((*bucket, (*quota)?)))
        {
            if let Err(exceeded) = self.buckets.count_use(bucket, quota, now) {
                self.give_back(counted, now);
                return Err(exceeded);
            }
            counted.push((bucket, quota));
        }
        Ok(CountedAttempt(counted))
    }

    fn give_back(&self, counted: Vec<(AttemptKey, Quota)>, now: Timestamp) {
        for (bucket, quota) in counted {
            self.buckets.give_back(&bucket, quota, now);
        }
    }
}

impl Slowdown {
    fn take_waiting_slots(
        &self,
        person: TriedPerson,
        address: IpAddr,
    ) -> Option<[OwnedSemaphorePermit; 3]> {
        Some([
            self.addresses
                .for_holder(address)
                .try_acquire_owned()
                .ok()?,
            self.persons.for_holder(person).try_acquire_owned().ok()?,
            Arc::clone(&self.all).try_acquire_owned().ok()?,
        ])
    }

    fn too_many_attempts_error(&self) -> ApiError {
        let message = "Too many attempts; try again when Retry-After has passed";
        ApiError::new(ErrorCode::RateLimited, message).with_retry_after(self.delay)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::join_all;

    use super::*;
    use crate::domain::access::session::SessionOwner;
    use crate::store::accounts::devices;
    use crate::store::testing::sqlite_store;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn attempts() -> SignInAttempts {
        let rates = SignInRates {
            person_per_min: 3,
            address_per_min: 6,
        };
        SignInAttempts::with_slowdown(rates, Duration::from_millis(20))
    }

    fn attempt(email: &str, address: u8) -> Attempt {
        Attempt {
            person: TriedPerson::for_password(email),
            device: None,
            address: Some([10, 0, 0, address].into()),
        }
    }

    /// Makes `count` attempts, each from another address. Returns how many of them begin without a delay.
    fn begun_at_once(attempts: &SignInAttempts, email: &str, count: u8) -> usize {
        let begin = |address| {
            attempts
                .begin_attempt(attempt(email, address), now())
                .now_or_never()
        };
        (0..count).filter_map(begin).flatten().count()
    }

    #[tokio::test]
    async fn over_the_allowance_strangers_are_delayed_and_few_may_wait() {
        let attempts = attempts();
        assert_eq!(begun_at_once(&attempts, "ada@example.com", 9), 3);
        let late = (0..20)
            .map(|address| attempts.begin_attempt(attempt("Ada@Example.com ", address), now()));
        let late = join_all(late).await;
        assert_eq!(
            late.iter().filter(|late| late.is_ok()).count(),
            SLOWED_PER_PERSON_MAX
        );
        let refused = late.into_iter().find_map(Result::err).unwrap();
        assert_eq!(
            (refused.code, refused.retry_after.is_some()),
            (ErrorCode::RateLimited, true)
        );
        assert_eq!(
            begun_at_once(&attempts, "bo@example.com", 9),
            3,
            "another person has an allowance of its own"
        );
    }

    #[tokio::test]
    async fn an_address_is_delayed_whichever_persons_it_tries() {
        let attempts = attempts();
        let begin = |number: u8| {
            attempts.begin_attempt(attempt(&format!("{number}@example.com"), 1), now())
        };
        let at_once = (0..9)
            .filter_map(|number| begin(number).now_or_never())
            .count();
        assert_eq!(at_once, 6);
        let late = join_all((20..40).map(begin)).await;
        assert_eq!(
            late.iter().filter(|late| late.is_ok()).count(),
            SLOWED_PER_ADDRESS_MAX
        );
    }

    #[tokio::test]
    async fn attempts_that_succeed_are_not_counted() {
        let attempts = attempts();
        for _ in 0..100 {
            let begun = attempts
                .begin_attempt(attempt("ada@example.com", 1), now())
                .now_or_never();
            attempts.uncount_success(begun.unwrap().unwrap(), now());
        }
    }

    #[tokio::test]
    async fn a_known_browser_has_an_allowance_of_its_own() {
        let attempts = attempts();
        let store = &sqlite_store().await.store;
        let owner = SessionOwner::Operator(7);
        let device =
            || devices::recognise(store, owner, &devices::new_token(store, owner).unwrap());
        let known = Attempt {
            device: device(),
            ..attempt("ada@example.com", 1)
        };
        assert_eq!(begun_at_once(&attempts, "ada@example.com", 200), 3);
        let begin = |known| attempts.begin_attempt(known, now()).now_or_never().unwrap();
        assert_eq!((0..9).filter(|_| begin(known).is_ok()).count(), 3);
        assert!(
            begin(Attempt {
                device: device(),
                ..known
            })
            .is_ok(),
            "another browser of the person"
        );
    }
}
