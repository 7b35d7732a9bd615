//! Limits the open connections of a listener, in total and for each client address. At a limit, the connection that has
//! waited longest for its client is closed and the new one is let in. So a health probe or an operator gets through
//! even while somebody holds all the connections that are allowed. A connection whose request is being worked on is
//! never closed.
//!
//! A trusted proxy carries the connections of many clients, so its own address is not limited. While a request through
//! it waits for the rest of its body, the connection counts for the client that the proxy names.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Context;

use futures_util::task::AtomicWaker;

use crate::http::limits::allowances::subscriber_address;
use crate::http::limits::lingering::{LingerSlot, LingerSlots};

/// At a limit, one in 64 of the allowed connections is closed at once, so that not every connection of a flood costs a
/// search.
const FREED_DIVISOR: usize = 64;
/// The value of `wait_number` for a connection that does not wait for its client.
const NOT_WAITING: u64 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The connections of all clients.
    pub all_max: usize,
    /// The connections of one IPv4 address or one /64 network of IPv6.
    pub address_max: usize,
}

/// The client that a connection counts for; `None` for a trusted proxy.
type Holder = Option<IpAddr>;

/// The open connections of one listener. Clones share them.
#[derive(Debug, Clone)]
pub struct OpenConnections(Arc<SharedConnections>);

#[derive(Debug)]
struct SharedConnections {
    limits: ConnectionLimits,
    /// The number of the last wait. Waits are numbered, so that the longest wait is known without a clock.
    last_wait_number: AtomicU64,
    table: Mutex<ConnectionTable>,
    linger_slots: LingerSlots,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    last_id: u64,
    count: usize,
    by_holder: HashMap<Holder, BTreeMap<u64, Arc<ConnectionEntry>>>,
}

/// One open connection, for the requests on it. Clones stand for the same connection.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    entry: Arc<ConnectionEntry>,
    shared: Arc<SharedConnections>,
}

#[derive(Debug)]
struct ConnectionEntry {
    id: u64,
    /// The client of the connection itself. `holder` differs from it while a proxy sends the body of one of its
    /// clients.
    peer: Holder,
    holder: Mutex<Holder>,
    wait_number: AtomicU64,
    is_closed: AtomicBool,
    waker: AtomicWaker,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenConnections {
    pub fn new(limits: ConnectionLimits) -> Self {
        let shared = SharedConnections {
            limits,
            last_wait_number: AtomicU64::new(NOT_WAITING),
            table: Mutex::default(),
            linger_slots: LingerSlots::default(),
        };
        Self(Arc::new(shared))
    }

    /// Registers a new connection, which begins to wait for a request. `peer` is `None` for a trusted proxy. Returns
    /// `None` if the listener is full and no connection waits for its client.
    pub(crate) fn admit(&self, peer: Option<IpAddr>) -> Option<Connection> {
        let peer = peer.map(|peer| subscriber_address(Some(peer)));
        let mut table = lock(&self.0.table);
        if table.count >= self.0.limits.all_max
            && !table.close_longest_waiting(None, self.0.limits.all_max)
        {
            return None;
        }
        if peer.is_some() && !self.0.make_room(&mut table, peer) {
            return None;
        }
        table.last_id += 1;
        let entry = Arc::new(ConnectionEntry {
            id: table.last_id,
            peer,
            holder: Mutex::new(peer),
            wait_number: AtomicU64::new(self.0.next_wait_number()),
            is_closed: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        });
        table.insert(peer, &entry);
        Some(Connection {
            entry,
            shared: Arc::clone(&self.0),
        })
    }
}

impl SharedConnections {
    fn next_wait_number(&self) -> u64 {
        self.last_wait_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Makes room for one more connection of this client: at the limit, closes some of the client's connections that
    /// wait for the client. Returns false if there is no room, because all its connections are at work.
    fn make_room(&self, table: &mut ConnectionTable, holder: Holder) -> bool {
        let count = table.by_holder.get(&holder).map_or(0, BTreeMap::len);
        count < self.limits.address_max
            || table.close_longest_waiting(Some(holder), self.limits.address_max)
    }
}

impl ConnectionTable {
    fn insert(&mut self, holder: Holder, entry: &Arc<ConnectionEntry>) {
        self.by_holder
            .entry(holder)
            .or_default()
            .insert(entry.id, Arc::clone(entry));
        self.count += 1;
    }

