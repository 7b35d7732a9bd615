//! The worst actors of the last minute, of the last five minutes and of the last hour: those that waited or worked
//! longest, had the most commands in their queues, panicked or restarted.
//!
//! Memory is bounded, however many actors there are. Time is divided into short spans. A span keeps only the worst
//! actors of each kind by each measure. An actor without a batch takes no memory. The largest value of a window is the
//! largest of its spans, so the first `KEPT_BY_MEASURE` actors of a window are exact. All times are in microseconds
//! since the tree was created.

use std::collections::{HashMap, VecDeque};

/// The number of actors of a kind that a span keeps by each measure.
pub(crate) const KEPT_BY_MEASURE: usize = 20;

/// At this number of actors of a kind, a span drops all but the worst. This is rare, because at most half of them
/// remain.
const CUT_AT: usize = 2 * ActorMeasures::COUNT * KEPT_BY_MEASURE;

const SECOND_US: u64 = 1_000_000;
const MINUTE_US: u64 = 60 * SECOND_US;

/// The lengths of the windows, the shortest first.
pub(crate) const WINDOWS_US: [u64; 3] = [MINUTE_US, 5 * MINUTE_US, 60 * MINUTE_US];

/// The worst figures of one actor within a period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ActorMeasures {
    pub(crate) wait_us: u64,
    pub(crate) handle_us: u64,
    pub(crate) depth: u64,
    pub(crate) panics: u64,
    pub(crate) restarts: u64,
}

impl ActorMeasures {
    const COUNT: usize = 4;

    /// Returns the values by which a span chooses the actors that it keeps. A restart follows a panic, so it needs no
    /// value of its own.
    fn values(self) -> [u64; Self::COUNT] {
        [self.wait_us, self.handle_us, self.depth, self.panics]
    }

    /// Raises these figures to at least those of the same actor in a shorter period that lies within this one.
    fn raise_to(&mut self, shorter: Self) {
        self.wait_us = self.wait_us.max(shorter.wait_us);
        self.handle_us = self.handle_us.max(shorter.handle_us);
        self.depth = self.depth.max(shorter.depth);
        self.panics = self.panics.max(shorter.panics);
        self.restarts = self.restarts.max(shorter.restarts);
    }

    /// Adds the figures of the same actor from another period, which does not overlap with this one.
    pub(crate) fn merge(&mut self, other: Self) {
        self.wait_us = self.wait_us.max(other.wait_us);
        self.handle_us = self.handle_us.max(other.handle_us);
        self.depth = self.depth.max(other.depth);
        self.panics += other.panics;
        self.restarts += other.restarts;
    }
}

/// The figures of one actor in each of the windows.
pub(crate) type Windows = [ActorMeasures; WINDOWS_US.len()];

/// The figures of actors by kind and name.
pub(crate) type WindowsByName = HashMap<&'static str, HashMap<Box<str>, Windows>>;

/// The worst actors of the last hour.
#[derive(Debug)]
pub(crate) struct WorstActors {
    /// Spans of ten seconds, for the windows of one and of five minutes. `long` has spans of a minute, for the window
    /// of an hour.
    short: ActorSpans,
    long: ActorSpans,
}

impl Default for WorstActors {
    fn default() -> Self {
        Self {
            short: ActorSpans::new(10 * SECOND_US, WINDOWS_US[1]),
            long: ActorSpans::new(MINUTE_US, WINDOWS_US[2]),
        }
    }
}

impl WorstActors {
    pub(crate) fn record(
        &mut self,
        kind: &'static str,
        name: &str,
        moment: u64,
        measured: ActorMeasures,
    ) {
        for spans in [&mut self.short, &mut self.long] {
            spans.span_at(moment).record(kind, name, measured);
        }
    }

    /// Returns the figures of the kept actors, by window. A window includes the whole span in which it begins. So it
    /// may begin up to ten seconds too early, and the window of an hour up to a minute.
    pub(crate) fn windows(&self, moment: u64) -> WindowsByName {
        let mut found = WindowsByName::new();
        let [minute, five_minutes, hour] = [0, 1, 2];
        self.short.add_window_to(&mut found, moment, minute);
        self.short.add_window_to(&mut found, moment, five_minutes);
        self.long.add_window_to(&mut found, moment, hour);
        for windows in found.values_mut().flat_map(HashMap::values_mut) {
            // If many actors have equal values, the long spans may have dropped an actor that the short spans kept.
            windows[five_minutes].raise_to(windows[minute]);
            windows[hour].raise_to(windows[five_minutes]);
        }
        found
    }

