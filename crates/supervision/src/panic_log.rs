//! The causes of the last panics, with their times. The list is bounded, and no actor takes more than its share of it.

use std::collections::VecDeque;

use jiff::Timestamp;

use super::snapshot_format::PanicRecord;

const RECORDS_MAX: usize = 500;
/// The number of panics that are kept of one actor.
const RECORDS_PER_ACTOR_MAX: usize = 5;

#[derive(Debug, Default)]
pub(crate) struct PanicLog(VecDeque<LoggedPanic>);

#[derive(Debug)]
struct LoggedPanic {
    kind: &'static str,
    actor: Box<str>,
    at: Timestamp,
    cause: Box<str>,
}

impl LoggedPanic {
    fn is_from_actor(&self, kind: &str, actor: &str) -> bool {
        self.kind == kind && &*self.actor == actor
    }
}

impl PanicLog {
    /// Adds a panic. If its actor already has the maximum number, removes the actor's oldest panic. Otherwise, if the
    /// list is full, removes the oldest panic of all.
    pub(crate) fn record(&mut self, kind: &'static str, actor: &str, at: Timestamp, cause: &str) {
        let mut own = self.0.iter().enumerate();
        let oldest = own
            .by_ref()
            .find(|(_, panic)| panic.is_from_actor(kind, actor));
        let others = own
            .filter(|(_, panic)| panic.is_from_actor(kind, actor))
            .count();
        match oldest {
            Some((index, _)) if others + 1 >= RECORDS_PER_ACTOR_MAX => drop(self.0.remove(index)),
            _ if self.0.len() >= RECORDS_MAX => drop(self.0.pop_front()),
            _ => {}
        }
        self.0.push_back(LoggedPanic {
            kind,
            actor: actor.into(),
            at,
            cause: cause.into(),
        });
    }

    /// Returns the last panics of an actor, the newest first.
    pub(crate) fn last(&self, kind: &str, actor: &str) -> Vec<PanicRecord> {
        let newest_first = self.0.iter().rev();
        let own = newest_first.filter(|panic| panic.is_from_actor(kind, actor));
        own.map(|panic| PanicRecord {
            at: panic.at,
            cause: panic.cause.to_string(),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: usize) -> Timestamp {
        Timestamp::from_second(i64::try_from(second).unwrap()).unwrap()
    }

    #[test]
    fn an_actor_that_panics_all_the_time_drives_out_only_its_own_panics() {
        let mut log = PanicLog::default();
        log.record("account", "quiet", at(0), "once");
        for second in 1..=2 * RECORDS_MAX {
            log.record("account", "loud", at(second), "again");
        }
        let loud: Vec<_> = log
            .last("account", "loud")
            .iter()
            .map(|panic| panic.at)
            .collect();
        let newest = 2 * RECORDS_MAX;
        let expected: Vec<_> = (0..RECORDS_PER_ACTOR_MAX)
            .map(|back| at(newest - back))
            .collect();
        assert_eq!(loud, expected);
        assert_eq!(log.last("account", "quiet")[0].cause, "once");
        assert_eq!(log.last("clerk", "quiet"), []);
    }

    #[test]
    fn many_actors_that_panic_once_leave_a_bounded_list() {
        let mut log = PanicLog::default();
        for second in 0..3 * RECORDS_MAX {
            log.record("account", &second.to_string(), at(second), "once");
        }
        assert_eq!(log.0.len(), RECORDS_MAX);
        assert_eq!(log.last("account", "0"), []);
        assert_eq!(log.last("account", "1499").len(), 1);
    }
}
