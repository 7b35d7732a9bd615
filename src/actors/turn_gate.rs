//! A budget, for example of memory, that payers use in turn. A payer is the account that pays for a request. Of all
//! waiting requests, the one whose payer uses least of the budget is served first. Of payers that use the same amount,
//! the one that was served longest ago comes first. So even if a payer has a hundred waiting requests, and only one
//! request is served at a time, another payer waits for only one of them.
//!
//! A request that has a part of the budget may take more. If all such requests waited for more, they would block each
//! other for ever. So one of them at a time may exceed the budget.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::domain::access::payer::Payer;

/// The payer of a request. Requests without a known payer (`None`) count as those of one payer.
type Holder = Option<Payer>;

#[derive(Debug)]
pub(crate) struct TurnGate {
    max: usize,
    state: Mutex<GateState>,
}

#[derive(Debug, Default)]
struct GateState {
    used: usize,
    used_by: HashMap<Holder, usize>,
    /// The number that each holder drew when it was last served; a higher number means later. Empty while nobody has a
    /// part of the budget or waits.
    served: HashMap<Holder, u64>,
    waiting: VecDeque<Waiter>,
    next_number: u64,
    /// True while a request exceeds the budget.
    is_exceeded: bool,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    holder: Holder,
    amount: usize,
    /// True if the request already has a part of the budget and wants more.
    has_some: bool,
    sender: oneshot::Sender<BudgetPortion>,
}

/// A request that waits no longer, because a part of the budget was counted as used by it.
struct ServedWaiter {
    waiter: Waiter,
    /// True if its part may exceed the budget.
    may_exceed: bool,
}

/// A part of the budget. Dropping it gives the part back.
#[derive(Debug)]
pub(crate) struct BudgetPortion {
    gate: Arc<TurnGate>,
    holder: Holder,
    amount: usize,
    may_exceed: bool,
}

/// A waiting request. Dropping it takes the request out of the queue.
struct WaitingPlace<'a> {
    gate: &'a TurnGate,
    number: u64,
}

