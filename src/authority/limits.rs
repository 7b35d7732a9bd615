//! The limits of one client, shared: for each operation a queue before as many places as its limit gives.
//!
//! A place is a guard: whoever leaves the queue, served or not, and however a call ends, it comes back. No account
//! has all places, so that calls that hang leave one for the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot::{self, Receiver, Sender};

use super::account::Account;
use super::failure::{Failure, Kind};
use super::limit::{Limit, Sign, Ticket};
use super::operation::Operation;
use super::wait_queue::WaitQueue;
use crate::domain::kernel::clock::SharedClock;

/// The limit of one operation, observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitView {
    pub operation: Operation,
    /// Calls that may be under way at a time, calls that are, and calls that wait for a place.
    pub limit: u32,
    pub in_flight: u32,
    pub waiting: usize,
    /// Until when the authority asked for no calls of this kind.
    pub held_until: Option<Timestamp>,
}

/// The limit and the queue of each operation.
pub(super) struct Limits {
    clock: SharedClock,
    lines: [Mutex<Line>; Operation::ALL.len()],
}

struct Line {
    limit: Limit,
    queue: WaitQueue<Sender<Place>>,
    /// Places that are taken, in all and by each account. After a fall they may be more than the limit.
    taken: u32,
    taken_by: HashMap<Account, u32>,
}

/// Leave for one call at a time.
pub(super) struct Place {
    limits: Arc<Limits>,
    operation: Operation,
    account: Account,
    /// Present once the call was begun.
    ticket: Option<Ticket>,
    sign: Sign,
}

/// One who stands in the queue.
struct Waiting {
    limits: Arc<Limits>,
    operation: Operation,
    account: Account,
    number: u64,
}

impl Limits {
    /// At most `max` calls of an operation at a time.
    pub(super) fn new(max: u32, clock: SharedClock) -> Arc<Self> {
        Arc::new(Self { clock, lines: std::array::from_fn(|_| Mutex::new(Line::new(max))) })
    }

    /// Waits until a place is free; None where the queue is too long. Dropped, it leaves the queue.
    pub(super) async fn place(self: &Arc<Self>, operation: Operation, account: Account) -> Option<Place> {
        if self.lock(operation).take(account) {
            return Some(self.new_place(operation, account));
        }
        let (_waiting, place) = self.join(operation, account)?;
        place.await.ok()
    }

    /// How long the authority wants no calls of this kind.
    pub(super) fn held(&self, operation: Operation) -> Option<Duration> {
        self.lock(operation).limit.held(self.clock.now())
    }

    pub(super) fn views(&self) -> Vec<LimitView> {
        let now = self.clock.now();
        let view = |operation| {
            let line = self.lock(operation);
            LimitView {
                operation,
                limit: line.limit.places(),
                in_flight: line.limit.in_flight(),
                waiting: line.queue.len(),
                held_until: line.limit.not_before(now),
            }
        };
        Operation::ALL.into_iter().map(view).collect()
    }

    fn join(self: &Arc<Self>, operation: Operation, account: Account) -> Option<(Waiting, Receiver<Place>)> {
        let (sender, receiver) = oneshot::channel();
        let joined = self.lock(operation).queue.join(account, sender)?;
        // Whoever had to go is told by that.
        drop(joined.displaced);
        let waiting = Waiting { limits: Arc::clone(self), operation, account, number: joined.number };
        Some((waiting, receiver))
    }

    /// A place that was counted as taken.
    fn new_place(self: &Arc<Self>, operation: Operation, account: Account) -> Place {
        Place { limits: Arc::clone(self), operation, account, ticket: None, sign: Sign::Neutral }
    }

    fn lock(&self, operation: Operation) -> MutexGuard<'_, Line> {
        self.lines[operation as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn new(max: u32) -> Self {
        Self { limit: Limit::new(max), queue: WaitQueue::new(), taken: 0, taken_by: HashMap::new() }
    }

    /// Takes a free place, if the account may have one more. Those who wait have been given all they may have.
    fn take(&mut self, account: Account) -> bool {
        let own = self.taken_by.get(&account).copied().unwrap_or_default();
        if self.taken >= self.limit.places() || own >= self.limit.share() {
            return false;
        }
        self.count(account);
        true
    }

    /// Gives a free place to whoever is next.
    fn give(&mut self) -> Option<(Account, Sender<Place>)> {
        if self.taken >= self.limit.places() {
            return None;
        }
        let (share, taken_by) = (self.limit.share(), &self.taken_by);
        let open =
            |account| Some(taken_by.get(&account).copied().unwrap_or_default()).filter(|own| *own < share);
        let next = self.queue.next(open)?;
        self.count(next.0);
        Some(next)
    }

    fn count(&mut self, account: Account) {
        self.taken = self.taken.saturating_add(1);
        let own = self.taken_by.entry(account).or_default();
        *own = own.saturating_add(1);
    }

    fn take_back(&mut self, account: Account) {
        self.taken = self.taken.saturating_sub(1);
        if let Some(own) = self.taken_by.get_mut(&account) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                self.taken_by.remove(&account);
            }
        }
    }
}

