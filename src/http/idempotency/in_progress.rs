//! Refuses a request while this process executes another one with the same idempotency key.

use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use crate::domain::access::claim::{Fingerprint, IdempotencyClaim};

/// The requests in progress. The map contains the fingerprint of each request, by the id of its idempotency claim.
#[derive(Debug, Clone, Default)]
pub struct InProgressRequests(Arc<DashMap<String, Fingerprint>>);

/// Marks a request as in progress until this guard is dropped.
#[derive(Debug)]
pub(crate) struct InProgressGuard {
    in_progress: InProgressRequests,
    id: String,
}

/// The reason for a refusal: another request with the same key is in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyInUse {
    /// True if the two requests are equal; false if they only have the same key.
    pub(crate) is_same_request: bool,
}

impl InProgressRequests {
    pub(crate) fn begin_request(
        &self,
        claim: &IdempotencyClaim,
    ) -> Result<InProgressGuard, KeyInUse> {
        match self.0.entry(claim.id.clone()) {
            Entry::Occupied(other) => Err(KeyInUse {
                is_same_request: other.get().is_same_request(&claim.fingerprint),
            }),
            Entry::Vacant(vacant) => {
                vacant.insert(claim.fingerprint.clone());
                Ok(InProgressGuard {
                    in_progress: self.clone(),
                    id: claim.id.clone(),
                })
            }
        }
    }
}

impl Drop for InProgressGuard {
    fn drop(&mut self) {
        self.in_progress.0.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::access::api_key::KeyOwner;
    use crate::domain::access::caller::KeyKind;

    #[test]
    fn a_key_is_used_by_one_request_at_a_time() {
        let claim = |body: &[u8]| {
            IdempotencyClaim::new(
                KeyOwner {
                    kind: KeyKind::Taxpayer,
                    id: 7,
                },
                "k",
                &[b"POST", b"/", body],
                Timestamp::UNIX_EPOCH,
            )
        };
        let in_progress = InProgressRequests::default();
        let guard = in_progress.begin_request(&claim(b"a")).unwrap();
        assert_eq!(
            in_progress.begin_request(&claim(b"a")).unwrap_err(),
            KeyInUse {
                is_same_request: true
            }
        );
        assert_eq!(
            in_progress.begin_request(&claim(b"b")).unwrap_err(),
            KeyInUse {
                is_same_request: false
            }
        );
        drop(guard);
        assert!(in_progress.begin_request(&claim(b"b")).is_ok());
    }
}
