//! Limits the concurrent calls of each account, and of each integrator with all its taxpayers. Slow calls have separate
//! limits, so they never block short ones.

use std::hash::Hash;

use tokio::sync::OwnedSemaphorePermit;

use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::payer::{Payer, PayingAccount};
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

/// The maximum numbers of calls at the same time: `brief_max` for reads and again for writes, `relays_max` for relayed
/// calls.
#[derive(Debug, Clone, Copy)]
pub struct ConcurrentLimits {
    pub brief_max: usize,
    pub relays_max: usize,
}

/// Counts a call as in flight until the slot is dropped.
#[derive(Debug)]
pub(crate) struct CallSlot {
    _account: OwnedSemaphorePermit,
    _payer: OwnedSemaphorePermit,
}

/// Limits the calls in flight of each account, and of each payer. A payer is an integrator with its taxpayers, or an
/// account that has no integrator.
#[derive(Debug)]
pub struct ConcurrentCalls {
    accounts: CallSemaphores<KeyOwner>,
    payers: CallSemaphores<Payer>,
}

#[derive(Debug)]
struct CallSemaphores<K: Eq + Hash> {
    brief: KeyedSemaphores<(K, CallKind)>,
    relays: KeyedSemaphores<K>,
}

impl ConcurrentCalls {
    pub fn new(account_limits: ConcurrentLimits, payer_limits: ConcurrentLimits) -> Self {
        Self {
            accounts: CallSemaphores::new(account_limits),
            payers: CallSemaphores::new(payer_limits),
        }
    }

    /// Takes a slot for a call. Fails at once if the account or its payer has too many calls in flight.
    pub(crate) fn start_call(
        &self,
        account: PayingAccount,
        kind: CallKind,
    ) -> Result<CallSlot, ApiError> {
        let account_permit = self
            .accounts
            .take_permit(account.owner, kind)
            .ok_or_else(|| too_many_calls_error("with this key"))?;
        let whose = "with the keys of this integrator and its taxpayers";
        let payer_permit = self
            .payers
            .take_permit(account.payer(), kind)
            .ok_or_else(|| too_many_calls_error(whose))?;
        Ok(CallSlot {
            _account: account_permit,
            _payer: payer_permit,
        })
    }
}

fn too_many_calls_error(whose: &str) -> ApiError {
    let message = format!("Too many calls {whose} are under way, please try again");
    ApiError::new(ErrorCode::RateLimited, message).with_retry_after(RETRY_AFTER)
}

impl<K: Eq + Hash> CallSemaphores<K> {
    fn new(limits: ConcurrentLimits) -> Self {
        let brief = KeyedSemaphores::new(limits.brief_max);
        Self {
            brief,
            relays: KeyedSemaphores::new(limits.relays_max),
        }
    }

    fn take_permit(&self, holder: K, kind: CallKind) -> Option<OwnedSemaphorePermit> {
        let semaphore = match kind {
            CallKind::Relay => self.relays.for_holder(holder),
            CallKind::Read | CallKind::Write => self.brief.for_holder((holder, kind)),
        };
        semaphore.try_acquire_owned().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::caller::KeyKind;
    use crate::domain::kernel::ids::IntegratorId;

    fn taxpayer(integrator: i64, id: i64) -> PayingAccount {
        let integrator = Some(IntegratorId(integrator));
        PayingAccount {
            integrator,
            owner: KeyOwner {
                kind: KeyKind::Taxpayer,
                id,
            },
        }
    }

    fn limits(brief_max: usize, relays_max: usize) -> ConcurrentLimits {
        ConcurrentLimits {
            brief_max,
            relays_max,
        }
    }

    #[test]
    fn relays_take_no_place_of_a_read_or_a_write() {
        let calls = ConcurrentCalls::new(limits(1, 2), limits(9, 9));
        let start = |kind| calls.start_call(taxpayer(1, 7), kind);
        let relays = (
            start(CallKind::Relay).unwrap(),
            start(CallKind::Relay).unwrap(),
        );
        let refused = start(CallKind::Relay).unwrap_err();
        assert_eq!(
            (refused.code, refused.retry_after),
            (ErrorCode::RateLimited, Some(RETRY_AFTER))
        );
        let brief = (
            start(CallKind::Read).unwrap(),
            start(CallKind::Write).unwrap(),
        );
        assert!(start(CallKind::Read).is_err() && start(CallKind::Write).is_err());
        let integrator = KeyOwner {
            kind: KeyKind::Integrator,
            id: 7,
        };
        let integrator = PayingAccount {
            integrator: Some(IntegratorId(7)),
            owner: integrator,
        };
        assert!(calls.start_call(integrator, CallKind::Read).is_ok());
        drop((relays, brief));
        assert!(start(CallKind::Relay).is_ok() && start(CallKind::Read).is_ok());
    }

    #[test]
    fn the_taxpayers_of_an_integrator_share_its_places() {
        let calls = ConcurrentCalls::new(limits(2, 2), limits(3, 3));
        for kind in [CallKind::Read, CallKind::Write, CallKind::Relay] {
            let taken: Vec<_> = (0..25)
                .filter_map(|id| calls.start_call(taxpayer(1, id), kind).ok())
                .collect();
            assert_eq!(taken.len(), 3, "{kind:?}");
            assert!(
                calls.start_call(taxpayer(2, 99), kind).is_ok(),
                "another integrator has its own"
            );
        }
    }
}
