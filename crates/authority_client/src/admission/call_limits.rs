//! The adaptive limits of one client. Each operation has as many slots as its limit allows, and a queue for them.
//!
//! A slot becomes free when its call ends or its caller gives up. One account may have about seven eighths of the
//! slots, and one payer all but one, so that others can call even if all these calls hang. Accounts whose calls only
//! fail use a few separate slots instead (`failing_accounts`).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use timing::clock::SharedClock;
use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::admission::adaptive_limit::{AdaptiveLimit, CallStart};
use crate::admission::call_origin::{CallerAccount, PayerOrService};
use crate::admission::failing_accounts::FailingAccounts;
use crate::admission::load_signal::{LoadSignal, load_signal};
use crate::admission::overload_source::OverloadSource;
use crate::admission::wait_queue::{QueueEntry, SlotsInUse, WaitQueue};
use crate::operation::Operation;
use crate::transport::failure::AuthorityFailure;

/// While this many calls of a payer wait, further calls of its failing accounts fail at once, so that they do not block
/// workers.
const WAITING_BESIDE_FAILING_MAX: usize = 8;

/// A snapshot of the limit of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitView {
    pub operation: Operation,
    /// The number of concurrent calls that are allowed now.
    pub limit: u32,
    /// The limit while no measurement is running. A measurement allows only few calls.
    pub lasting_limit: u32,
    pub in_flight: u32,
    /// The number of calls that wait for a slot.
    pub waiting: usize,
    /// The moving mean of the times of the last calls that succeeded; `None` before the first.
    pub answer_time: Option<Duration>,
    /// The end of the pause that the authority asked for; `None` if there is no pause.
    pub held_until: Option<Timestamp>,
}

pub(crate) struct CallLimits {
    clock: SharedClock,
    states: [Mutex<LimitState>; Operation::ALL.len()],
}

struct LimitState {
    slots: Slots,
    overloaded_accounts: OverloadSource<CallerAccount>,
    overloaded_payers: OverloadSource<PayerOrService>,
    queue: WaitQueue<Sender<AdmissionSlot>>,
    answer_time: Option<Duration>,
}

struct Slots {
    limit: AdaptiveLimit,
    failing: FailingAccounts,
    /// The shared slots in use: in total, by account and by payer. After the limit fell, the total may exceed it until
    /// calls end.
    used: u32,
    used_by: HashMap<CallerAccount, u32>,
    used_by_payer: HashMap<PayerOrService, u32>,
}

/// The group of slots that a slot belongs to: those that all accounts share, or the few for failing accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotKind {
    Shared,
    Apart,
}

/// The right to make one call. Dropping the slot frees it for the next queued call.
pub(crate) struct AdmissionSlot {
    limits: Arc<CallLimits>,
    operation: Operation,
    account: CallerAccount,
    kind: SlotKind,
    /// `None` until the call starts. Always `None` for a separate slot, because calls of failing accounts do not change
    /// the limit.
    started: Option<CallStart>,
    has_started: bool,
    signal: LoadSignal,
}

/// A queued call. Dropping this value removes the call from the queue.
struct QueuedCall {
    limits: Arc<CallLimits>,
    operation: Operation,
    account: CallerAccount,
    number: u64,
}

/// The slot of a call, or the wait of the call for its slot.
enum SlotOrWait {
    Slot(AdmissionSlot),
    Wait(QueuedCall, Receiver<AdmissionSlot>),
}