    #[cfg(test)]
    fn kept_count(&self) -> usize {
        let all = self.short.spans.iter().chain(&self.long.spans);
        all.flat_map(|span| span.by_kind.values())
            .map(|kept| kept.actors.len())
            .sum()
    }
}

/// Consecutive spans of equal length, the newest last. Spans without an event are absent.
#[derive(Debug)]
struct ActorSpans {
    length_us: u64,
    /// The length of the longest window that is read from these spans.
    window_us: u64,
    spans: VecDeque<ActorSpan>,
}

#[derive(Debug)]
struct ActorSpan {
    /// The number of the span since the tree was created.
    number: u64,
    by_kind: HashMap<&'static str, KeptActors>,
}

#[derive(Debug, Default)]
struct KeptActors {
    actors: HashMap<Box<str>, ActorMeasures>,
    /// The smallest values that were kept at the last cut. An actor that exceeds none of them is not among the worst.
    floor: [u64; ActorMeasures::COUNT],
}

impl ActorSpans {
    fn new(length_us: u64, window_us: u64) -> Self {
        Self {
            length_us,
            window_us,
            spans: VecDeque::new(),
        }
    }

    /// Returns the span of a moment, and drops the spans that are in no window any more. If another thread has already
    /// begun a newer span, returns that one.
    fn span_at(&mut self, moment: u64) -> &mut ActorSpan {
        let number = moment / self.length_us;
        let first = self.first_span_number(moment, self.window_us);
        while self.spans.front().is_some_and(|span| span.number < first) {
            self.spans.pop_front();
        }
        if self.spans.back().is_none_or(|span| span.number < number) {
            if let Some(ended) = self.spans.back_mut() {
                ended
                    .by_kind
                    .values_mut()
                    .for_each(KeptActors::drop_all_but_worst);
            }
            self.spans.push_back(ActorSpan {
                number,
                by_kind: HashMap::new(),
            });
        }
        let newest = self.spans.len() - 1;
        &mut self.spans[newest]
    }

    /// Returns the number of the first span of a window that ends at `moment`.
    fn first_span_number(&self, moment: u64, window_us: u64) -> u64 {
        moment.saturating_sub(window_us) / self.length_us
    }

    /// Adds to `found` the figures of a window that ends at `moment`. `window` is its index in `WINDOWS_US`.
    fn add_window_to(&self, found: &mut WindowsByName, moment: u64, window: usize) {
        let first = self.first_span_number(moment, WINDOWS_US[window]);
        for span in self.spans.iter().filter(|span| span.number >= first) {
            for (kind, kept) in &span.by_kind {
                let names = found.entry(*kind).or_default();
                for (name, measured) in &kept.actors {
                    if let Some(windows) = names.get_mut(name) {
                        windows[window].merge(*measured);
                    } else {
                        let mut windows = Windows::default();
                        windows[window] = *measured;
                        names.insert(name.clone(), windows);
                    }
                }
            }
        }
    }
}

impl ActorSpan {
    fn record(&mut self, kind: &'static str, name: &str, measured: ActorMeasures) {
        let kept = self.by_kind.entry(kind).or_default();
        if let Some(before) = kept.actors.get_mut(name) {
            before.merge(measured);
            return;
        }
        let mut pairs = measured.values().into_iter().zip(kept.floor);
        if pairs.any(|(value, floor)| value > floor) {
            kept.actors.insert(name.into(), measured);
            if kept.actors.len() >= CUT_AT {
                kept.drop_all_but_worst();
            }
        }
    }
}

