//! The limits of one client, shared: for each operation a line, first in, first out, before as many places as
//! its limit gives.
//!
//! Tokio's semaphore keeps the line. Whoever leaves it, served or not, and however a call ends, its place comes
//! back: a place is a guard.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure::{Failure, Kind};
use super::limit::{Limit, Sign, Ticket};
use super::operation::Operation;
use crate::domain::clock::SharedClock;

/// Those who wait for one operation; further ones are turned away at once. Whoever stands behind so many would
/// hardly be served in time, and each holds a document in memory.
const LINE_MAX: usize = 1_000;

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

/// One line per operation.
pub(super) struct Limits {
    clock: SharedClock,
    lines: [Line; Operation::ALL.len()],
}

struct Line {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    account: Mutex<Account>,
}

struct Account {
    limit: Limit,
    /// Places there are, taken or free. After a fall they may be more than the limit until they come back.
    issued: usize,
}

/// Leave for one call at a time.
pub(super) struct Place {
    limits: Arc<Limits>,
    operation: Operation,
    permit: Option<OwnedSemaphorePermit>,
    /// Present once the call was begun.
    ticket: Option<Ticket>,
    sign: Sign,
}

/// One who stands in line.
struct Waiting<'a>(&'a AtomicUsize);

impl Limits {
    /// At most `max` calls of an operation at a time.
    pub(super) fn new(max: u32, clock: SharedClock) -> Arc<Self> {
        Arc::new(Self { clock, lines: std::array::from_fn(|_| Line::new(max)) })
    }

    /// Stands in line until a place is free; None where the line is too long. Dropped, it leaves the line.
    pub(super) async fn place(self: &Arc<Self>, operation: Operation) -> Option<Place> {
        let line = self.line(operation);
        let free = Arc::clone(&line.places).try_acquire_owned();
        let permit = if let Ok(permit) = free {
            Some(permit)
        } else {
            let _waiting = Waiting::join(&line.waiting)?;
            Arc::clone(&line.places).acquire_owned().await.ok()
        };
        Some(Place { limits: Arc::clone(self), operation, permit, ticket: None, sign: Sign::Neutral })
    }

    /// How long the authority wants no calls of this kind.
    pub(super) fn held(&self, operation: Operation) -> Option<Duration> {
        self.line(operation).lock().limit.held(self.clock.now())
    }

    pub(super) fn views(&self) -> Vec<LimitView> {
        let now = self.clock.now();
        let view = |operation| {
            let line = self.line(operation);
            let limit = &line.lock().limit;
            LimitView {
                operation,
                limit: limit.places(),
                in_flight: limit.in_flight(),
                waiting: line.waiting.load(Ordering::Relaxed),
                held_until: limit.not_before(now),
            }
        };
        Operation::ALL.into_iter().map(view).collect()
    }

    fn line(&self, operation: Operation) -> &Line {
        &self.lines[operation as usize]
    }
}

impl Line {
    fn new(max: u32) -> Self {
        let limit = Limit::new(max);
        let issued = count(limit.places());
        let places = Arc::new(Semaphore::new(issued));
        Self { places, waiting: AtomicUsize::new(0), account: Mutex::new(Account { limit, issued }) }
    }

    fn lock(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place back and brings their number into line with the limit. One too many goes here, before it
    /// passes to the next in line: while there is a line, no place is ever free to be taken away.
    fn take_back(&self, permit: Option<OwnedSemaphorePermit>, account: &mut Account) {
        let wanted = count(account.limit.places());
        match permit {
            Some(permit) if account.issued > wanted => {
                permit.forget();
                account.issued -= 1;
            }
            permit => drop(permit),
        }
        if account.issued > wanted {
            account.issued -= self.places.forget_permits(account.issued - wanted);
        } else {
            self.places.add_permits(wanted - account.issued);
            account.issued = wanted;
        }
    }
}

impl Place {
    /// The call begins. Until here nothing counts as under way.
    pub(super) fn begin(&mut self) {
        self.ticket = Some(self.limits.line(self.operation).lock().limit.start());
    }

    /// The call has ended so, within this time.
    pub(super) fn settle<T>(mut self, result: &Result<T, Failure>, took: Duration) {
        self.sign = sign(result, took);
    }
}

/// A call whose caller went away says nothing.
impl Drop for Place {
    fn drop(&mut self) {
        let line = self.limits.line(self.operation);
        let mut account = line.lock();
        if let Some(ticket) = self.ticket {
            account.limit.settle(ticket, self.sign, self.limits.clock.now());
        }
        line.take_back(self.permit.take(), &mut account);
    }
}

impl<'a> Waiting<'a> {
    fn join(line: &'a AtomicUsize) -> Option<Self> {
        let waiting = Self(line);
        // Dropped, it takes its step back.
        (line.fetch_add(1, Ordering::Relaxed) < LINE_MAX).then_some(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn count(places: u32) -> usize {
    usize::try_from(places).unwrap_or(usize::MAX)
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
    use super::*;
    use crate::domain::clock::SystemClock;

    const OPERATION: Operation = Operation::Confirm;

    fn limits(max: u32) -> Arc<Limits> {
        Limits::new(max, Arc::new(SystemClock))
    }

    fn taken(limits: &Arc<Limits>) -> Option<Place> {
        let mut place = limits.place(OPERATION).now_or_never()??;
        place.begin();
        Some(place)
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
        let (mut first, mut second) = (Box::pin(limits.place(OPERATION)), Box::pin(limits.place(OPERATION)));
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
        let mut first = Box::pin(limits.place(OPERATION));
        let mut second = Box::pin(limits.place(OPERATION));
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
        let mut places: Vec<_> = (0..4).map(|_| taken(&limits).unwrap()).collect();
        let mut line: Vec<_> = (0..3).map(|_| Box::pin(limits.place(OPERATION))).collect();
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
    fn a_line_that_is_too_long_turns_away() {
        let limits = limits(1);
        let _held = taken(&limits).unwrap();
        let mut line: Vec<_> = (0..LINE_MAX).map(|_| Box::pin(limits.place(OPERATION))).collect();
        for waiting in &mut line {
            assert!(waiting.now_or_never().is_none());
        }
        assert!(matches!(limits.place(OPERATION).now_or_never(), Some(None)));
        assert_eq!(view(&limits), (1, 1, LINE_MAX));
        line.pop();
        assert!(limits.place(OPERATION).now_or_never().is_none(), "there is room again");
    }

    #[test]
    fn operations_do_not_stand_in_each_others_line() {
        let limits = limits(1);
        let _held = taken(&limits).unwrap();
        assert!(limits.place(Operation::Sign).now_or_never().is_some());
    }
}