impl TurnGate {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            state: Mutex::default(),
        })
    }

    /// Takes a part of the budget, and waits for its turn if there is too little left.
    pub(crate) async fn take(self: &Arc<Self>, holder: Holder, amount: usize) -> BudgetPortion {
        self.wait_for_portion(holder, amount, false).await
    }

    async fn wait_for_portion(
        self: &Arc<Self>,
        holder: Holder,
        amount: usize,
        has_some: bool,
    ) -> BudgetPortion {
        let (sender, receiver) = oneshot::channel();
        let number = self.lock().enqueue(Waiter {
            number: 0,
            holder,
            amount,
            has_some,
            sender,
        });
        let _place = WaitingPlace { gate: self, number };
        self.serve_waiting();
        // An unused sender is dropped only if this future is dropped, so the empty portion is never returned.
        receiver
            .await
            .unwrap_or_else(|_| self.portion(holder, 0, false))
    }

    /// Serves the waiting requests as far as the budget goes.
    fn serve_waiting(self: &Arc<Self>) {
        while let Some(served) = self.take_next_to_serve() {
            let waiter = served.waiter;
            // If the request was given up meanwhile, its portion is dropped, which gives the part back.
            drop(
                waiter
                    .sender
                    .send(self.portion(waiter.holder, waiter.amount, served.may_exceed)),
            );
        }
    }

    fn take_next_to_serve(&self) -> Option<ServedWaiter> {
        self.lock().take_next_to_serve(self.max)
    }

    fn portion(self: &Arc<Self>, holder: Holder, amount: usize, may_exceed: bool) -> BudgetPortion {
        BudgetPortion {
            gate: Arc::clone(self),
            holder,
            amount,
            may_exceed,
        }
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GateState {
    fn enqueue(&mut self, waiter: Waiter) -> u64 {
        let number = self.draw_number();
        self.waiting.push_back(Waiter { number, ..waiter });
        number
    }

    fn draw_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn remove_waiter(&mut self, number: u64) {
        self.waiting.retain(|waiter| waiter.number != number);
        self.forget_served_when_idle();
    }

    fn forget_served_when_idle(&mut self) {
        if self.used == 0 && self.waiting.is_empty() {
            self.served.clear();
        }
    }

    /// Removes the next request that can be served from the queue, and counts its part as used. If the first request
    /// needs more than is left, only a request that already has a part is served before it, and that part may exceed
    /// the budget.
    fn take_next_to_serve(&mut self, max: usize) -> Option<ServedWaiter> {
        let first = self.first_waiter_index(|_| true)?;
        // A request that is larger than the whole budget is served when nothing is in use.
        let fits = self
            .waiting
            .get(first)
            .is_some_and(|waiter| self.used == 0 || self.used + waiter.amount <= max);
        let may_exceed = !fits;
        if may_exceed && self.is_exceeded {
            return None;
        }
        let index = if fits {
            first
        } else {
            self.first_waiter_index(|waiter| waiter.has_some)?
        };
        let waiter = self.waiting.remove(index)?;
        self.is_exceeded |= may_exceed;
        self.add_use(waiter.holder, waiter.amount);
        let number = self.draw_number();
        self.served.insert(waiter.holder, number);
        Some(ServedWaiter { waiter, may_exceed })
    }

    /// Returns the index of the waiting request to serve first, of those for which `accepts` returns true. The holder
    /// that uses least comes first, then the holder that was served longest ago, then the request that has waited
    /// longest.
    fn first_waiter_index(&self, accepts: impl Fn(&Waiter) -> bool) -> Option<usize> {
        let waiting = self
            .waiting
            .iter()
            .enumerate()
            .filter(|(_, waiter)| accepts(waiter));
        let first = waiting.min_by_key(|(index, waiter)| {
            let used = self
                .used_by
                .get(&waiter.holder)
                .copied()
                .unwrap_or_default();
            let served = self.served.get(&waiter.holder).copied().unwrap_or_default();
            (used, served, *index)
        });
        first.map(|(index, _)| index)
    }

    fn add_use(&mut self, holder: Holder, amount: usize) {
        self.used += amount;
        *self.used_by.entry(holder).or_default() += amount;
    }

    fn remove_use(&mut self, holder: Holder, amount: usize) {
        self.used = self.used.saturating_sub(amount);
        if let Some(used) = self.used_by.get_mut(&holder) {
            *used = used.saturating_sub(amount);
            if *used == 0 {
                self.used_by.remove(&holder);
            }
        }
        self.forget_served_when_idle();
    }
}

impl BudgetPortion {
    /// Takes more of the budget for the same request. If too little is left, waits for its turn and keeps its part
    /// meanwhile.
    pub(crate) async fn grow(&mut self, amount: usize) {
        if self.may_exceed {
            self.gate.lock().add_use(self.holder, amount);
            self.amount += amount;
            return;
        }
        let mut more = self.gate.wait_for_portion(self.holder, amount, true).await;
        self.amount += std::mem::take(&mut more.amount);
        self.may_exceed = std::mem::take(&mut more.may_exceed);
    }
}

impl Drop for BudgetPortion {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.remove_use(self.holder, self.amount);
        if self.may_exceed {
            state.is_exceeded = false;
        }
        drop(state);
        self.gate.serve_waiting();
    }
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        self.gate.lock().remove_waiter(self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::domain::kernel::ids::IntegratorId;

    fn holder(id: impl Into<Option<i64>>) -> Holder {
        id.into().map(|id| Payer::Integrator(IntegratorId(id)))
    }

    #[tokio::test]
    async fn who_has_least_is_served_first() {
        let gate = TurnGate::new(4);
        let mut taken: Vec<_> = (0..4)
            .map(|_| gate.take(holder(1), 1).now_or_never().unwrap())
            .collect();
        let mut crowd: Vec<_> = (0..50).map(|_| Box::pin(gate.take(holder(1), 1))).collect();
        for waiting in &mut crowd {
            assert!(waiting.now_or_never().is_none());
        }
        let mut other = Box::pin(gate.take(holder(2), 1));
        assert!((&mut other).now_or_never().is_none());
        taken.pop();
        assert!(
            other.now_or_never().is_some(),
            "it came last and goes first"
        );
        assert!(
            (&mut crowd[0]).now_or_never().is_some(),
            "then it is the turn of the others"
        );
    }

    #[tokio::test]
    async fn a_single_place_goes_around() {
        let gate = TurnGate::new(1);
        let mut place = gate.take(holder(1), 1).await;
        let mut waiting: Vec<_> = [1, 1, 1, 2, 2, 3]
            .map(|id| (id, Box::pin(gate.take(holder(id), 1))))
            .into_iter()
            .collect();
        for (_, request) in &mut waiting {
            assert!(request.now_or_never().is_none());
        }
        let mut order = Vec::new();
        while !waiting.is_empty() {
            drop(place);
            let mut served = waiting.iter_mut().enumerate();
            let (at, next) = served
                .find_map(|(at, (_, request))| Some((at, request.now_or_never()?)))
                .expect("the place is free");
            order.push(waiting.remove(at).0);
            place = next;
        }
        assert_eq!(
            order,
            [2, 3, 1, 2, 1, 1],
            "who was not served yet, then each in turn"
        );
        drop(place);
        assert!(gate.lock().served.is_empty());
    }

    #[tokio::test]
    async fn requests_that_all_wait_for_more_do_not_block_each_other() {
        let gate = TurnGate::new(100);
        let mut first = gate.take(holder(1), 50).await;
        let mut second = gate.take(holder(2), 50).await;
        assert!(
            first.grow(50).now_or_never().is_some(),
            "one may exceed the budget"
        );
        assert!(first.grow(50).now_or_never().is_some(), "and then goes on");
        let mut more = Box::pin(second.grow(50));
        assert!(
            (&mut more).now_or_never().is_none(),
            "the next one waits for it"
        );
        let mut newcomer = Box::pin(gate.take(holder(3), 1));
        assert!((&mut newcomer).now_or_never().is_none());
        drop(first);
        assert!(more.now_or_never().is_some() || newcomer.now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_leaves_nothing_behind() {
        let gate = TurnGate::new(2);
        let taken = gate.take(holder(1), 2).await;
        let mut waiting = Box::pin(gate.take(holder(2), 2));
        assert!((&mut waiting).now_or_never().is_none());
        let mut served = Box::pin(gate.take(holder(3), 2));
        assert!((&mut served).now_or_never().is_none());
        drop(waiting);
        drop(taken);
        // The request `served` has got its part, but is dropped before it is polled again.
        drop(served);
        assert!(gate.take(holder(4), 2).now_or_never().is_some());
        assert_eq!(gate.lock().used_by.len(), 0);
    }
}
