//! The requests with a key that this process is answering. A twin that comes to another replica meanwhile is
//! told apart by the row that the first one leaves.

use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use crate::domain::access::claim::IdempotencyClaim;

/// Fingerprints by the id of their claim.
#[derive(Debug, Clone, Default)]
pub struct UnderWay(Arc<DashMap<String, String>>);

/// A request that is being answered; it is over with this value.
#[derive(Debug)]
pub(super) struct Place {
    under_way: UnderWay,
    id: String,
}

/// A request with the same key is being answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Occupied {
    /// Whether it is the same request.
    pub(super) by_twin: bool,
}

impl UnderWay {
    pub(super) fn enter(&self, claim: &IdempotencyClaim) -> Result<Place, Occupied> {
        match self.0.entry(claim.id.clone()) {
            Entry::Occupied(other) => Err(Occupied { by_twin: *other.get() == claim.fingerprint }),
            Entry::Vacant(place) => {
                place.insert(claim.fingerprint.clone());
                Ok(Place { under_way: self.clone(), id: claim.id.clone() })
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.under_way.0.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::access::caller::KeyKind;

    #[test]
    fn a_key_is_in_one_hand_at_a_time() {
        let claim = |body: &[u8]| {
            IdempotencyClaim::new((KeyKind::Taxpayer, 7), "k", &[b"POST", b"/", body], Timestamp::UNIX_EPOCH)
        };
        let under_way = UnderWay::default();
        let place = under_way.enter(&claim(b"a")).unwrap();
        assert_eq!(under_way.enter(&claim(b"a")).unwrap_err(), Occupied { by_twin: true });
        assert_eq!(under_way.enter(&claim(b"b")).unwrap_err(), Occupied { by_twin: false });
        drop(place);
        assert!(under_way.enter(&claim(b"b")).is_ok());
    }
}
