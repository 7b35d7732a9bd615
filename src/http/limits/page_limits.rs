//! Limits the pages that one person, or one address without a session, may request in a second and at the same time.
//! A second limit applies to all people of an account together. All sessions of a person count together, so that a
//! further sign-in gives no further pages. A session token that was not found in the database lately counts against the
//! limit of its address before it is looked up, so that random tokens do not cost one database read each.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::OwnedSemaphorePermit;

use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::caller::KeyKind;
use crate::domain::access::session::SessionOwner;
use crate::http::limits::allowances::subscriber_address;
use crate::http::limits::buckets::Buckets;
use crate::http::limits::headers::limit_error;
use crate::http::limits::keyed_semaphores::KeyedSemaphores;
use crate::http::limits::quota::Quota;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::{ApiError, RETRY_AFTER};

/// The number of pages that may be requested at once, as a multiple of the pages per second.
const BURST_FACTOR: u32 = 10;
/// The limits of all people of an account together, as a multiple of the limits of one person.
const ACCOUNT_FACTOR: u16 = 4;
/// The time after a session was found in the database for which its pages count for its person without a look-up.
const KNOWN_SESSION_AGE_MAX: SignedDuration = SignedDuration::from_mins(10);
/// The number of newly known sessions after which the sessions that were not found lately are dropped.
const SESSIONS_PER_CLEANUP: usize = 1_024;

/// The limits for the pages of one person, or of one address without a session.
#[derive(Debug, Clone, Copy)]
pub struct PageRates {
    /// The maximum number of pages per second; 0 means no limit.
    pub per_s: u32,
    /// The maximum number of pages that are requested at the same time.
    pub concurrent_max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PageHolder {
    Person(SessionOwner),
    Address(IpAddr),
    /// The account of a taxpayer or an integrator.
    Account(KeyOwner),
}

#[derive(Debug)]
pub struct PageLimits {
    /// The limits of each person and each address.
    singles: HolderLimits,
    /// The limits of each account.
    accounts: HolderLimits,
    /// The sessions that were found in the database lately, by the first half of the hash of their tokens.
    sessions: DashMap<u128, KnownSession>,
    remembered_count: AtomicUsize,
}

/// The limits of each holder of one kind.
#[derive(Debug)]
struct HolderLimits {
    quota: Option<Quota>,
    buckets: Buckets<PageHolder>,
    in_flight: KeyedSemaphores<PageHolder>,
    /// Limits the answers of each holder that are made while they are sent. They are counted apart from `in_flight`, so
    /// that a person who has many self-updating parts of pages open can still open further pages.
    streams: KeyedSemaphores<PageHolder>,
}

#[derive(Debug, Clone, Copy)]
struct KnownSession {
    person: SessionOwner,
    found_at: Timestamp,
}

/// Counts a page as in flight until the slot is dropped.
#[derive(Debug)]
pub(crate) struct PageSlot {
    /// The person or the address that the page counts for.
    holder: PageHolder,
    /// The person of the session; `None` until the session was found in the database.
    person: Option<SessionOwner>,
    _permit: OwnedSemaphorePermit,
    _account_permit: Option<OwnedSemaphorePermit>,
}

/// Counts a streamed answer as in flight until the slot is dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    _permit: OwnedSemaphorePermit,
    _account_permit: Option<OwnedSemaphorePermit>,
}

impl PageSlot {
    /// Returns the person that the page is for; `None` if its session was not found.
    pub(super) fn person(&self) -> Option<SessionOwner> {
        self.person
    }
}

impl HolderLimits {
    fn new(rates: PageRates) -> Self {
        Self {
            quota: Quota::per_second(rates.per_s, rates.per_s.saturating_mul(BURST_FACTOR)),
            buckets: Buckets::default(),
            in_flight: KeyedSemaphores::new(rates.concurrent_max),
            streams: KeyedSemaphores::new(rates.concurrent_max),
        }
    }

    fn admit_page(
        &self,
        holder: PageHolder,
        now: Timestamp,
    ) -> Result<OwnedSemaphorePermit, ApiError> {
        if let Some(quota) = self.quota {
            self.buckets
                .count_use(holder, quota, now)
                .map_err(limit_error)?;
        }
        let permit = self.in_flight.for_holder(holder).try_acquire_owned();
        permit.map_err(|_| {
            let message =
                "Too many of your pages are being made at the same time, please try again";
            ApiError::new(ErrorCode::RateLimited, message).with_retry_after(RETRY_AFTER)
        })
    }

