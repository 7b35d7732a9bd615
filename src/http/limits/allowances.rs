//! The rate limits (docs/contract.md, "Limits"), each counted by account, address or integrator.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

use crate::domain::access::api_key::KeyOwner;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::http::limits::buckets::Buckets;
use crate::http::limits::quota::{Allowance, Quota, QuotaExceeded};

/// The settings of `[rate_limit]`. 0 means no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rates {
    pub requests_per_s: u32,
    pub burst: u32,
    pub integrator_requests_per_s: u32,
    pub integrator_burst: u32,
    pub rotate_per_min: u32,
    pub webhook_test_per_min: u32,
    pub failed_auth_per_min: u32,
    pub refused_creates_per_min: u32,
    pub onboardings_per_min: u32,
}

/// The key by which requests are counted: the account of the API key or, without a valid key, the client's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RateKey {
    Account(KeyOwner),
    Address(IpAddr),
}

/// An operation that has a low rate limit of its own, counted for each taxpayer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SensitiveOperation {
    Rotation,
    WebhookTest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum BucketKey {
    Reads(RateKey),
    Writes(RateKey),
    /// The reads of an integrator with all its taxpayers.
    IntegratorReads(IntegratorId),
    IntegratorWrites(IntegratorId),
    /// The operations on a taxpayer by everybody who may do them: by the API and by pages.
    SensitiveOperation(SensitiveOperation, TaxpayerId),
    FailedAuthentications(IpAddr),
    /// The links that were asked for by people who forgot their password.
    ForgottenPasswords(IpAddr),
    RefusedCreates(IntegratorId),
    Onboardings(IntegratorId),
    /// The log lines about failed authentications, counted together for the whole process.
    FailureLines,
}

/// The limit of log lines about failed authentications: the lines per second, and the lines in one burst.
const FAILURE_LINES_PER_S_AND_BURST: (u32, u32) = (10, 50);

#[derive(Debug)]
pub struct RateLimits {
    requests: Option<Quota>,
    integrator_requests: Option<Quota>,
    rotations: Option<Quota>,
    webhook_tests: Option<Quota>,
    failed_authentications: Option<Quota>,
    refused_creates: Option<Quota>,
    onboardings: Option<Quota>,
    failure_lines: Option<Quota>,
    /// The number of log lines about failed authentications that were suppressed since the last written line.
    suppressed_lines: AtomicU64,
    buckets: Buckets<BucketKey>,
}

impl From<Rates> for RateLimits {
    fn from(rates: Rates) -> Self {
        Self {
            requests: Quota::per_second(rates.requests_per_s, rates.burst),
            integrator_requests: Quota::per_second(
                rates.integrator_requests_per_s,
                rates.integrator_burst,
            ),
            rotations: Quota::per_minute(rates.rotate_per_min),
            webhook_tests: Quota::per_minute(rates.webhook_test_per_min),
            failed_authentications: Quota::per_minute(rates.failed_auth_per_min),
            refused_creates: Quota::per_minute(rates.refused_creates_per_min),
            onboardings: Quota::per_minute(rates.onboardings_per_min),
            failure_lines: Quota::per_second(
                FAILURE_LINES_PER_S_AND_BURST.0,
                FAILURE_LINES_PER_S_AND_BURST.1,
            ),
            suppressed_lines: AtomicU64::new(0),
            buckets: Buckets::default(),
        }
    }
}

impl RateKey {
    pub(crate) fn new(account: Option<KeyOwner>, peer: Option<IpAddr>) -> Self {
        account.map_or_else(|| Self::Address(subscriber_address(peer)), Self::Account)
    }
}

/// Returns the address by which a client is counted: for IPv6 the /64 network, which belongs to one subscriber.
pub(super) fn subscriber_address(peer: Option<IpAddr>) -> IpAddr {
    match peer {
        Some(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
            Some(address) => address.into(),
            None => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        },
        Some(address) => address,
        None => Ipv4Addr::UNSPECIFIED.into(),
    }
}

impl RateLimits {
    /// Counts a request against the limit of reads or the limit of writes. Returns `None` if no limit is set.
    pub(crate) fn count_request(
        &self,
        holder: RateKey,
        is_read: bool,
        now: Timestamp,
    ) -> Result<Option<Allowance>, QuotaExceeded> {
        let bucket = if is_read {
            BucketKey::Reads(holder)
        } else {
            BucketKey::Writes(holder)
        };
        self.take_from_bucket(bucket, self.requests, now)
    }