impl KeptActors {
    /// Drops all but the worst actors by each measure.
    fn drop_all_but_worst(&mut self) {
        if self.actors.len() <= KEPT_BY_MEASURE {
            return;
        }
        for (index, floor) in self.floor.iter_mut().enumerate() {
            let mut values: Vec<u64> = self
                .actors
                .values()
                .map(|measured| measured.values()[index])
                .collect();
            let (_, least, _) = values.select_nth_unstable_by(KEPT_BY_MEASURE - 1, |a, b| b.cmp(a));
            *floor = *least;
        }
        // Many actors may have the same value as the floor. Only as many as there is room for are kept, so that memory
        // stays bounded.
        let mut room = [KEPT_BY_MEASURE; ActorMeasures::COUNT];
        for (room, (index, floor)) in room.iter_mut().zip(self.floor.iter().enumerate()) {
            let above = self
                .actors
                .values()
                .filter(|measured| measured.values()[index] > *floor);
            *room = room.saturating_sub(above.count());
        }
        let floor = self.floor;
        self.actors.retain(|_, measured| {
            let mut is_kept = false;
            for ((value, floor), room) in measured.values().into_iter().zip(floor).zip(&mut room) {
                if value > floor {
                    is_kept = true;
                } else if value > 0 && value == floor && *room > 0 {
                    *room -= 1;
                    is_kept = true;
                }
            }
            is_kept
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "account";

    fn waited(wait_us: u64) -> ActorMeasures {
        ActorMeasures {
            wait_us,
            ..ActorMeasures::default()
        }
    }

    /// Returns the waits of an actor in the windows of one minute, five minutes and an hour.
    fn waits(recent: &WorstActors, name: &str, second: u64) -> [u64; 3] {
        let found = recent.windows(second * SECOND_US);
        let windows = found.get(KIND).and_then(|names| names.get(name));
        windows
            .copied()
            .unwrap_or_default()
            .map(|window| window.wait_us)
    }

    #[test]
    fn a_maximum_leaves_each_window_when_its_time_is_over() {
        let mut recent = WorstActors::default();
        recent.record(KIND, "t", 1_000 * SECOND_US, waited(70));
        recent.record(KIND, "t", 1_200 * SECOND_US, waited(40));
        recent.record(KIND, "t", 1_200 * SECOND_US, waited(30));
        let seen = [
            1_000, 1_060, 1_069, 1_200, 1_260, 1_311, 4_599, 4_681, 9_000,
        ]
        .map(|second| waits(&recent, "t", second));
        let expected = [
            [70, 70, 70],
            [70, 70, 70],
            [70, 70, 70],
            [40, 70, 70],
            [40, 70, 70],
            [0, 40, 70],
            [0, 0, 70],
            [0, 0, 40],
            [0, 0, 0],
        ];
        // Nothing is recorded after 1,200 s: a window is right also while all actors are idle.
        assert_eq!(seen, expected);
    }

    #[test]
    fn panics_and_restarts_are_added_up_and_maxima_are_not() {
        let mut recent = WorstActors::default();
        let failed = ActorMeasures {
            wait_us: 5,
            handle_us: 7,
            depth: 2,
            panics: 1,
            restarts: 1,
        };
        for second in [0, 20, 40] {
            recent.record(KIND, "t", second * SECOND_US, failed);
        }
        let found = recent.windows(45 * SECOND_US)[KIND]["t"];
        let expected = ActorMeasures {
            panics: 3,
            restarts: 3,
            ..failed
        };
        assert_eq!(found, [expected; 3]);
    }

    #[test]
    fn a_moment_of_a_slower_thread_belongs_to_the_newest_span() {
        let mut recent = WorstActors::default();
        recent.record(KIND, "t", 20 * SECOND_US, waited(1));
        recent.record(KIND, "u", 19 * SECOND_US, waited(2));
        assert_eq!(waits(&recent, "u", 20), [2; 3]);
        assert_eq!(recent.short.spans.len(), 1);
    }

    #[test]
    fn of_a_hundred_thousand_actors_only_the_worst_are_kept() {
        let mut recent = WorstActors::default();
        for minute in 0..70 {
            for number in 0..100_000_u64 {
                // The order is mixed, so that the worst do not all come first or last.
                let mixed = number * 48_271 % 100_003;
                let measured = ActorMeasures {
                    wait_us: mixed,
                    handle_us: 100_003 - mixed,
                    depth: 1,
                    ..ActorMeasures::default()
                };
                if minute == 69 || number % 100 == 0 {
                    recent.record(KIND, &number.to_string(), minute * MINUTE_US, measured);
                }
            }
        }
        let spans = recent.short.spans.len() + recent.long.spans.len();
        assert!(spans <= 31 + 61, "{spans}");
        assert!(
            recent.kept_count() <= spans * CUT_AT,
            "{}",
            recent.kept_count()
        );
        let found = recent.windows(69 * MINUTE_US);
        let mut waits: Vec<u64> = found[KIND]
            .values()
            .map(|windows| windows[0].wait_us)
            .collect();
        waits.sort_unstable_by(|a, b| b.cmp(a));
        let mut all: Vec<u64> = (0..100_000)
            .map(|number| number * 48_271 % 100_003)
            .collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(waits[..KEPT_BY_MEASURE], all[..KEPT_BY_MEASURE]);
    }

    #[test]
    fn many_equal_actors_stay_bounded() {
        let mut recent = WorstActors::default();
        for number in 0..10_000 {
            recent.record(KIND, &number.to_string(), 0, waited(5));
        }
        assert!(recent.kept_count() <= 2 * CUT_AT, "{}", recent.kept_count());
        let found = recent.windows(0);
        assert!(found[KIND].len() >= KEPT_BY_MEASURE);
        assert!(found[KIND].values().all(|windows| windows[2].wait_us == 5));
    }
}