    fn remove(&mut self, entry: &ConnectionEntry) {
        let holder = *lock(&entry.holder);
        let Some(entries) = self.by_holder.get_mut(&holder) else {
            return;
        };
        if entries.remove(&entry.id).is_some() {
            self.count -= 1;
        }
        if entries.is_empty() {
            self.by_holder.remove(&holder);
        }
    }

    /// Closes the connections of one client that have waited longest: of `holder` or, if it is `None`, of the client
    /// with the most waiting connections. Returns false if no connection waits.
    fn close_longest_waiting(&mut self, holder: Option<Holder>, limit: usize) -> bool {
        let Some(holder) = holder.or_else(|| self.most_waiting_holder()) else {
            return false;
        };
        let mut waiting: Vec<_> = self.waiting_entries(holder).cloned().collect();
        waiting.sort_unstable_by_key(|entry| entry.wait_number.load(Ordering::Relaxed));
        waiting.truncate((limit / FREED_DIVISOR).clamp(1, (waiting.len() / 2).max(1)));
        for entry in &waiting {
            self.remove(entry);
            entry.close();
        }
        !waiting.is_empty()
    }

    fn waiting_entries(&self, holder: Holder) -> impl Iterator<Item = &Arc<ConnectionEntry>> {
        let entries = self
            .by_holder
            .get(&holder)
            .into_iter()
            .flat_map(BTreeMap::values);
        entries.filter(|entry| entry.wait_number.load(Ordering::Relaxed) != NOT_WAITING)
    }