impl Place {
    /// The call begins. Until here nothing counts as under way.
    pub(super) fn begin(&mut self) {
        self.ticket = Some(self.limits.lock(self.operation).limit.start());
    }

    /// The call has ended so, within this time.
    pub(super) fn settle<T>(mut self, result: &Result<T, Failure>, took: Duration) {
        self.sign = sign(result, took);
    }
}

/// A call whose caller went away says nothing.
impl Drop for Place {
    fn drop(&mut self) {
        let mut line = self.limits.lock(self.operation);
        if let Some(ticket) = self.ticket {
            line.limit.settle(ticket, self.sign, self.limits.clock.now());
        }
        line.take_back(self.account);
        let given: Vec<_> = std::iter::from_fn(|| line.give()).collect();
        drop(line);
        for (account, sender) in given {
            // Where nobody takes it any more it is dropped, and comes back here.
            drop(sender.send(self.limits.new_place(self.operation, account)));
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.limits.lock(self.operation).queue.leave(self.account, self.number);
    }
}

/// A refusal is borne like any answer, and so is a party that is offline. The busy words mean busy where nothing
/// else can be meant, in answer to a read; to a claim or an effect they may as well tell of a duplicate, and a
/// wave of those after a restart must not choke the calls that find it out. What never reached the authority,
/// what cannot be read, and what is wrong with our keys or address says nothing of load: that is the breaker's.
fn sign<T>(result: &Result<T, Failure>, took: Duration) -> Sign {
    let reason = match result {
        Ok(_) => return Sign::Succeeded(took),
        Err(Failure::Refused { .. } | Failure::NotFound { .. }) => return Sign::Answered,
        Err(Failure::Throttled { retry_after }) => return Sign::Throttled(*retry_after),
        Err(Failure::BreakerOpen { .. } | Failure::Paced { .. } | Failure::Crowded { .. }) => {
            return Sign::Neutral;
        }
        Err(Failure::Retryable { reason }) if reason.kind() == Kind::Ambiguous => return Sign::Overloaded,
        Err(Failure::Retryable { reason } | Failure::Unknown { reason }) => reason,
    };
    match reason.kind() {
        Kind::TimedOut | Kind::Cut | Kind::Down => Sign::Overloaded,
        Kind::Offline => Sign::Answered,
        Kind::Ambiguous | Kind::Unreachable | Kind::Garbled | Kind::KeyRefused | Kind::Misrouted => {
            Sign::Neutral
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::super::failure::Cause;
    use super::super::wait_queue::{WAITING_MAX, WAITING_OF_ACCOUNT_MAX};
    use super::*;
    use crate::domain::kernel::clock::SystemClock;
    use crate::domain::kernel::ids::TaxpayerId;

    const OPERATION: Operation = Operation::Confirm;
    const ONE: Account = Account::Service;

    fn account(id: i64) -> Account {
        Account::Taxpayer(TaxpayerId(id))
    }

    fn limits(max: u32) -> Arc<Limits> {
        Limits::new(max, Arc::new(SystemClock))
    }

    fn taken_by(limits: &Arc<Limits>, account: Account) -> Option<Place> {
        let mut place = limits.place(OPERATION, account).now_or_never()??;
        place.begin();
        Some(place)
    }

    fn taken(limits: &Arc<Limits>) -> Option<Place> {
        taken_by(limits, ONE)
    }

    fn view(limits: &Arc<Limits>) -> (u32, u32, usize) {
        let view = limits.views().swap_remove(OPERATION as usize);
        (view.limit, view.in_flight, view.waiting)
    }

    #[test]
    fn signs_are_told_by_the_kind_of_failure() {
        let took = Duration::from_millis(7);
        let reason =
            |cause: Cause| (Failure::Retryable { reason: cause.clone() }, Failure::Unknown { reason: cause });
        let both = [
            (Cause::TimedOut { after: took }, Sign::Overloaded, Sign::Overloaded),
            (Cause::Cut, Sign::Overloaded, Sign::Overloaded),
            (Cause::Down { status: 500 }, Sign::Overloaded, Sign::Overloaded),
            (Cause::Ambiguous { message: String::new() }, Sign::Overloaded, Sign::Neutral),
            (Cause::Offline { message: String::new() }, Sign::Answered, Sign::Answered),
            (Cause::Unreachable { problem: "" }, Sign::Neutral, Sign::Neutral),
            (Cause::Garbled { status: 200 }, Sign::Neutral, Sign::Neutral),
            (Cause::KeyRefused { message: String::new() }, Sign::Neutral, Sign::Neutral),
            (Cause::Misrouted { status: 302 }, Sign::Neutral, Sign::Neutral),
        ];
        for (cause, retryable, unknown) in both {
            let (one, other) = reason(cause.clone());
            assert_eq!(sign::<()>(&Err(one), took), retryable, "{cause:?}");
            assert_eq!(sign::<()>(&Err(other), took), unknown, "{cause:?}");
        }
        assert_eq!(sign(&Ok(()), took), Sign::Succeeded(took));
        let missing = Failure::NotFound { message: String::new() };
        assert_eq!(sign::<()>(&Err(missing), took), Sign::Answered);
        let throttled = Failure::Throttled { retry_after: Some(took) };
        assert_eq!(sign::<()>(&Err(throttled), took), Sign::Throttled(Some(took)));
    }

    #[test]
    fn those_who_find_no_place_are_served_in_the_order_they_came() {
        let limits = limits(1);
        let held = taken(&limits).unwrap();
        let (mut first, mut second) =
            (Box::pin(limits.place(OPERATION, ONE)), Box::pin(limits.place(OPERATION, ONE)));
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        assert_eq!(view(&limits), (1, 1, 2));
        drop(held);
        assert!(taken(&limits).is_none(), "nobody jumps the line");
        assert!((&mut second).now_or_never().is_none());
        let place = first.now_or_never().unwrap();
        assert!((&mut second).now_or_never().is_none());
        drop(place);
        assert!(second.now_or_never().is_some());
    }

    #[test]
    fn whoever_leaves_the_line_takes_no_place_along() {
        let limits = limits(1);
        let held = taken(&limits).unwrap();
        let mut first = Box::pin(limits.place(OPERATION, ONE));
        let mut second = Box::pin(limits.place(OPERATION, ONE));
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        drop(held);
        // It was given the place, and goes without having looked.
        drop(first);
        assert!(second.now_or_never().is_some());
        assert_eq!(view(&limits), (1, 0, 0));
        assert!(taken(&limits).is_some());
    }

    #[test]
    fn after_a_fall_places_come_back_as_fewer_also_while_others_wait() {
        let limits = limits(4);
        let mut places: Vec<_> = (0..4).map(|id| taken_by(&limits, account(id)).unwrap()).collect();
        let mut line: Vec<_> = (0..3).map(|_| Box::pin(limits.place(OPERATION, ONE))).collect();
        for waiting in &mut line {
            assert!(waiting.now_or_never().is_none());
        }
        let throttled: Result<(), Failure> = Err(Failure::Throttled { retry_after: None });
        places.pop().unwrap().settle(&throttled, Duration::ZERO);
        assert_eq!(view(&limits), (2, 3, 3));
        drop(places.pop());
        assert_eq!(view(&limits), (2, 2, 3), "two places were too many");
        assert!((&mut line[0]).now_or_never().is_none());
        drop(places.pop());
        assert!((&mut line[0]).now_or_never().is_some());
        drop(line);
        drop(places);
        let again: Vec<_> = std::iter::from_fn(|| taken(&limits)).collect();
        assert_eq!(again.len(), 2);
    }

    #[test]
    fn a_queue_that_is_too_long_turns_away_and_makes_room_for_those_with_few() {
        let limits = limits(1);
        let _held = taken(&limits).unwrap();
        let join = |id: usize| {
            let mut waiting = Box::pin(limits.place(OPERATION, account(i64::try_from(id).unwrap())));
            assert!((&mut waiting).now_or_never().is_none());
            waiting
        };
        let mut line: Vec<_> = (0..WAITING_MAX).map(|number| join(number / WAITING_OF_ACCOUNT_MAX)).collect();
        assert!(
            matches!(limits.place(OPERATION, account(0)).now_or_never(), Some(None)),
            "its share is full"
        );
        let _newcomer = join(9);
        assert_eq!(view(&limits), (1, 1, WAITING_MAX));
        let told: Vec<_> = line.iter_mut().filter_map(FutureExt::now_or_never).collect();
        assert!(matches!(told.as_slice(), [None]), "one of those with the most had to go");
    }

    #[test]
    fn no_account_has_all_places() {
        let limits = limits(4);
        let hanging: Vec<_> = std::iter::from_fn(|| taken_by(&limits, account(1))).collect();
        assert_eq!(hanging.len(), 3);
        let mut queue: Vec<_> = (0..9).map(|_| Box::pin(limits.place(OPERATION, account(1)))).collect();
        for waiting in &mut queue {
            assert!(waiting.now_or_never().is_none());
        }
        for id in 2..20 {
            assert!(taken_by(&limits, account(id)).is_some(), "there is a place for {id}");
        }
    }

    #[test]
    fn accounts_that_wait_take_turns() {
        let limits = limits(1);
        let held = taken(&limits).unwrap();
        let mut crowd: Vec<_> = (0..100).map(|_| Box::pin(limits.place(OPERATION, account(1)))).collect();
        for waiting in &mut crowd {
            assert!(waiting.now_or_never().is_none());
        }
        let mut other = Box::pin(limits.place(OPERATION, account(2)));
        assert!((&mut other).now_or_never().is_none());
        drop(held);
        assert!((&mut crowd[0]).now_or_never().is_some());
        assert!(other.now_or_never().is_some(), "one of the 100 went first");
    }

    #[test]
    fn operations_do_not_stand_in_each_others_line() {
        let limits = limits(1);
        let _held = taken(&limits).unwrap();
        assert!(limits.place(Operation::Sign, ONE).now_or_never().is_some());
    }
}
