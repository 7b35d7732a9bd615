//! A lane that is taken over in the very transaction that gives it something to do, so that its actor begins as soon as
//! that is committed, without a claim of its own. A place among those at work is kept for it first; where none is free
//! the lane waits for the dispatcher like all that are due.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::store::lanes::Lease;

/// Of the places at work so many, one in four, are left to what the dispatcher finds due: else new work alone could
/// take them all.
const LEFT_TO_DUE: usize = 4;

/// Lanes with the places that were kept for them.
pub(crate) type Arrivals = mpsc::UnboundedReceiver<(Lease, OwnedSemaphorePermit)>;

/// Where lanes that were taken over are brought. Nobody is there before its dispatcher has opened it.
#[derive(Debug, Clone, Default)]
pub struct Handover(Arc<OnceLock<Open>>);

#[derive(Debug)]
struct Open {
    owner: String,
    lease: Duration,
    slots: Arc<Semaphore>,
    places_max: usize,
    arrivals: mpsc::UnboundedSender<(Lease, OwnedSemaphorePermit)>,
}

/// A place that is kept for a lane.
#[derive(Debug)]
pub struct Place<'a> {
    open: &'a Open,
    slot: OwnedSemaphorePermit,
}

impl Handover {
    /// Opens it for whoever works under this name with so many at once.
    pub(crate) fn open(
        &self,
        (owner, lease): (&str, Duration),
        (slots, places_max): (&Arc<Semaphore>, usize),
    ) -> Arrivals {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (owner, slots) = (owner.to_owned(), Arc::clone(slots));
        // A second one would never hear of anything: there is one dispatcher of a kind.
        let _ = self.0.set(Open { owner, lease, slots, places_max, arrivals: sender });
        receiver
    }

    /// Keeps a place for a lane, if one is free for it.
    pub fn place(&self) -> Option<Place<'_>> {
        let open = self.0.get()?;
        if open.slots.available_permits() <= open.places_max / LEFT_TO_DUE {
            return None;
        }
        let slot = Arc::clone(&open.slots).try_acquire_owned().ok()?;
        Some(Place { open, slot })
    }
}

impl Place<'_> {
    /// In whose name the lane is to be taken, and for how long.
    pub fn taker(&self) -> (&str, Duration) {
        (&self.open.owner, self.open.lease)
    }

    /// Brings a lane whose taking is committed. If nobody is there any more its lease ends.
    pub fn hand_over(self, lease: Lease) {
        let _ = self.open.arrivals.send((lease, self.slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::lanes::LaneKind;

    const LEASE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_place_is_kept_until_it_is_given_up_and_some_are_left_to_what_is_due() {
        let (handover, slots) = (Handover::default(), Arc::new(Semaphore::new(8)));
        assert!(handover.place().is_none(), "nobody is there yet");
        let mut arrivals = handover.open(("me", LEASE), (&slots, 8));
        let mut places: Vec<_> = std::iter::from_fn(|| handover.place()).collect();
        assert_eq!((places.len(), slots.available_permits()), (6, 2));
        let place = places.pop().unwrap();
        assert_eq!(place.taker(), ("me", LEASE));
        place.hand_over(Lease { kind: LaneKind::Endpoint, key: "7".into(), epoch: 1 });
        drop(places);
        assert_eq!(slots.available_permits(), 7, "one is on its way");
        let (lease, slot) = arrivals.recv().await.unwrap();
        assert_eq!(lease.key, "7");
        drop(slot);
        assert_eq!(slots.available_permits(), 8);
    }
}