impl CallLimits {
    /// Allows at most `max` concurrent calls of each operation.
    pub(crate) fn new(max: u32, clock: SharedClock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            states: std::array::from_fn(|_| Mutex::new(LimitState::new(max))),
        })
    }

    /// Waits for a free slot. Returns `None` if the queue is full.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        operation: Operation,
        account: CallerAccount,
    ) -> Option<AdmissionSlot> {
        match self.acquire_or_queue(operation, account)? {
            SlotOrWait::Slot(slot) => Some(slot),
            SlotOrWait::Wait(_queued, slot) => slot.await.ok(),
        }
    }

    /// Returns how much is left of the pause that the authority asked for; `None` if there is no pause.
    pub(crate) fn pause_left(&self, operation: Operation) -> Option<Duration> {
        self.lock(operation)
            .slots
            .limit
            .pause_left(self.clock.now())
    }

    pub(crate) fn views(&self) -> Vec<LimitView> {
        let now = self.clock.now();
        let views = Operation::ALL.into_iter().map(|operation| {
            let state = self.lock(operation);
            let slots = &state.slots;
            LimitView {
                operation,
                limit: slots.limit.capacity(),
                lasting_limit: slots.limit.bound(),
                in_flight: slots.limit.in_flight() + slots.failing.in_flight(),
                waiting: state.queue.len(),
                answer_time: state.answer_time,
                held_until: slots.limit.pause_end(now),
            }
        });
        views.collect()
    }

    /// Measures the response times of all operations. If an operation has no calls now, its next calls are measured.
    fn begin_measurements(&self) {
        for operation in Operation::ALL {
            self.lock(operation).slots.limit.begin_measurement();
        }
    }

    /// Takes a free slot. If there is none, joins the queue; returns `None` if the queue is full. Both are done under
    /// one lock: a slot that became free in between would serve no queued call.
    fn acquire_or_queue(
        self: &Arc<Self>,
        operation: Operation,
        account: CallerAccount,
    ) -> Option<SlotOrWait> {
        let mut state = self.lock(operation);
        if let Some(kind) = state.slots.try_acquire(account) {
            return Some(SlotOrWait::Slot(self.new_slot(operation, account, kind)));
        }
        let (sender, receiver) = oneshot::channel();
        let joined = state.join_queue(account, sender)?;
        drop(state);
        // Dropping the sender makes the displaced call fail.
        drop(joined.displaced);
        let queued = QueuedCall {
            limits: Arc::clone(self),
            operation,
            account,
            number: joined.number,
        };
        Some(SlotOrWait::Wait(queued, receiver))
    }

    /// Returns a guard that frees the slot when it is dropped. The caller must already have counted the slot as used.
    fn new_slot(
        self: &Arc<Self>,
        operation: Operation,
        account: CallerAccount,
        kind: SlotKind,
    ) -> AdmissionSlot {
        AdmissionSlot {
            limits: Arc::clone(self),
            operation,
            account,
            kind,
            started: None,
            has_started: false,
            signal: LoadSignal::Neutral,
        }
    }

    fn lock(&self, operation: Operation) -> MutexGuard<'_, LimitState> {
        self.states[operation as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl LimitState {
    fn new(max: u32) -> Self {
        let slots = Slots {
            limit: AdaptiveLimit::new(max),
            failing: FailingAccounts::default(),
            used: 0,
            used_by: HashMap::new(),
            used_by_payer: HashMap::new(),
        };
        Self {
            slots,
            overloaded_accounts: OverloadSource::default(),
            overloaded_payers: OverloadSource::default(),
            queue: WaitQueue::new(),
            answer_time: None,
        }
    }

    fn join_queue(
        &mut self,
        account: CallerAccount,
        sender: Sender<AdmissionSlot>,
    ) -> Option<QueueEntry<Sender<AdmissionSlot>>> {
        let is_full = self.queue.payer_len(account.payer()) >= WAITING_BESIDE_FAILING_MAX;
        if is_full && self.slots.failing.is_failing(account) {
            return None;
        }
        self.queue.add_waiter(account, sender)
    }

    /// Takes a free slot for the next queued call. Returns the account of the call, the kind of the slot, and the
    /// channel on which the call waits for the slot. `None` if no call waits, or if no slot is free for any queued
    /// call.
    fn serve_next_call(&mut self) -> Option<(CallerAccount, SlotKind, Sender<AdmissionSlot>)> {
        let (account, sender) = self
            .queue
            .take_next_waiter(|account| self.slots.slots_in_use_if_free(account))?;
        Some((account, self.slots.take_slot(account), sender))
    }

    /// Passes the signal of an ended call to the limit. Failures of only one account or payer do not lower the limit,
    /// because all accounts share it.
    fn settle(&mut self, slot: &AdmissionSlot, now: Timestamp) {
        let account = slot.account;
        if let LoadSignal::Succeeded(took) = slot.signal {
            self.answer_time = Some(moving_mean(self.answer_time, took));
        }
        let is_own_overload = match slot.signal {
            LoadSignal::Overloaded => {
                self.slots.failing.on_failure(account);
                let is_of_account = self.overloaded_accounts.on_overload(account, now);
                let is_of_payer = self.overloaded_payers.on_overload(account.payer(), now);
                is_of_account || is_of_payer
            }
            LoadSignal::Succeeded(_) | LoadSignal::Answered => {
                self.slots.failing.on_answer(account);
                self.overloaded_accounts.on_answer(account, now);
                self.overloaded_payers.on_answer(account.payer(), now);
                false
            }
            LoadSignal::Neutral | LoadSignal::Throttled(_) => false,
        };
        let signal = if is_own_overload {
            LoadSignal::Neutral
        } else {
            slot.signal
        };
        match (slot.started, signal) {
            (Some(call), signal) => self.slots.limit.settle(call, signal, now),
            (None, LoadSignal::Throttled(Some(wait))) => self.slots.limit.pause(wait, now),
            (None, _) => {}
        }
    }
}

impl Slots {
    /// Takes a free slot; `None` if there is none, or if the account or its payer uses its full share. This overtakes
    /// no queued call: while a slot is free, calls are queued only because their accounts or payers use their full
    /// share.
    fn try_acquire(&mut self, account: CallerAccount) -> Option<SlotKind> {
        self.slots_in_use_if_free(account)?;
        Some(self.take_slot(account))
    }

    /// Returns the slots in use by the account and its payer; `None` if the account may not take another slot now.
    fn slots_in_use_if_free(&self, account: CallerAccount) -> Option<SlotsInUse> {
        let payer = account.payer();
        if self.failing.is_failing(account) {
            let by_payer = self.failing.slots_in_use_if_free(payer)?;
            return Some(SlotsInUse {
                by_payer,
                by_account: 0,
            });
        }
        let by_account = self.used_by.get(&account).copied().unwrap_or_default();
        let by_payer = self.used_by_payer.get(&payer).copied().unwrap_or_default();
        let is_open = self.used < self.limit.capacity()
            && by_account < self.limit.account_share()
            && by_payer < self.limit.payer_share();
        is_open.then_some(SlotsInUse {
            by_payer,
            by_account,
        })
    }

    /// Counts one more slot as used by this account. Returns the kind of the slot.
    fn take_slot(&mut self, account: CallerAccount) -> SlotKind {
        let payer = account.payer();
        if self.failing.is_failing(account) {
            self.failing.take_slot(payer);
            return SlotKind::Apart;
        }
        self.used = self.used.saturating_add(1);
        *self.used_by.entry(account).or_default() += 1;
        *self.used_by_payer.entry(payer).or_default() += 1;
        SlotKind::Shared
    }

    fn release_slot(&mut self, account: CallerAccount, kind: SlotKind) {
        match kind {
            SlotKind::Apart => self.failing.free_slot(account.payer()),
            SlotKind::Shared => {
                self.used = self.used.saturating_sub(1);
                count_freed_slot(&mut self.used_by, account);
                count_freed_slot(&mut self.used_by_payer, account.payer());
            }
        }
    }
}

/// Returns the moving mean of the answer times, in which the newest counts for an eighth.
fn moving_mean(mean: Option<Duration>, newest: Duration) -> Duration {
    mean.map_or(newest, |mean| (mean.saturating_mul(7) + newest) / 8)
}

fn count_freed_slot<K: Copy + Eq + Hash>(used_by: &mut HashMap<K, u32>, holder: K) {
    if let Some(used) = used_by.get_mut(&holder) {
        *used = used.saturating_sub(1);
        if *used == 0 {
            used_by.remove(&holder);
        }
    }
}

impl AdmissionSlot {
    /// Starts the call. It counts as in flight only from now on.
    pub(crate) fn start(&mut self) {
        self.has_started = true;
        if self.kind == SlotKind::Shared {
            let mut state = self.limits.lock(self.operation);
            self.started = Some(state.slots.limit.start());
        }
    }

    /// Reports the result and the duration of the call.
    pub(crate) fn settle<T>(mut self, result: &Result<T, AuthorityFailure>, took: Duration) {
        self.signal = load_signal(result, took);
    }
}

/// Frees the slot and hands free slots to queued calls. A call that was cancelled gives no load signal.
impl Drop for AdmissionSlot {
    fn drop(&mut self) {
        let mut state = self.limits.lock(self.operation);
        if self.has_started {
            state.settle(self, self.limits.clock.now());
        }
        state.slots.release_slot(self.account, self.kind);
        let needs_measurement = state.slots.limit.needs_measurement();
        if needs_measurement {
            // The measurement begins before queued calls get slots, because it allows only few calls.
            state.slots.limit.begin_measurement();
        }
        let served: Vec<_> = std::iter::from_fn(|| state.serve_next_call()).collect();
        drop(state);
        if needs_measurement {
            self.limits.begin_measurements();
        }
        for (account, kind, sender) in served {
            // `send` returns the slot if the queued call was cancelled. Dropping the slot frees it for the next call.
            drop(sender.send(self.limits.new_slot(self.operation, account, kind)));
        }
    }
}

impl Drop for QueuedCall {
    fn drop(&mut self) {
        self.limits
            .lock(self.operation)
            .queue
            .remove_waiter(self.account, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use futures_util::FutureExt;
    use timing::clock::SystemClock;

    use super::*;
    use crate::admission::wait_queue::{WAITING_MAX, WAITING_PER_ACCOUNT_MAX};
    use crate::transport::failure::Cause;

    const OPERATION: Operation = Operation::Confirm;
    const ONE: CallerAccount = CallerAccount::Service;

    /// A taxpayer that has a payer of its own.
    fn account(id: i64) -> CallerAccount {
        taxpayer(id, id)
    }

    fn taxpayer(payer: i64, id: i64) -> CallerAccount {
        CallerAccount::Taxpayer { id, payer }
    }

    fn limits(max: u32) -> Arc<CallLimits> {
        CallLimits::new(max, Arc::new(SystemClock))
    }

    fn acquire_for(limits: &Arc<CallLimits>, account: CallerAccount) -> Option<AdmissionSlot> {
        let mut slot = limits.acquire(OPERATION, account).now_or_never()??;
        slot.start();
        Some(slot)
    }

    fn acquire_one(limits: &Arc<CallLimits>) -> Option<AdmissionSlot> {
        acquire_for(limits, ONE)
    }

    fn view(limits: &Arc<CallLimits>) -> (u32, u32, usize) {
        let view = limits.views().swap_remove(OPERATION as usize);
        (view.limit, view.in_flight, view.waiting)
    }

    /// Makes calls of 80 callers, more than there are slots. A call takes as long as this says for the number of calls
    /// in flight. Returns the lasting limits after each hundredth call.
    fn limits_in_a_crowd(
        limits: &Arc<CallLimits>,
        calls: usize,
        took: fn(u32) -> Duration,
    ) -> Vec<u32> {
        let acquire = |id| limits.acquire(OPERATION, account(id)).boxed();
        let mut waiting: Vec<_> = (0..80).map(|id| (id, acquire(id))).collect();
        // (when the call ends, its caller, its slot, how long it takes)
        let mut in_flight: Vec<(Duration, i64, AdmissionSlot, Duration)> = Vec::new();
        let mut now = Duration::ZERO;
        let mut seen = Vec::new();
        for call in 1..=calls {
            waiting.retain_mut(|(id, slot)| {
                let Some(slot) = slot.now_or_never() else {
                    return true;
                };
                let mut slot = slot.unwrap();
                slot.start();
                let took = took(u32::try_from(in_flight.len() + 1).unwrap());
                in_flight.push((now + took, *id, slot, took));
                false
            });
            let ends = in_flight.iter().map(|(end, ..)| *end);
            let first = ends.enumerate().min_by_key(|(_, end)| *end).unwrap().0;
            let (end, id, slot, took) = in_flight.swap_remove(first);
            now = end;
            slot.settle(&Ok(()), took);
            waiting.push((id, acquire(id)));
            if call.is_multiple_of(100) {
                seen.push(limits.views()[OPERATION as usize].lasting_limit);
            }
        }
        seen
    }

    #[test]
    fn the_cause_of_slowness_is_found_although_others_wait() {
        for (took, lowest, last) in [
            (
                (|_| Duration::from_secs(5)) as fn(u32) -> Duration,
                8..64,
                64..65,
            ),
            // Two calls at a time are served.
            (|calls| Duration::from_millis(50) * calls, 4..8, 4..12),
        ] {
            let limits = CallLimits::new(64, Arc::new(SystemClock));
            limits_in_a_crowd(&limits, 300, |_| Duration::from_millis(100));
            let seen = limits_in_a_crowd(&limits, 6_000, took);
            assert!(lowest.contains(seen.iter().min().unwrap()), "{seen:?}");
            assert!(last.contains(seen.last().unwrap()), "{seen:?}");
        }
    }

    #[test]
    fn queued_calls_are_served_in_order_of_arrival() {
        let limits = limits(1);
        let held = acquire_one(&limits).unwrap();
        let mut first = Box::pin(limits.acquire(OPERATION, ONE));
        let mut second = Box::pin(limits.acquire(OPERATION, ONE));
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        assert_eq!(view(&limits), (1, 1, 2));
        drop(held);
        assert!(
            acquire_one(&limits).is_none(),
            "a new call does not overtake the queue"
        );
        assert!((&mut second).now_or_never().is_none());
        let slot = first.now_or_never().unwrap();
        assert!((&mut second).now_or_never().is_none());
        drop(slot);
        assert!(second.now_or_never().is_some());
    }

    #[test]
    fn a_slot_that_becomes_free_while_a_call_joins_the_queue_serves_this_call() {
        let limits = limits(1);
        for round in 0..2_000 {
            let held = acquire_one(&limits).unwrap();
            let start = Arc::new(Barrier::new(2));
            let other = Arc::clone(&start);
            let freed = thread::spawn(move || {
                other.wait();
                drop(held);
            });
            start.wait();
            let mut call = Box::pin(limits.acquire(OPERATION, ONE));
            let served = (&mut call).now_or_never();
            freed.join().unwrap();
            let served = served.or_else(|| call.now_or_never());
            assert!(served.is_some(), "round {round}");
        }
    }

    #[test]
    fn a_call_that_leaves_the_queue_takes_no_slot() {
        let limits = limits(1);
        let held = acquire_one(&limits).unwrap();
        let mut first = Box::pin(limits.acquire(OPERATION, ONE));
        let mut second = Box::pin(limits.acquire(OPERATION, ONE));
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        drop(held);
        // The first call has received the slot, but is dropped before it is polled again.
        drop(first);
        assert!(second.now_or_never().is_some());
        assert_eq!(view(&limits), (1, 0, 0));
        assert!(acquire_one(&limits).is_some());
    }

    #[test]
    fn after_the_limit_fell_fewer_slots_return_while_calls_wait() {
        let limits = limits(4);
        let mut slots: Vec<_> = (0..4)
            .map(|id| acquire_for(&limits, account(id)).unwrap())
            .collect();
        let mut queue: Vec<_> = (0..3)
            .map(|_| Box::pin(limits.acquire(OPERATION, ONE)))
            .collect();
        for waiting in &mut queue {
            assert!(waiting.now_or_never().is_none());
        }
        let throttled: Result<(), AuthorityFailure> =
            Err(AuthorityFailure::Throttled { retry_after: None });
        slots.pop().unwrap().settle(&throttled, Duration::ZERO);
        assert_eq!(view(&limits), (2, 3, 3));
        drop(slots.pop());
        assert_eq!(view(&limits), (2, 2, 3), "two slots exceed the limit");
        assert!((&mut queue[0]).now_or_never().is_none());
        drop(slots.pop());
        assert!((&mut queue[0]).now_or_never().is_some());
        drop(queue);
        drop(slots);
        let again: Vec<_> = std::iter::from_fn(|| acquire_one(&limits)).collect();
        assert_eq!(again.len(), 2);
    }

    #[test]
    fn a_full_queue_rejects_calls_and_makes_room_for_accounts_with_few() {
        let limits = limits(1);
        let _held = acquire_one(&limits).unwrap();
        let join = |id: usize| {
            let mut waiting =
                Box::pin(limits.acquire(OPERATION, account(i64::try_from(id).unwrap())));
            assert!((&mut waiting).now_or_never().is_none());
            waiting
        };
        let mut queue: Vec<_> = (0..WAITING_MAX)
            .map(|number| join(number / WAITING_PER_ACCOUNT_MAX))
            .collect();
        assert!(
            matches!(
                limits.acquire(OPERATION, account(0)).now_or_never(),
                Some(None)
            ),
            "its share is full"
        );
        let _newcomer = join(9);
        assert_eq!(view(&limits), (1, 1, WAITING_MAX));
        let failed: Vec<_> = queue
            .iter_mut()
            .filter_map(FutureExt::now_or_never)
            .collect();
        assert!(
            matches!(failed.as_slice(), [None]),
            "a call of the account with the most is displaced"
        );
    }

    #[test]
    fn no_account_takes_every_slot() {
        let limits = limits(4);
        let hanging: Vec<_> = std::iter::from_fn(|| acquire_for(&limits, account(1))).collect();
        assert_eq!(hanging.len(), 3);
        let mut queue: Vec<_> = (0..9)
            .map(|_| Box::pin(limits.acquire(OPERATION, account(1))))
            .collect();
        for waiting in &mut queue {
            assert!(waiting.now_or_never().is_none());
        }
        for id in 2..20 {
            assert!(
                acquire_for(&limits, account(id)).is_some(),
                "there is a slot for {id}"
            );
        }
    }

    #[test]
    fn failures_of_one_account_do_not_lower_the_limit_for_others() {
        let limits = limits(64);
        let down: Result<(), AuthorityFailure> = Err(AuthorityFailure::Retryable {
            reason: Cause::Down { status: 503 },
        });
        let call = |id: i64, result: &Result<(), AuthorityFailure>| {
            acquire_for(&limits, account(id))
                .unwrap()
                .settle(result, Duration::from_millis(100));
        };
        (0..8).for_each(|_| call(1, &Ok(())));
        assert_eq!(view(&limits).0, 16);
        (0..100).for_each(|_| call(2, &down));
        assert_eq!(view(&limits).0, 16);
        call(3, &down);
        assert_eq!(view(&limits).0, 11, "the calls of two accounts fail");
    }

    #[test]
    fn the_taxpayers_of_one_payer_leave_a_slot_for_others() {
        let limits = limits(64);
        let hanging: Vec<_> = (0..25)
            .filter_map(|id| acquire_for(&limits, taxpayer(1, id)))
            .collect();
        assert_eq!((hanging.len(), view(&limits).0), (3, 4));
        for id in 0..20 {
            assert!(acquire_for(&limits, taxpayer(2, 100 + id)).is_some());
        }
    }

    #[test]
    fn a_payer_whose_calls_only_fail_neither_takes_slots_nor_lowers_the_limit() {
        let limits = limits(64);
        let down: Result<(), AuthorityFailure> = Err(AuthorityFailure::Retryable {
            reason: Cause::Down { status: 500 },
        });
        let settle = |account, result: &Result<(), AuthorityFailure>| {
            acquire_for(&limits, account)
                .unwrap()
                .settle(result, Duration::from_millis(1));
        };
        for id in 0..50 {
            settle(taxpayer(1, id % 25), &down);
        }
        assert_eq!(view(&limits).0, 4, "the first few count, and leave four");
        let hanging: Vec<_> = (0..25)
            .filter_map(|id| acquire_for(&limits, taxpayer(1, id)))
            .collect();
        assert_eq!(hanging.len(), 2, "it has slots of its own");
        let mut waiting: Vec<_> = (0..12)
            .map(|id| Box::pin(limits.acquire(OPERATION, taxpayer(1, id))))
            .collect();
        let refused = waiting
            .iter_mut()
            .filter_map(FutureExt::now_or_never)
            .count();
        assert_eq!(refused, 4, "few may wait for them");
        let others: Vec<_> = (0..4)
            .filter_map(|id| acquire_for(&limits, taxpayer(2 + id, id)))
            .collect();
        assert_eq!(others.len(), 4, "the others have all of theirs");
        drop((hanging, waiting, others));
        settle(taxpayer(1, 7), &Ok(()));
        let again: Vec<_> = (0..25)
            .filter_map(|id| acquire_for(&limits, taxpayer(1, id)))
            .collect();
        assert_eq!(again.len(), 3, "an answer ends it");
    }

    #[test]
    fn queued_accounts_take_turns() {
        let limits = limits(1);
        let held = acquire_one(&limits).unwrap();
        let mut crowd: Vec<_> = (0..100)
            .map(|_| Box::pin(limits.acquire(OPERATION, account(1))))
            .collect();
        for waiting in &mut crowd {
            assert!(waiting.now_or_never().is_none());
        }
        let mut other = Box::pin(limits.acquire(OPERATION, account(2)));
        assert!((&mut other).now_or_never().is_none());
        drop(held);
        assert!((&mut crowd[0]).now_or_never().is_some());
        assert!(
            other.now_or_never().is_some(),
            "only one of the 100 goes first"
        );
    }

    #[test]
    fn each_operation_has_its_own_queue() {
        let limits = limits(1);
        let _held = acquire_one(&limits).unwrap();
        assert!(
            limits
                .acquire(Operation::Sign, ONE)
                .now_or_never()
                .is_some()
        );
    }
}