    /// Returns the client with the most waiting connections; a proxy only if no client has more than one.
    fn most_waiting_holder(&self) -> Option<Holder> {
        let counts = self
            .by_holder
            .keys()
            .map(|holder| (self.waiting_entries(*holder).count(), *holder));
        let waiting = counts.filter(|(count, _)| *count > 0);
        waiting
            .max_by_key(|(count, holder)| (*count > 1 && holder.is_some(), *count))
            .map(|(_, holder)| holder)
    }
}

impl ConnectionEntry {
    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Connection {
    /// Marks that the service has to act next, not the client.
    pub(crate) fn mark_at_work(&self) {
        self.entry.wait_number.store(NOT_WAITING, Ordering::Relaxed);
        self.set_holder(self.entry.peer);
    }

    /// Marks that the client has to act next: to send a request or to take an answer.
    pub(crate) fn mark_waiting_for_client(&self) {
        self.entry
            .wait_number
            .store(self.shared.next_wait_number(), Ordering::Relaxed);
    }

    /// Marks that the client has just taken a part of an answer, so that it has not kept the service waiting. Without
    /// this, a long download would be the first connection to be closed.
    pub(crate) fn mark_answer_part_taken(&self) {
        if self.entry.wait_number.load(Ordering::Relaxed) != NOT_WAITING {
            self.mark_waiting_for_client();
        }
    }

    /// Marks that the client has to send the rest of a body. Until then, the connection of a proxy counts for `client`.
    pub(crate) fn mark_waiting_for_body(&self, client: Option<IpAddr>) {
        if self.entry.wait_number.load(Ordering::Relaxed) == NOT_WAITING {
            self.mark_waiting_for_client();
            if self.entry.peer.is_none() {
                self.set_holder(client.map(|client| subscriber_address(Some(client))));
            }
        }
    }

    /// Returns a permission to keep the connection open until `client` has sent the rest of a refused request; `None`
    /// if too many connections linger already.
    pub(crate) fn take_linger_slot(&self, client: Option<IpAddr>) -> Option<LingerSlot> {
        self.shared.linger_slots.take(client)
    }

    fn set_holder(&self, holder: Holder) {
        if self.entry.peer.is_some() || *lock(&self.entry.holder) == holder {
            return;
        }
        let mut table = lock(&self.shared.table);
        if self.is_closed() {
            return;
        }
        table.remove(&self.entry);
        if holder.is_some() && !self.shared.make_room(&mut table, holder) {
            self.entry.close();
            return;
        }
        *lock(&self.entry.holder) = holder;
        table.insert(holder, &self.entry);
    }

    fn is_closed(&self) -> bool {
        self.entry.is_closed.load(Ordering::Acquire)
    }

    /// Returns true if the connection has to end. If not, registers the current task to be woken when the connection
    /// has to end.
    pub(crate) fn poll_closed(&self, context: &Context<'_>) -> bool {
        self.is_closed() || {
            self.entry.waker.register(context.waker());
            self.is_closed()
        }
    }

    /// Removes a connection that has ended from the table.
    pub(crate) fn unregister(&self) {
        lock(&self.shared.table).remove(&self.entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits {
        all_max: 6,
        address_max: 3,
    };

    fn address(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    fn open() -> OpenConnections {
        OpenConnections::new(LIMITS)
    }

    fn closed_flags(connections: &[Connection]) -> Vec<bool> {
        connections.iter().map(Connection::is_closed).collect()
    }

    #[test]
    fn at_the_limit_of_an_address_its_longest_waiting_connection_is_closed() {
        let open = open();
        let of_one: Vec<_> = (0..3)
            .map(|_| open.admit(Some(address(1))).unwrap())
            .collect();
        let other = open.admit(Some(address(2))).unwrap();
        of_one[0].mark_at_work();
        of_one[1].mark_waiting_for_client();
        open.admit(Some(address(1))).unwrap();
        assert_eq!(
            closed_flags(&of_one),
            [false, false, true],
            "the first is at work, the second waits shorter"
        );
        assert!(!other.is_closed());
    }

    #[test]
    fn at_the_total_limit_the_address_with_the_most_connections_loses_one() {
        let open = open();
        let of_one: Vec<_> = (0..3)
            .map(|_| open.admit(Some(address(1))).unwrap())
            .collect();
        let of_two: Vec<_> = (0..2)
            .map(|_| open.admit(Some(address(2))).unwrap())
            .collect();
        let of_three = open.admit(Some(address(3))).unwrap();
        let newcomer = open.admit(Some(address(4))).unwrap();
        assert_eq!(
            (closed_flags(&of_one), closed_flags(&of_two)),
            (vec![true, false, false], vec![false, false])
        );
        assert!(!of_three.is_closed() && !newcomer.is_closed());
    }

    #[test]
    fn nobody_at_work_is_closed_for_a_newcomer() {
        let open = open();
        let all: Vec<_> = (0..6)
            .map(|number| open.admit(Some(address(number))).unwrap())
            .collect();
        all.iter().for_each(Connection::mark_at_work);
        assert!(open.admit(Some(address(9))).is_none());
        all[5].unregister();
        assert!(open.admit(Some(address(9))).is_some());
        assert_eq!(closed_flags(&all), [false; 6]);
    }

    #[test]
    fn the_connections_of_a_proxy_count_only_against_the_total_limit() {
        let open = open();
        let of_proxy: Vec<_> = (0..6).map(|_| open.admit(None).unwrap()).collect();
        assert_eq!(closed_flags(&of_proxy), [false; 6]);
        open.admit(None).unwrap();
        assert_eq!(
            closed_flags(&of_proxy),
            [true, false, false, false, false, false]
        );
    }

    #[test]
    fn a_body_through_a_proxy_counts_for_the_client_while_it_is_awaited() {
        let open = open();
        let connections: Vec<_> = (0..5).map(|_| open.admit(None).unwrap()).collect();
        for connection in &connections[..4] {
            connection.mark_at_work();
            connection.mark_waiting_for_body(Some(address(1)));
        }
        assert_eq!(
            closed_flags(&connections),
            [true, false, false, false, false],
            "four bodies, three allowed"
        );
        connections[1].mark_at_work();
        connections[4].mark_at_work();
        connections[4].mark_waiting_for_body(Some(address(1)));
        assert_eq!(
            closed_flags(&connections),
            [true, false, false, false, false],
            "the second body has arrived"
        );
        connections.iter().for_each(Connection::unregister);
        assert_eq!(lock(&open.0.table).count, 0);
        assert!(lock(&open.0.table).by_holder.is_empty());
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let open = open();
        let one: Vec<_> = (1..=4)
            .map(|number| {
                open.admit(format!("2001:db8::{number}").parse().ok())
                    .unwrap()
            })
            .collect();
        assert_eq!(closed_flags(&one), [true, false, false, false]);
    }
}
