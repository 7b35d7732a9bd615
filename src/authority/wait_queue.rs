//! Those who wait for a place at one operation. Accounts take turns: next is the account with the fewest places, of
//! several that which had no turn for longest; within an account whoever came first.
//!
//! The queue is bounded, for an account and for all: whoever stands behind so many would hardly be served in time,
//! and each holds a document in memory. A full queue makes room for an account with few at the cost of the one with
//! the most.

use std::collections::{HashMap, VecDeque};

use super::account::Account;

/// Those who wait for one operation.
pub(super) const WAITING_MAX: usize = 1_000;
/// Those of them that are of one account.
pub(super) const WAITING_OF_ACCOUNT_MAX: usize = WAITING_MAX / 4;

#[derive(Debug)]
struct Waiter<T> {
    number: u64,
    waiter: T,
}

/// Whoever has joined.
#[derive(Debug)]
pub(super) struct Joined<T> {
    /// To leave with.
    pub(super) number: u64,
    /// Whoever had to go for it.
    pub(super) displaced: Option<T>,
}

#[derive(Debug)]
pub(super) struct WaitQueue<T> {
    /// None of them is empty.
    accounts: HashMap<Account, VecDeque<Waiter<T>>>,
    /// The same accounts, in the order of their turns.
    turns: VecDeque<Account>,
    waiting: usize,
    next_number: u64,
}

impl<T> WaitQueue<T> {
    pub(super) fn new() -> Self {
        Self { accounts: HashMap::new(), turns: VecDeque::new(), waiting: 0, next_number: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// None where there is no room.
    pub(super) fn join(&mut self, account: Account, waiter: T) -> Option<Joined<T>> {
        let own = self.accounts.get(&account).map_or(0, VecDeque::len);
        if own >= WAITING_OF_ACCOUNT_MAX {
            return None;
        }
        let displaced = if self.waiting < WAITING_MAX { None } else { Some(self.displace(own + 1)?) };
        let number = self.next_number;
        self.next_number += 1;
        if own == 0 {
            self.turns.push_back(account);
        }
        self.accounts.entry(account).or_default().push_back(Waiter { number, waiter });
        self.waiting += 1;
        Some(Joined { number, displaced })
    }

    /// Whoever joined with this number goes, unless it was served.
    pub(super) fn leave(&mut self, account: Account, number: u64) {
        let Some(line) = self.accounts.get_mut(&account) else { return };
        let Ok(index) = line.binary_search_by_key(&number, |waiter| waiter.number) else { return };
        line.remove(index);
        self.removed(account);
    }

    /// Takes out whoever is next. `places` says how many places an account has; None where it may have no more.
    pub(super) fn next(&mut self, places: impl Fn(Account) -> Option<u32>) -> Option<(Account, T)> {
        let turns = self.turns.iter().enumerate();
        let open = turns.filter_map(|(index, account)| Some((places(*account)?, index, *account)));
        let (_, index, account) = open.min_by_key(|(places, index, _)| (*places, *index))?;
        let waiter = self.accounts.get_mut(&account)?.pop_front()?.waiter;
        self.turns.remove(index);
        self.turns.push_back(account);
        self.removed(account);
        Some((account, waiter))
    }

    /// Takes out the last of the account with the most, where it has more than so many.
    fn displace(&mut self, most: usize) -> Option<T> {
        let longest = self.accounts.iter().max_by_key(|(_, line)| line.len());
        let account = *longest.filter(|(_, line)| line.len() > most)?.0;
        let waiter = self.accounts.get_mut(&account)?.pop_back()?.waiter;
        self.removed(account);
        Some(waiter)
    }

    fn removed(&mut self, account: Account) {
        self.waiting -= 1;
        if self.accounts.get(&account).is_some_and(VecDeque::is_empty) {
            self.accounts.remove(&account);
            self.turns.retain(|other| *other != account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::ids::TaxpayerId;

    fn account(id: i64) -> Account {
        Account::Taxpayer(TaxpayerId(id))
    }

    /// Takes everybody out, none of whom has a place.
    fn order(queue: &mut WaitQueue<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.next(|_| Some(0))).map(|(_, waiter)| waiter).collect()
    }

    #[test]
    fn accounts_take_turns_and_within_one_the_first_goes_first() {
        let mut queue = WaitQueue::new();
        for (id, waiter) in [(1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (3, "c1"), (2, "b2")] {
            queue.join(account(id), waiter).unwrap();
        }
        assert_eq!(queue.len(), 6);
        assert_eq!(order(&mut queue), ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert_eq!((queue.len(), queue.turns.len(), queue.accounts.len()), (0, 0, 0));
    }

    #[test]
    fn the_account_with_the_fewest_places_goes_first_and_one_with_its_share_waits() {
        let mut queue = WaitQueue::new();
        for (id, waiter) in [(1, "a1"), (2, "b1"), (3, "c1")] {
            queue.join(account(id), waiter).unwrap();
        }
        let places = |of: Account| {
            [(1, None), (2, Some(3)), (3, Some(1))].into_iter().find(|(id, _)| account(*id) == of)?.1
        };
        assert_eq!(queue.next(places), Some((account(3), "c1")));
        assert_eq!(queue.next(places), Some((account(2), "b1")));
        assert_eq!(queue.next(places), None);
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn whoever_leaves_is_not_served() {
        let mut queue = WaitQueue::new();
        let numbers: Vec<_> = ["a1", "a2", "a3"]
            .into_iter()
            .map(|waiter| queue.join(account(1), waiter).unwrap().number)
            .collect();
        queue.leave(account(1), numbers[1]);
        queue.leave(account(1), numbers[1]);
        queue.leave(account(2), numbers[0]);
        assert_eq!(order(&mut queue), ["a1", "a3"]);
        queue.leave(account(1), numbers[0]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn an_account_has_a_share_of_the_queue_and_a_full_one_makes_room_for_others() {
        let mut queue = WaitQueue::new();
        for id in 0..4 {
            for _ in 0..WAITING_OF_ACCOUNT_MAX {
                assert!(queue.join(account(id), id).unwrap().displaced.is_none());
            }
            assert!(queue.join(account(id), id).is_none(), "its share is full");
        }
        assert_eq!(queue.len(), WAITING_MAX);
        for _ in 0..10 {
            assert!(queue.join(account(9), 9).unwrap().displaced.is_some_and(|id| id < 4));
        }
        assert_eq!(queue.len(), WAITING_MAX);
    }

    #[test]
    fn nobody_goes_for_an_account_that_has_as_many() {
        let mut queue = WaitQueue::new();
        for id in 0..i64::try_from(WAITING_MAX).unwrap() {
            queue.join(account(id), id).unwrap();
        }
        assert!(queue.join(account(-1), -1).is_none());
        assert_eq!(queue.len(), WAITING_MAX);
    }
}
