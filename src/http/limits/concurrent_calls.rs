//! Limits the concurrent calls of each account. Slow calls have a separate limit, so they never block short ones.

use tokio::sync::OwnedSemaphorePermit;

use crate::domain::access::api_key::KeyOwner;
use crate::http::limits::keyed_semaphores::KeyedSemaphores;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::{ApiError, RETRY_AFTER};

/// The kinds of calls, which differ in how long they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CallKind {
    Read,
    Write,
    /// The call waits for the authority or for a webhook receiver.
    Relay,
}

/// Counts a call as in flight until the slot is dropped.
pub(crate) type CallSlot = OwnedSemaphorePermit;

/// The calls in flight of each account.
#[derive(Debug)]
pub struct ConcurrentCalls {
    brief: KeyedSemaphores<(KeyOwner, CallKind)>,
    relays: KeyedSemaphores<KeyOwner>,
}

impl ConcurrentCalls {
    /// Allows each account `brief_max` reads, `brief_max` writes and `relays_max` relayed calls at the same time.
    pub fn new(brief_max: usize, relays_max: usize) -> Self {
        Self { brief: KeyedSemaphores::new(brief_max), relays: KeyedSemaphores::new(relays_max) }
    }

    pub(crate) fn start(&self, account: KeyOwner, kind: CallKind) -> Result<CallSlot, ApiError> {
        let share = match kind {
            CallKind::Relay => self.relays.of(account),
            brief => self.brief.of((account, brief)),
        };
        share.try_acquire_owned().map_err(|_| {
            let message = "Too many calls with this key are under way, please try again";
            ApiError::new(ErrorCode::RateLimited, message).retry_in(RETRY_AFTER)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::caller::KeyKind;

    #[test]
    fn relays_take_no_place_of_a_read_or_a_write() {
        let (calls, account) = (ConcurrentCalls::new(1, 2), KeyOwner { kind: KeyKind::Taxpayer, id: 7 });
        let start = |kind| calls.start(account, kind);
        let relays = (start(CallKind::Relay).unwrap(), start(CallKind::Relay).unwrap());
        let refused = start(CallKind::Relay).unwrap_err();
        assert_eq!((refused.code, refused.retry_after), (ErrorCode::RateLimited, Some(RETRY_AFTER)));
        let brief = (start(CallKind::Read).unwrap(), start(CallKind::Write).unwrap());
        assert!(start(CallKind::Read).is_err() && start(CallKind::Write).is_err());
        assert!(calls.start(KeyOwner { kind: KeyKind::Integrator, id: 7 }, CallKind::Read).is_ok());
        drop((relays, brief));
        assert!(start(CallKind::Relay).is_ok() && start(CallKind::Read).is_ok());
    }
}
