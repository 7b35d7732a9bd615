//! Limits the pages that one session, or one address without a session, may request in a second and at the same time. A
//! session that was recently found in the database has a limit of its own. Every other session token counts against the
//! limit of its address before it is looked up, so that random tokens do not cost one database read each.

use std::net::IpAddr;

use jiff::Timestamp;
use tokio::sync::OwnedSemaphorePermit;

use crate::http::limits::allowances::subscriber_address;
use crate::http::limits::buckets::Buckets;
use crate::http::limits::headers::limit_error;
use crate::http::limits::keyed_semaphores::KeyedSemaphores;
use crate::http::limits::quota::Quota;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::{ApiError, RETRY_AFTER};

/// The number of pages that may be requested at once, as a multiple of the pages per second.
const BURST_FACTOR: u32 = 10;

/// The limits for the pages of one session, or of one address without a session.
#[derive(Debug, Clone, Copy)]
pub struct PageRates {
    /// The maximum number of pages per second; 0 means no limit.
    pub per_s: u32,
    /// The maximum number of pages that are requested at the same time.
    pub concurrent_max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PageHolder {
    /// A session, by the first half of the hash of its token.
    Session(u128),
    Address(IpAddr),
}

#[derive(Debug)]
pub struct PageLimits {
    quota: Option<Quota>,
    buckets: Buckets<PageHolder>,
    in_flight: KeyedSemaphores<PageHolder>,
    /// Limits the answers of each session that are made while they are sent. They are counted apart from `in_flight`,
    /// so that a person who has many self-updating parts of pages open can still open further pages.
    streams: KeyedSemaphores<u128>,
}

/// Counts a page as in flight until the slot is dropped.
#[derive(Debug)]
pub(crate) struct PageSlot {
    session: u128,
    _place: OwnedSemaphorePermit,
}

/// Counts a streamed answer as in flight until the slot is dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    _place: OwnedSemaphorePermit,
}

impl PageSlot {
    /// Returns the session that the page is for.
    pub(super) fn session(&self) -> u128 {
        self.session
    }
}

impl PageLimits {
    pub fn new(rates: PageRates) -> Self {
        Self {
            quota: Quota::per_second(rates.per_s, rates.per_s.saturating_mul(BURST_FACTOR)),
            buckets: Buckets::default(),
            in_flight: KeyedSemaphores::new(rates.concurrent_max),
            streams: KeyedSemaphores::new(rates.concurrent_max),
        }
    }

    /// Counts a page against the limit of its session if the session is known, otherwise against the limit of the
    /// address.
    pub(crate) fn admit(
        &self,
        session: u128,
        address: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<PageSlot, ApiError> {
        let known = PageHolder::Session(session);
        let is_known = self.quota.is_none() || self.buckets.contains(&known);
        let holder = if is_known {
            known
        } else {
            PageHolder::Address(subscriber_address(address))
        };
        if let Some(quota) = self.quota {
            self.buckets
                .count_use(holder, quota, now)
                .map_err(limit_error)?;
        }
        let place = self
            .in_flight
            .for_holder(holder)
            .try_acquire_owned()
            .map_err(|_| {
                let message =
                    "Too many of your pages are being made at the same time, please try again";
                ApiError::new(ErrorCode::RateLimited, message).with_retry_after(RETRY_AFTER)
            })?;
        Ok(PageSlot {
            session,
            _place: place,
        })
    }

    /// Counts an answer that is made while it is sent. The session has been found in the database.
    pub(super) fn admit_stream(&self, session: u128) -> Result<StreamSlot, ApiError> {
        let place = self.streams.for_holder(session).try_acquire_owned();
        let place = place.map_err(|_| {
            let message = "Too many files and parts of pages are being sent to you at the same time, please try again";
            ApiError::new(ErrorCode::RateLimited, message).with_retry_after(RETRY_AFTER)
        })?;
        Ok(StreamSlot { _place: place })
    }

    /// Remembers a session that was found in the database: its next pages count against its own limit, not that of the
    /// address.
    pub(crate) fn remember_session(&self, session: u128, now: Timestamp) {
        let session = PageHolder::Session(session);
        if let Some(quota) = self.quota.filter(|_| !self.buckets.contains(&session)) {
            // A new bucket is full, so the first request is always allowed.
            let _ = self.buckets.count_use(session, quota, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn address(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    fn limits() -> PageLimits {
        PageLimits::new(PageRates {
            per_s: 1,
            concurrent_max: 2,
        })
    }

    #[test]
    fn tokens_of_nobody_count_for_their_address() {
        let limits = limits();
        let admitted = (0..100)
            .filter(|token| limits.admit(*token, Some(address(1)), now()).is_ok())
            .count();
        assert_eq!(admitted, 10);
        let refused = limits.admit(7, Some(address(1)), now()).unwrap_err();
        assert_eq!(
            (refused.code, refused.retry_after.is_some()),
            (ErrorCode::RateLimited, true)
        );
        assert!(
            limits.admit(7, Some(address(2)), now()).is_ok(),
            "another address has its own"
        );
    }

    #[test]
    fn a_known_session_is_not_refused_for_strangers_at_its_address() {
        let limits = limits();
        limits.remember_session(1, now());
        while limits.admit(2, Some(address(1)), now()).is_ok() {}
        let admitted = (0..100)
            .filter(|_| limits.admit(1, Some(address(1)), now()).is_ok())
            .count();
        assert_eq!(admitted, 9, "and has a quota of its own");
    }

    #[test]
    fn streams_take_no_place_of_a_page_and_are_bounded() {
        let limits = limits();
        limits.remember_session(1, now());
        let streams: Vec<_> = (0..5).filter_map(|_| limits.admit_stream(1).ok()).collect();
        assert_eq!(streams.len(), 2);
        assert!(limits.admit(1, Some(address(1)), now()).is_ok());
        assert!(
            limits.admit_stream(2).is_ok(),
            "another session has its own"
        );
        drop(streams);
        assert!(limits.admit_stream(1).is_ok());
    }

    #[test]
    fn pages_at_the_same_time_are_bounded() {
        let limits = limits();
        limits.remember_session(1, now());
        let slots: Vec<_> = (0..5)
            .filter_map(|_| limits.admit(1, Some(address(1)), now()).ok())
            .collect();
        assert_eq!(slots.len(), 2);
        drop(slots);
        assert!(limits.admit(1, Some(address(1)), now()).is_ok());
    }
}
