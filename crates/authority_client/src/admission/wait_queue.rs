//! The queue for slots of one operation. The next slot goes to the payer with the fewest slots, and of its accounts to
//! the one with the fewest. Among several such payers or accounts, it goes to the one that was served longest ago.
//!
//! The queue is bounded, per account and in total, because each waiting call holds a document in memory and may time
//! out. If the queue is full, a call of a payer with few waiters displaces the newest waiter of the payer with the most
//! waiters. The accounts of one payer displace each other by the same rule.

use std::collections::{HashMap, VecDeque};

use crate::admission::call_origin::{CallerAccount, PayerOrService};

/// The largest number of calls that may wait for one operation.
pub(crate) const WAITING_MAX: usize = 1_000;
/// The largest number of calls of one account that may wait for one operation.
pub(crate) const WAITING_PER_ACCOUNT_MAX: usize = WAITING_MAX / 4;

#[derive(Debug)]
struct Waiter<T> {
    number: u64,
    waiter: T,
}

/// The result of joining the queue.
#[derive(Debug)]
pub(crate) struct QueueEntry<T> {
    /// The waiter's number, by which `remove_waiter` finds it.
    pub(crate) number: u64,
    /// The waiter that was removed from the full queue to make room for the new one.
    pub(crate) displaced: Option<T>,
}

#[derive(Debug)]
pub(crate) struct WaitQueue<T> {
    /// The waiters of each account, the oldest first. An account without waiters has no entry.
    accounts: HashMap<CallerAccount, VecDeque<Waiter<T>>>,
    /// The accounts with waiters. The account that was served longest ago is first.
    turns: VecDeque<CallerAccount>,
    /// The number of waiters of each payer that has any.
    payers: HashMap<PayerOrService, usize>,
    /// The payers in the order in which they were served last, the one that was served longest ago first.
    payer_turns: VecDeque<PayerOrService>,
    waiting: usize,
    next_number: u64,
}

/// The number of slots that an account uses now, and the number that its payer uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlotsInUse {
    pub(crate) by_payer: u32,
    pub(crate) by_account: u32,
}

