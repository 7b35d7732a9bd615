//! How a receiver treats notifications in a scenario, and the order in which they must arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use testkit::receiver::{Received, Receiver, Reply};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Behaviour {
    pub(crate) latency: Duration,
    /// How many of a hundred notifications get which reply. The rest is accepted.
    pub(crate) shares: &'static [(Reply, u32)],
}

impl Behaviour {
    /// Accepts everything at once.
    pub(crate) const PROMPT: Self = Self {
        latency: Duration::ZERO,
        shares: &[],
    };
    /// Accepts everything, so late that callers wait.
    pub(crate) const SLOW: Self = Self {
        latency: Duration::from_secs(10),
        shares: &[],
    };
    /// Slow enough to be killed meanwhile, and refuses some.
    pub(crate) const RELUCTANT: Self = Self {
        latency: Duration::from_millis(60),
        shares: &[(Reply::Status(500), 15)],
    };
    /// Fails about 30 of a hundred in every way there is.
    pub(crate) const ERRATIC: Self = Self {
        latency: Duration::from_millis(2),
        shares: &[
            (Reply::Status(500), 9),
            (Reply::RetryAfter(503, 0), 5),
            (Reply::RetryAfter(503, 1), 3),
            (Reply::Status(429), 3),
            (Reply::RetryAfter(429, 1), 2),
            (Reply::HangUp, 5),
            (Reply::LostAnswer, 3),
        ],
    };

    /// Starts a receiver that behaves like this.
    pub(crate) fn start(self) -> Receiver {
        let receiver = Receiver::start();
        self.apply_to(&receiver);
        receiver
    }

    /// Changes how a receiver treats the notifications that arrive from now on.
    pub(crate) fn apply_to(self, receiver: &Receiver) {
        receiver.delay(self.latency);
        receiver.answer_shares(self.shares);
    }
}

/// Asserts that within an IRN an event arrives only after the one before it was accepted, and none after a later one.
pub(crate) fn assert_order(arrivals: &[Received]) {
    let mut by_irn: BTreeMap<&str, Vec<&Received>> = BTreeMap::new();
    for arrival in arrivals {
        by_irn.entry(arrival.irn()).or_default().push(arrival);
    }
    for (irn, arrivals) in by_irn {
        let mut last = 0;
        let mut is_accepted = true;
        for arrival in arrivals {
            let number = arrival.sequence();
            assert!(number >= last, "{irn}: {number} came after {last}");
            assert!(
                number == last || is_accepted,
                "{irn}: {number} came before {last} was accepted"
            );
            is_accepted = arrival.is_accepted() || (number == last && is_accepted);
            last = number;
        }
    }
}

/// Counts the arrivals of events that had been accepted before.
pub(crate) fn duplicates(arrivals: &[Received]) -> usize {
    let mut accepted = BTreeSet::new();
    let is_duplicate = |arrival: &&Received| {
        let event = (arrival.taxpayer(), arrival.sequence());
        let is_known = accepted.contains(&event);
        if arrival.is_accepted() {
            accepted.insert(event);
        }
        is_known
    };
    arrivals.iter().filter(is_duplicate).count()
}