    /// Counts a request against the limit that all keys of an integrator and its taxpayers share. Reads and writes are
    /// counted separately.
    pub(crate) fn count_integrator_request(
        &self,
        integrator: IntegratorId,
        is_read: bool,
        now: Timestamp,
    ) -> Result<Option<Allowance>, QuotaExceeded> {
        let bucket = if is_read {
            BucketKey::IntegratorReads(integrator)
        } else {
            BucketKey::IntegratorWrites(integrator)
        };
        self.take_from_bucket(bucket, self.integrator_requests, now)
    }

    /// Counts a sensitive operation on this taxpayer. Callers check first that the operation is allowed, so that nobody
    /// uses up the allowance of other taxpayers.
    pub(crate) fn count_sensitive_operation(
        &self,
        operation: SensitiveOperation,
        taxpayer: TaxpayerId,
        now: Timestamp,
    ) -> Result<Option<Allowance>, QuotaExceeded> {
        let quota = match operation {
            SensitiveOperation::Rotation => self.rotations,
            SensitiveOperation::WebhookTest => self.webhook_tests,
        };
        self.take_from_bucket(
            BucketKey::SensitiveOperation(operation, taxpayer),
            quota,
            now,
        )
    }

    /// Counts a failed authentication. A valid key is accepted after any number of failures, because many callers may
    /// share one address.
    pub(crate) fn count_failed_authentication(
        &self,
        peer: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<Option<Allowance>, QuotaExceeded> {
        self.take_from_bucket(
            BucketKey::FailedAuthentications(subscriber_address(peer)),
            self.failed_authentications,
            now,
        )
    }

    /// Counts a request for a link to replace a forgotten password. The limit has the size of the limit of failed
    /// authentications, but the two are counted apart.
    pub(crate) fn count_forgotten_password(
        &self,
        peer: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<Option<Allowance>, QuotaExceeded> {
        self.take_from_bucket(
            BucketKey::ForgottenPasswords(subscriber_address(peer)),
            self.failed_authentications,
            now,
        )
    }

    /// Counts a change, such as Create Taxpayer, that is refused because another account has one of its values. Without
    /// this limit, an integrator could find out by trial which tax numbers and emails others have registered.
    pub(crate) fn count_refused_create(
        &self,
        integrator: IntegratorId,
        now: Timestamp,
    ) -> Result<Option<Allowance>, QuotaExceeded> {
        self.take_from_bucket(
            BucketKey::RefusedCreates(integrator),
            self.refused_creates,
            now,
        )
    }

    /// Undoes the count of a change that was not refused after all.
    pub(crate) fn give_back_refused_create(&self, integrator: IntegratorId, now: Timestamp) {
        if let Some(quota) = self.refused_creates {
            let bucket = BucketKey::RefusedCreates(integrator);
            self.buckets.give_back(&bucket, quota, now);
        }
    }

    /// Counts the creation of a taxpayer.
    pub(crate) fn count_onboarding(
        &self,
        integrator: IntegratorId,
        now: Timestamp,
    ) -> Result<Option<Allowance>, QuotaExceeded> {
        self.take_from_bucket(BucketKey::Onboardings(integrator), self.onboardings, now)
    }

    /// Decides whether a line about a failed authentication may be logged. Returns how many lines were suppressed since
    /// the last one; `None` if this one must be suppressed too.
    pub(crate) fn admit_failure_log_line(&self, now: Timestamp) -> Option<u64> {
        if self
            .take_from_bucket(BucketKey::FailureLines, self.failure_lines, now)
            .is_ok()
        {
            return Some(self.suppressed_lines.swap(0, Ordering::Relaxed));
        }
        self.suppressed_lines.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn take_from_bucket(
        &self,
        bucket: BucketKey,
        quota: Option<Quota>,
        now: Timestamp,
    ) -> Result<Option<Allowance>, QuotaExceeded> {
        quota
            .map(|quota| self.buckets.count_use(bucket, quota, now))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    #[test]
    fn reads_and_writes_are_counted_apart() {
        let limits = RateLimits::from(Rates {
            requests_per_s: 1,
            burst: 2,
            ..Rates::default()
        });
        let holder = RateKey::new(None, Some("10.0.0.1".parse().unwrap()));
        for is_read in [true, false] {
            let take = || limits.count_request(holder, is_read, now());
            assert!(take().is_ok() && take().is_ok() && take().is_err());
        }
        let other = RateKey::new(None, Some("10.0.0.2".parse().unwrap()));
        assert!(limits.count_request(other, true, now()).is_ok());
    }

    #[test]
    fn the_keys_of_an_integrator_have_one_allowance_together() {
        let limits = RateLimits::from(Rates {
            integrator_requests_per_s: 1,
            integrator_burst: 25,
            ..Rates::default()
        });
        for is_read in [true, false] {
            let take = |id| limits.count_integrator_request(IntegratorId(id), is_read, now());
            assert!((0..25).all(|_| take(1).is_ok()) && take(1).is_err());
            assert!(take(2).is_ok(), "another integrator has its own");
        }
        let limits = RateLimits::from(Rates {
            onboardings_per_min: 2,
            ..Rates::default()
        });
        let create = |id| limits.count_onboarding(IntegratorId(id), now());
        assert!(create(1).is_ok() && create(1).is_ok() && create(1).is_err() && create(2).is_ok());
    }

    #[test]
    fn a_change_that_was_not_refused_leaves_the_allowance_of_refusals() {
        let limits = RateLimits::from(Rates {
            refused_creates_per_min: 2,
            ..Rates::default()
        });
        let count = || limits.count_refused_create(IntegratorId(1), now());
        for _ in 0..5 {
            assert!(count().is_ok());
            limits.give_back_refused_create(IntegratorId(1), now());
        }
        assert!(count().is_ok() && count().is_ok() && count().is_err());
        limits.give_back_refused_create(IntegratorId(2), now());
        assert!(count().is_err(), "another integrator gives back its own");
    }

    /// Every kind has an allowance of one attempt. Using up one kind must leave all others.
    #[test]
    fn no_two_kinds_of_attempts_share_an_allowance() {
        type Count = fn(&RateLimits) -> Result<Option<Allowance>, QuotaExceeded>;
        let kinds: [(&str, Count); 10] = [
            ("reads", |limits| {
                limits.count_request(RateKey::new(None, None), true, now())
            }),
            ("writes", |limits| {
                limits.count_request(RateKey::new(None, None), false, now())
            }),
            ("reads of an integrator", |limits| {
                limits.count_integrator_request(IntegratorId(1), true, now())
            }),
            ("writes of an integrator", |limits| {
                limits.count_integrator_request(IntegratorId(1), false, now())
            }),
            ("rotations", |limits| {
                limits.count_sensitive_operation(SensitiveOperation::Rotation, TaxpayerId(1), now())
            }),
            ("tests", |limits| {
                limits.count_sensitive_operation(
                    SensitiveOperation::WebhookTest,
                    TaxpayerId(1),
                    now(),
                )
            }),
            ("wrong keys", |limits| {
                limits.count_failed_authentication(None, now())
            }),
            ("forgotten passwords", |limits| {
                limits.count_forgotten_password(None, now())
            }),
            ("refused creates", |limits| {
                limits.count_refused_create(IntegratorId(1), now())
            }),
            ("onboardings", |limits| {
                limits.count_onboarding(IntegratorId(1), now())
            }),
        ];
        for (used, use_up) in kinds {
            let limits = RateLimits::from(Rates {
                requests_per_s: 1,
                burst: 1,
                integrator_requests_per_s: 1,
                integrator_burst: 1,
                rotate_per_min: 1,
                webhook_test_per_min: 1,
                failed_auth_per_min: 1,
                refused_creates_per_min: 1,
                onboardings_per_min: 1,
            });
            assert!(use_up(&limits).is_ok(), "{used}");
            for (name, count) in kinds {
                assert_eq!(count(&limits).is_ok(), name != used, "{name} after {used}");
            }
        }
    }

    #[test]
    fn a_taxpayer_has_one_allowance_whoever_acts_for_it() {
        let limits = RateLimits::from(Rates {
            webhook_test_per_min: 2,
            ..Rates::default()
        });
        let test = |id| {
            let operation = SensitiveOperation::WebhookTest;
            limits.count_sensitive_operation(operation, TaxpayerId(id), now())
        };
        assert!(test(1).is_ok() && test(1).is_ok() && test(1).is_err());
        assert!(test(2).is_ok(), "another taxpayer has its own");
    }

    #[test]
    fn zero_lifts_a_limit() {
        let limits = RateLimits::from(Rates::default());
        for _ in 0..10_000 {
            assert_eq!(
                limits.count_request(RateKey::new(None, None), true, now()),
                Ok(None)
            );
            assert_eq!(limits.count_failed_authentication(None, now()), Ok(None));
        }
    }

    #[test]
    fn lines_about_failures_are_limited_and_suppressed_lines_are_counted() {
        let limits = RateLimits::from(Rates::default());
        let lines = |now| {
            (0..1_000)
                .filter_map(|_| limits.admit_failure_log_line(now))
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(now()), [0; 50]);
        let later = now() + jiff::SignedDuration::from_secs(1);
        assert_eq!(lines(later), [950, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn an_address_of_ipv6_counts_with_its_network() {
        let counted = |text: &str| subscriber_address(Some(text.parse().unwrap())).to_string();
        assert_eq!(counted("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(counted("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(counted("10.0.0.1"), "10.0.0.1");
    }
}