impl<T> WaitQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            accounts: HashMap::new(),
            turns: VecDeque::new(),
            payers: HashMap::new(),
            payer_turns: VecDeque::new(),
            waiting: 0,
            next_number: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    pub(crate) fn payer_len(&self, payer: PayerOrService) -> usize {
        self.payers.get(&payer).copied().unwrap_or_default()
    }

    /// Adds a waiter. In a full queue it may displace another waiter. Returns `None` if it is not added.
    pub(crate) fn add_waiter(
        &mut self,
        account: CallerAccount,
        waiter: T,
    ) -> Option<QueueEntry<T>> {
        let own = self.accounts.get(&account).map_or(0, VecDeque::len);
        if own >= WAITING_PER_ACCOUNT_MAX {
            return None;
        }
        let displaced = if self.waiting < WAITING_MAX {
            None
        } else {
            Some(self.displace_waiter(account, own)?)
        };
        let number = self.next_number;
        self.next_number += 1;
        if !self.accounts.contains_key(&account) {
            self.turns.push_back(account);
        }
        let payer = account.payer();
        if self.payer_len(payer) == 0 {
            self.payer_turns.push_back(payer);
        }
        self.accounts
            .entry(account)
            .or_default()
            .push_back(Waiter { number, waiter });
        *self.payers.entry(payer).or_default() += 1;
        self.waiting += 1;
        Some(QueueEntry { number, displaced })
    }

    /// Removes a waiter. Does nothing if the waiter was served already.
    pub(crate) fn remove_waiter(&mut self, account: CallerAccount, number: u64) {
        let Some(queue) = self.accounts.get_mut(&account) else {
            return;
        };
        let Ok(index) = queue.binary_search_by_key(&number, |waiter| waiter.number) else {
            return;
        };
        queue.remove(index);
        self.count_removal(account);
    }

    /// Removes and returns the waiter to serve next. `slots` returns the slots that an account and its payer use;
    /// `None` if the account may not take another, so that its waiters are passed over.
    pub(crate) fn take_next_waiter(
        &mut self,
        slots: impl Fn(CallerAccount) -> Option<SlotsInUse>,
    ) -> Option<(CallerAccount, T)> {
        let payer_turn: HashMap<_, _> = self
            .payer_turns
            .iter()
            .enumerate()
            .map(|(turn, payer)| (*payer, turn))
            .collect();
        let turns = self.turns.iter().enumerate();
        let open = turns.filter_map(|(turn, account)| {
            let used = slots(*account)?;
            let by_payer = (used.by_payer, payer_turn.get(&account.payer()).copied());
            Some((by_payer, used.by_account, turn, *account))
        });
        let (_, _, turn, account) =
            open.min_by_key(|(payer, used, turn, _)| (*payer, *used, *turn))?;
        let waiter = self.accounts.get_mut(&account)?.pop_front()?.waiter;
        self.turns.remove(turn);
        self.turns.push_back(account);
        self.payer_turns.retain(|payer| *payer != account.payer());
        self.payer_turns.push_back(account.payer());
        self.count_removal(account);
        Some((account, waiter))
    }

    /// Makes room for a waiter of `account`, which has `own` waiters: removes the newest waiter of the payer with the
    /// most waiters or, within the same payer, of the account with the most. Returns `None` if nobody has more
    /// waiters than this one would have.
    fn displace_waiter(&mut self, account: CallerAccount, own: usize) -> Option<T> {
        let (payer, count) = self.payers.iter().max_by_key(|(_, count)| **count)?;
        let has_more = *count > self.payer_len(account.payer()) + 1;
        let (payer, most) = if has_more {
            (*payer, 0)
        } else {
            (account.payer(), own + 1)
        };
        let accounts = self
            .accounts
            .iter()
            .filter(|(account, _)| account.payer() == payer);
        let longest = accounts.max_by_key(|(_, queue)| queue.len());
        let account = *longest.filter(|(_, queue)| queue.len() > most)?.0;
        let waiter = self.accounts.get_mut(&account)?.pop_back()?.waiter;
        self.count_removal(account);
        Some(waiter)
    }

    fn count_removal(&mut self, account: CallerAccount) {
        self.waiting -= 1;
        if self.accounts.get(&account).is_some_and(VecDeque::is_empty) {
            self.accounts.remove(&account);
            self.turns.retain(|other| *other != account);
        }
        let payer = account.payer();
        if let Some(count) = self.payers.get_mut(&payer) {
            *count -= 1;
            if *count == 0 {
                self.payers.remove(&payer);
                self.payer_turns.retain(|other| *other != payer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: SlotsInUse = SlotsInUse {
        by_payer: 0,
        by_account: 0,
    };

    /// A taxpayer that has a payer of its own.
    fn account(id: i64) -> CallerAccount {
        taxpayer(id, id)
    }

    fn taxpayer(payer: i64, id: i64) -> CallerAccount {
        CallerAccount::Taxpayer { id, payer }
    }

    /// Returns the waiters in the order in which they are served if no account uses a slot.
    fn order(queue: &mut WaitQueue<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.take_next_waiter(|_| Some(FREE)))
            .map(|(_, waiter)| waiter)
            .collect()
    }

    #[test]
    fn accounts_take_turns_and_within_one_the_first_goes_first() {
        let mut queue = WaitQueue::new();
        for (id, waiter) in [
            (1, "a1"),
            (1, "a2"),
            (1, "a3"),
            (2, "b1"),
            (3, "c1"),
            (2, "b2"),
        ] {
            queue.add_waiter(account(id), waiter).unwrap();
        }
        assert_eq!(queue.len(), 6);
        assert_eq!(order(&mut queue), ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert_eq!(
            (queue.len(), queue.turns.len(), queue.accounts.len()),
            (0, 0, 0)
        );
    }

    #[test]
    fn the_account_with_the_fewest_slots_goes_first_and_one_with_its_share_waits() {
        let mut queue = WaitQueue::new();
        for (id, waiter) in [(1, "a1"), (2, "b1"), (3, "c1")] {
            queue.add_waiter(account(id), waiter).unwrap();
        }
        let slots = |of: CallerAccount| {
            let used = [(1, None), (2, Some(3)), (3, Some(1))]
                .into_iter()
                .find(|(id, _)| account(*id) == of)?
                .1;
            used.map(|by_payer| SlotsInUse {
                by_payer,
                by_account: by_payer,
            })
        };
        assert_eq!(queue.take_next_waiter(slots), Some((account(3), "c1")));
        assert_eq!(queue.take_next_waiter(slots), Some((account(2), "b1")));
        assert_eq!(queue.take_next_waiter(slots), None);
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn payers_take_turns_however_many_taxpayers_they_have() {
        let mut queue = WaitQueue::new();
        for id in 0..25 {
            queue.add_waiter(taxpayer(1, id), "a").unwrap();
        }
        queue.add_waiter(taxpayer(2, 99), "b").unwrap();
        assert_eq!(order(&mut queue)[..3], ["a", "b", "a"]);
        assert_eq!(
            (queue.len(), queue.payers.len(), queue.payer_turns.len()),
            (0, 0, 0)
        );
    }

    #[test]
    fn a_payer_makes_room_for_another_however_many_taxpayers_it_has() {
        let mut queue = WaitQueue::new();
        for id in 0..i64::try_from(WAITING_MAX).unwrap() {
            queue.add_waiter(taxpayer(1, id), 1).unwrap();
        }
        assert!(
            queue.add_waiter(taxpayer(1, -1), 1).is_none(),
            "its taxpayers have one each"
        );
        for id in 0..10 {
            assert_eq!(
                queue
                    .add_waiter(taxpayer(2, 5_000 + id), 2)
                    .unwrap()
                    .displaced,
                Some(1)
            );
        }
        assert_eq!(queue.len(), WAITING_MAX);
    }

    #[test]
    fn a_waiter_that_left_is_not_served() {
        let mut queue = WaitQueue::new();
        let numbers: Vec<_> = ["a1", "a2", "a3"]
            .into_iter()
            .map(|waiter| queue.add_waiter(account(1), waiter).unwrap().number)
            .collect();
        queue.remove_waiter(account(1), numbers[1]);
        queue.remove_waiter(account(1), numbers[1]);
        queue.remove_waiter(account(2), numbers[0]);
        assert_eq!(order(&mut queue), ["a1", "a3"]);
        queue.remove_waiter(account(1), numbers[0]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn an_account_has_a_share_of_the_queue_and_a_full_one_makes_room_for_others() {
        let mut queue = WaitQueue::new();
        for id in 0..4 {
            for _ in 0..WAITING_PER_ACCOUNT_MAX {
                assert!(
                    queue
                        .add_waiter(account(id), id)
                        .unwrap()
                        .displaced
                        .is_none()
                );
            }
            assert!(
                queue.add_waiter(account(id), id).is_none(),
                "its share is full"
            );
        }
        assert_eq!(queue.len(), WAITING_MAX);
        for _ in 0..10 {
            assert!(
                queue
                    .add_waiter(account(9), 9)
                    .unwrap()
                    .displaced
                    .is_some_and(|id| id < 4)
            );
        }
        assert_eq!(queue.len(), WAITING_MAX);
    }

    #[test]
    fn no_waiter_is_displaced_for_an_account_with_as_many() {
        let mut queue = WaitQueue::new();
        for id in 0..i64::try_from(WAITING_MAX).unwrap() {
            queue.add_waiter(account(id), id).unwrap();
        }
        assert!(queue.add_waiter(account(-1), -1).is_none());
        assert_eq!(queue.len(), WAITING_MAX);
    }
}