    fn admit_stream(&self, holder: PageHolder) -> Result<OwnedSemaphorePermit, ApiError> {
        let permit = self.streams.for_holder(holder).try_acquire_owned();
        permit.map_err(|_| {
            let message = "Too many files and parts of pages are being sent to you at the same time, please try again";
            ApiError::new(ErrorCode::RateLimited, message).with_retry_after(RETRY_AFTER)
        })
    }
}

impl PageLimits {
    pub fn new(rates: PageRates) -> Self {
        let account_rates = PageRates {
            per_s: rates.per_s.saturating_mul(ACCOUNT_FACTOR.into()),
            concurrent_max: rates.concurrent_max.saturating_mul(ACCOUNT_FACTOR.into()),
        };
        Self {
            singles: HolderLimits::new(rates),
            accounts: HolderLimits::new(account_rates),
            sessions: DashMap::new(),
            remembered_count: AtomicUsize::new(0),
        }
    }

    /// Counts a page against the limit of its person if the session is known, otherwise against the limit of the
    /// address.
    pub(crate) fn admit(
        &self,
        session: u128,
        address: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<PageSlot, ApiError> {
        let holder = self.find_known_person(session, now).map_or_else(
            || PageHolder::Address(subscriber_address(address)),
            PageHolder::Person,
        );
        Ok(PageSlot {
            _permit: self.singles.admit_page(holder, now)?,
            _account_permit: None,
            holder,
            person: None,
        })
    }

    /// Counts a page whose session was found in the database against the limits of its person and of the person's
    /// account, unless it is counted already. From then on, `admit` counts the pages of the session for the person.
    pub(crate) fn admit_person(
        &self,
        slot: PageSlot,
        session: u128,
        person: SessionOwner,
        now: Timestamp,
    ) -> Result<PageSlot, ApiError> {
        if slot.person.is_some() {
            return Ok(slot);
        }
        self.remember_session(session, person, now);
        let holder = PageHolder::Person(person);
        let slot = if slot.holder == holder {
            slot
        } else {
            PageSlot {
                holder,
                _permit: self.singles.admit_page(holder, now)?,
                ..slot
            }
        };
        let account = account_holder(person);
        let account_permit = account.map(|account| self.accounts.admit_page(account, now));
        Ok(PageSlot {
            person: Some(person),
            _account_permit: account_permit.transpose()?,
            ..slot
        })
    }

    /// Counts an answer that is made while it is sent to a person.
    pub(super) fn admit_stream(&self, person: SessionOwner) -> Result<StreamSlot, ApiError> {
        let permit = self.singles.admit_stream(PageHolder::Person(person))?;
        let account = account_holder(person);
        let account_permit = account.map(|account| self.accounts.admit_stream(account));
        Ok(StreamSlot {
            _permit: permit,
            _account_permit: account_permit.transpose()?,
        })
    }

    /// Returns the person of a session that was found in the database lately.
    fn find_known_person(&self, session: u128, now: Timestamp) -> Option<SessionOwner> {
        let known = *self.sessions.get(&session)?;
        known.is_recent(now).then_some(known.person)
    }

    fn remember_session(&self, session: u128, person: SessionOwner, now: Timestamp) {
        let found_at = now;
        let known = KnownSession { person, found_at };
        let is_new = self.sessions.insert(session, known).is_none();
        if is_new
            && self.remembered_count.fetch_add(1, Ordering::Relaxed) % SESSIONS_PER_CLEANUP
                == SESSIONS_PER_CLEANUP - 1
        {
            self.sessions.retain(|_, known| known.is_recent(now));
        }
    }
}

impl KnownSession {
    fn is_recent(&self, now: Timestamp) -> bool {
        now.duration_since(self.found_at) < KNOWN_SESSION_AGE_MAX
    }
}

/// Returns the account whose people count together; `None` for operators, who are no customers.
fn account_holder(person: SessionOwner) -> Option<PageHolder> {
    let (kind, id) = match person {
        SessionOwner::Operator(_) => return None,
        SessionOwner::Contact { taxpayer, .. } => (KeyKind::Taxpayer, taxpayer.0),
        SessionOwner::Integrator(id) => (KeyKind::Integrator, id.0),
    };
    Some(PageHolder::Account(KeyOwner { kind, id }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::ids::{ContactId, IntegratorId, TaxpayerId};

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

    fn contact(taxpayer: i64, id: i64) -> SessionOwner {
        SessionOwner::Contact {
            taxpayer: TaxpayerId(taxpayer),
            id: ContactId(id),
        }
    }

    /// Requests a page of a session of this person.
    fn open_page(
        limits: &PageLimits,
        session: u128,
        person: SessionOwner,
    ) -> Result<PageSlot, ApiError> {
        // Each session has an address of its own, so that only the limits of people and accounts count.
        let address = IpAddr::from((session << 64).to_be_bytes());
        let slot = limits.admit(session, Some(address), now())?;
        limits.admit_person(slot, session, person, now())
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
        let person = contact(1, 1);
        limits.remember_session(1, person, now());
        while limits.admit(2, Some(address(1)), now()).is_ok() {}
        let admitted = (0..100)
            .filter(|_| limits.admit(1, Some(address(1)), now()).is_ok())
            .count();
        assert_eq!(admitted, 10, "and has a quota of its own");
        let later = now() + KNOWN_SESSION_AGE_MAX;
        assert_eq!(limits.find_known_person(1, now()), Some(person));
        assert_eq!(limits.find_known_person(1, later), None);
    }

    #[test]
    fn all_sessions_of_a_person_and_all_people_of_an_account_count_together() {
        let integrator = SessionOwner::Integrator(IntegratorId(1));
        let operator = SessionOwner::Operator(1);
        let one = vec![contact(1, 1)];
        let crowd: Vec<_> = (1..=8).map(|id| contact(1, id)).collect();
        let strangers: Vec<_> = (1..=8).map(|id| contact(id, 1)).collect();
        let operators: Vec<_> = (1..=8).map(SessionOwner::Operator).collect();
        for (people, pages_per_burst, at_once) in [
            (one, 10, 2),
            (vec![integrator], 10, 2),
            (vec![operator], 10, 2),
            (crowd, 40, 8),
            (strangers, 80, 16),
            (operators, 80, 16),
        ] {
            let sessions: Vec<_> = (1_u128..)
                .zip((0..64).map(|number: usize| people[number % people.len()]))
                .collect();
            let fresh = limits();
            let pages = (0..4).flat_map(|_| sessions.iter());
            let admitted = pages
                .filter(|(session, person)| open_page(&fresh, *session, *person).is_ok())
                .count();
            assert_eq!(admitted, pages_per_burst, "{people:?}");
            let fresh = limits();
            let open: Vec<_> = sessions
                .iter()
                .filter_map(|(session, person)| open_page(&fresh, *session, *person).ok())
                .collect();
            assert_eq!(open.len(), at_once, "{people:?}");
            let streams: Vec<_> = sessions
                .iter()
                .filter_map(|(_, person)| fresh.admit_stream(*person).ok())
                .collect();
            assert_eq!(streams.len(), at_once, "{people:?}");
        }
    }

    #[test]
    fn a_page_counts_once_however_often_its_session_is_looked_up() {
        let limits = limits();
        let person = contact(1, 1);
        let mut slot = open_page(&limits, 1, person).unwrap();
        for _ in 0..100 {
            slot = limits.admit_person(slot, 1, person, now()).unwrap();
        }
    }

    #[test]
    fn streams_take_no_slot_of_a_page_and_are_limited() {
        let limits = limits();
        let person = contact(1, 1);
        let streams: Vec<_> = (0..5)
            .filter_map(|_| limits.admit_stream(person).ok())
            .collect();
        assert_eq!(streams.len(), 2);
        assert!(open_page(&limits, 1, person).is_ok());
        assert!(
            limits.admit_stream(contact(1, 2)).is_ok(),
            "another person has its own"
        );
        drop(streams);
        assert!(limits.admit_stream(person).is_ok());
    }

    #[test]
    fn sessions_that_were_not_found_lately_are_dropped() {
        let limits = limits();
        for number in 0..10 * SESSIONS_PER_CLEANUP {
            let minutes = i64::try_from(number / SESSIONS_PER_CLEANUP).unwrap() * 20;
            let at = now() + SignedDuration::from_mins(minutes);
            limits.remember_session(u128::try_from(number).unwrap(), contact(1, 1), at);
        }
        assert!(limits.sessions.len() <= SESSIONS_PER_CLEANUP + 1);
    }
}
