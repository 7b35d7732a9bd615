//! How many calls of one operation may be under way at a time, as a pure state machine: every method is given
//! the present, and nobody waits here.
//!
//! It grows by one for every `limit` good answers while the limit was reached, and falls to seven tenths where
//! the authority shows that it is overloaded, or takes clearly longer than it does when few ask. What it takes
//! then is measured again and again, so that neither a queue of our own making passes for the authority's usual
//! time, nor an authority that became slower for good for an overloaded one. Calls that started before a fall say
//! nothing about the limit after it: a burst of failures counts once.

use std::time::Duration;

use jiff::Timestamp;

/// Places at the start of a process: neither a flood nor a trickle.
const START: u32 = 16;
/// So few calls that the time of an answer is the authority's own. Slowness alone never goes below it.
const FEW: u32 = 4;
/// Fewer successes than this make no mean.
const SAMPLES_MIN: u32 = 16;
/// Successes that make a measurement. Others wait meanwhile, so they are few.
const MEASUREMENT: u32 = 2 * FEW;
/// Answers of any kind after which a measurement ends without a mean: nothing succeeds here.
const MEASUREMENT_MAX: u32 = 2 * MEASUREMENT;
/// Means taken before the usual time is measured again.
const MEASURE_EVERY: u32 = 64;
/// What a mean may always be above the usual time, in microseconds: quick answers vary by more than half.
const SLACK_US: u64 = 50_000;
/// The longest that one answer may hold the whole operation back.
const HOLD_MAX: Duration = Duration::from_mins(1);

/// What a call that ended said about the load of the authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// It did what was asked within this time.
    Succeeded(Duration),
    /// It answered no. That counts as borne, but is too quick to tell how long work takes.
    Answered,
    /// Nothing that speaks of load.
    Neutral,
    Overloaded,
    /// HTTP 429, with the wait it asks for.
    Throttled(Option<Duration>),
}

/// Handed out with the start of a call, and given back with its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    epoch: u64,
}

/// The answers since the last mean was taken.
#[derive(Debug, Default)]
struct Window {
    samples: u32,
    micros: u64,
    /// The most calls that were under way at a time.
    peak: u32,
}

#[derive(Debug)]
pub(super) struct Limit {
    max: u32,
    bound: u32,
    in_flight: u32,
    /// Grows with every fall.
    epoch: u64,
    /// Good answers since the limit last moved or could have, and whether it was reached meanwhile.
    good: u32,
    reached: bool,
    window: Window,
    /// The mean time of a success while few calls are under way, in microseconds.
    usual: Option<u64>,
    /// Answers since a measurement began; None while none is under way.
    measuring: Option<u32>,
    /// Means since the last measurement.
    unmeasured: u32,
    not_before: Option<Timestamp>,
}

impl Limit {
    /// At most `max` places, and one at least. It begins with a measurement.
    pub(super) fn new(max: u32) -> Self {
        let max = max.max(1);
        Self {
            max,
            bound: START.min(max),
            in_flight: 0,
            epoch: 0,
            good: 0,
            reached: false,
            window: Window::default(),
            usual: None,
            measuring: Some(0),
            unmeasured: 0,
            not_before: None,
        }
    }

    /// How many calls may be under way now.
    pub(super) fn places(&self) -> u32 {
        if self.measuring.is_some() { self.bound.min(FEW) } else { self.bound }
    }

    /// How many of them one account may have.
    pub(super) fn share(&self) -> u32 {
        share(self.places())
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// How long the operation as a whole is held back.
    pub(super) fn held(&self, now: Timestamp) -> Option<Duration> {
        Duration::try_from(self.not_before(now)?.duration_since(now)).ok()
    }

    /// Until when. What is further off than any answer may ask for is from before the clock was set back.
    pub(super) fn not_before(&self, now: Timestamp) -> Option<Timestamp> {
        let latest = now.checked_add(HOLD_MAX).unwrap_or(Timestamp::MAX);
        self.not_before.filter(|moment| now < *moment && *moment <= latest)
    }

    /// A call begins.
    pub(super) fn start(&mut self) -> Ticket {
        self.in_flight = self.in_flight.saturating_add(1);
        self.reached |= self.in_flight >= self.share();
        self.window.peak = self.window.peak.max(self.in_flight);
        Ticket { epoch: self.epoch }
    }

    /// A call has ended.
    pub(super) fn settle(&mut self, ticket: Ticket, sign: Sign, now: Timestamp) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Sign::Throttled(Some(wait)) = sign {
            let until = now.checked_add(wait.min(HOLD_MAX)).unwrap_or(Timestamp::MAX);
            self.not_before = self.not_before(now).max(Some(until));
        }
        if ticket.epoch != self.epoch {
            return;
        }
        match sign {
            // Where calls fail or hang, one of them must not be all that is made.
            Sign::Overloaded => self.fall(FEW),
            Sign::Throttled(_) => self.fall(1),
            Sign::Neutral => self.measured(),
            Sign::Answered => self.borne(),
            Sign::Succeeded(took) => {
                self.borne();
                self.sample(took);
            }
        }
    }

    /// To seven tenths, by one at least, though not below `floor`.
    fn fall(&mut self, floor: u32) {
        let lower = (self.bound.saturating_mul(7) / 10).min(self.bound.saturating_sub(1));
        self.bound = lower.max(floor.min(self.bound));
        self.begin_anew(self.in_flight);
    }

    fn begin_anew(&mut self, peak: u32) {
        self.epoch += 1;
        self.good = 0;
        self.reached = false;
        self.window = Window { peak, ..Window::default() };
    }

    /// Counts a good answer. A limit that nobody meets proves nothing and stays.
    fn borne(&mut self) {
        if self.measuring.is_some() {
            return self.measured();
        }
        self.good += 1;
        if self.good < self.bound {
            return;
        }
        if self.reached {
            self.bound = self.bound.saturating_add(1).min(self.max);
        }
        self.good = 0;
        self.reached = false;
    }

    /// Counts an answer of a measurement, which must end also where nothing succeeds.
    fn measured(&mut self) {
        let Some(answers) = &mut self.measuring else { return };
        *answers += 1;
        if *answers >= MEASUREMENT_MAX {
            self.end_measurement();
        }
    }

    fn end_measurement(&mut self) {
        self.measuring = None;
        self.unmeasured = 0;
        self.good = 0;
        self.reached = false;
    }

    fn sample(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.window.samples += 1;
        self.window.micros = self.window.micros.saturating_add(micros);
        let enough = if self.measuring.is_some() { MEASUREMENT } else { self.bound.max(SAMPLES_MIN) };
        if self.window.samples < enough {
            return;
        }
        let (mean, peak) = (self.window.micros / u64::from(self.window.samples), self.window.peak);
        self.window = Window { peak: self.in_flight, ..Window::default() };
        self.judge(mean, peak);
    }

    /// What a mean says: how long the authority usually takes, if few asked; else whether that is too long.
    fn judge(&mut self, mean: u64, peak: u32) {
        if peak <= FEW {
            self.usual = Some(self.usual.map_or(mean, |usual| usual.midpoint(mean)));
            return self.end_measurement();
        }
        if self.measuring.is_some() {
            return;
        }
        self.unmeasured += 1;
        let bearable = |usual: u64| usual.saturating_mul(2).saturating_add(SLACK_US);
        // Slowness while places are free is not of our making.
        if peak >= share(self.bound) && self.usual.is_some_and(|usual| mean > bearable(usual)) {
            self.fall(FEW);
        }
        if self.unmeasured >= MEASURE_EVERY {
            self.measuring = Some(0);
            self.begin_anew(0);
        }
    }
}

/// All of them but an eighth, so that one account whose calls hang leaves a place for others. Where one account alone
/// calls, this is as good as all.
fn share(places: u32) -> u32 {
    if places < FEW { places } else { places - (places / 8).max(1) }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use super::*;

    const USUAL: Duration = Duration::from_millis(100);
    const GOOD: Sign = Sign::Succeeded(USUAL);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// So many calls at a time, all of which end in the same way.
    fn round(limit: &mut Limit, calls: u32, sign: Sign) {
        let tickets: Vec<_> = (0..calls).map(|_| limit.start()).collect();
        for ticket in tickets {
            limit.settle(ticket, sign, at(0));
        }
    }

    /// As many at a time as there may be.
    fn full_round(limit: &mut Limit, sign: Sign) -> u32 {
        round(limit, limit.places(), sign);
        limit.places()
    }

    /// A limit of this many places whose first measurement is over.
    fn measured(places: u32) -> Limit {
        let mut limit = Limit::new(10_000);
        for _ in 0..MEASUREMENT / FEW {
            round(&mut limit, FEW, GOOD);
        }
        limit.bound = places;
        limit
    }

    #[test]
    fn it_begins_with_few_calls_and_goes_on_with_sixteen() {
        let mut limit = Limit::new(64);
        let places: Vec<_> = (0..5).map(|_| full_round(&mut limit, GOOD)).collect();
        assert_eq!(places, [4, 16, 17, 18, 19]);
        assert_eq!(limit.usual, Some(100_000));
    }

    #[test]
    fn it_is_never_more_than_its_maximum() {
        for max in [1, 2, 16, 20] {
            let mut limit = Limit::new(max);
            let most = (0..200).map(|_| full_round(&mut limit, GOOD)).max();
            assert_eq!(most, Some(max));
        }
        assert_eq!(Limit::new(0).places(), 1);
    }

    #[test]
    fn a_full_round_moves_it_by_what_its_answers_say() {
        let rows = [
            (GOOD, 17),
            (Sign::Answered, 17),
            (Sign::Neutral, 16),
            (Sign::Overloaded, 11),
            (Sign::Throttled(None), 11),
            (Sign::Throttled(Some(Duration::from_secs(1))), 11),
        ];
        for (sign, expected) in rows {
            assert_eq!(full_round(&mut measured(16), sign), expected, "{sign:?}");
        }
    }

    #[test]
    fn it_falls_to_seven_tenths_and_by_one_at_least_and_never_below_one() {
        for (before, after) in [(10_000, 7_000), (64, 44), (10, 7), (4, 2), (3, 2), (2, 1), (1, 1)] {
            let mut limit = measured(before);
            round(&mut limit, 1, Sign::Throttled(None));
            assert_eq!(limit.places(), after, "{before}");
        }
    }

    #[test]
    fn calls_that_fail_or_hang_leave_a_few_places() {
        for (before, after) in [(64, 44), (5, 4), (4, 4), (1, 1)] {
            let mut limit = measured(before);
            round(&mut limit, 1, Sign::Overloaded);
            assert_eq!(limit.places(), after, "{before}");
        }
    }

    #[test]
    fn a_burst_of_failures_counts_once_and_the_next_one_again() {
        let mut limit = measured(64);
        assert_eq!(full_round(&mut limit, Sign::Overloaded), 44);
        assert_eq!(full_round(&mut limit, Sign::Throttled(None)), 30);
    }

    #[test]
    fn answers_to_calls_from_before_a_fall_do_not_raise_it() {
        let mut limit = measured(16);
        let old: Vec<_> = (0..15).map(|_| limit.start()).collect();
        round(&mut limit, 1, Sign::Overloaded);
        for ticket in old {
            limit.settle(ticket, GOOD, at(0));
        }
        assert_eq!((limit.places(), limit.good, limit.in_flight()), (11, 0, 0));
    }

    #[test]
    fn a_limit_that_nobody_meets_does_not_grow() {
        let mut limit = measured(16);
        for _ in 0..1_000 {
            round(&mut limit, share(16) - 1, GOOD);
            assert!(limit.measuring.is_some() || limit.places() == 16);
        }
    }

    #[test]
    fn one_account_has_all_places_but_an_eighth_and_meets_the_limit_with_them() {
        let shares = [1, 2, 3, 4, 8, 16, 64].map(share);
        assert_eq!(shares, [1, 2, 3, 3, 7, 14, 56]);
        let mut limit = measured(16);
        for _ in 0..2 {
            round(&mut limit, share(16), GOOD);
        }
        assert_eq!(limit.places(), 17);
    }

    #[test]
    fn it_recovers_by_one_a_round() {
        let mut limit = measured(1);
        let places: Vec<_> = (0..5).map(|_| full_round(&mut limit, GOOD)).collect();
        assert_eq!(places, [2, 3, 4, 5, 6]);
    }

    #[test]
    fn slowness_beyond_twice_the_usual_and_some_slack_makes_it_fall() {
        for (took_ms, after) in [(100, 17), (250, 17), (251, 11), (30_000, 11)] {
            let mut limit = measured(16);
            let slow = Sign::Succeeded(Duration::from_millis(took_ms));
            // The round raises it too; the mean is taken with one answer more.
            let tickets: Vec<_> = (0..17).map(|_| limit.start()).collect();
            for ticket in tickets {
                limit.settle(ticket, slow, at(0));
            }
            assert_eq!(limit.places(), after, "{took_ms} ms");
        }
    }

    #[test]
    fn slowness_while_places_are_free_changes_nothing() {
        let mut limit = measured(16);
        for _ in 0..10 {
            round(&mut limit, 10, Sign::Succeeded(Duration::from_secs(5)));
        }
        assert_eq!(limit.places(), 16);
    }

    #[test]
    fn quick_refusals_do_not_pass_for_the_usual_time() {
        let mut limit = measured(16);
        for _ in 0..20 {
            round(&mut limit, 4, Sign::Answered);
        }
        assert_eq!(limit.usual, Some(100_000));
        assert_eq!(full_round(&mut limit, GOOD), 17);
    }

    #[test]
    fn slowness_alone_leaves_a_few_places_and_one_for_good_is_got_used_to() {
        let mut limit = measured(64);
        let slow = Sign::Succeeded(Duration::from_secs(1));
        let places: Vec<_> = (0..400).map(|_| full_round(&mut limit, slow)).collect();
        assert!(places[..60].contains(&FEW), "{places:?}");
        assert!(places.iter().all(|places| *places >= FEW), "{places:?}");
        assert!(limit.usual.unwrap() > 475_000, "{:?}", limit.usual);
        assert!(limit.bound > START, "{places:?}");
    }

    #[test]
    fn the_usual_time_is_measured_again_under_constant_load() {
        let mut limit = measured(16);
        let quick = Sign::Succeeded(Duration::from_millis(20));
        let places: Vec<_> = (0..150).map(|_| full_round(&mut limit, quick)).collect();
        assert!(places.contains(&FEW), "{places:?}");
        assert!(limit.usual.unwrap() < 100_000);
        assert!(limit.places() > 60, "it goes on where it was: {places:?}");
    }

    #[test]
    fn a_measurement_where_nothing_succeeds_ends() {
        for sign in [Sign::Answered, Sign::Neutral] {
            let mut limit = Limit::new(64);
            let rounds = (0..100).take_while(|_| full_round(&mut limit, sign) == FEW).count();
            assert_eq!(rounds, 3, "{sign:?}");
            assert_eq!(limit.places(), START);
        }
    }

    #[test]
    fn a_429_holds_the_operation_back_for_as_long_as_it_says_but_for_a_minute_at_most() {
        for (asked_s, held_s) in [(Some(7), Some(7)), (Some(3_600), Some(60)), (Some(0), None), (None, None)]
        {
            let mut limit = measured(16);
            let ticket = limit.start();
            limit.settle(ticket, Sign::Throttled(asked_s.map(Duration::from_secs)), at(0));
            assert_eq!(limit.held(at(0)), held_s.map(Duration::from_secs), "{asked_s:?}");
            assert_eq!(limit.held(at(60)), None);
            assert_eq!(limit.not_before(at(0)), held_s.map(|wait| at(wait.cast_signed())));
        }
    }

    #[test]
    fn of_several_holds_the_longest_counts_also_those_of_old_calls() {
        let mut limit = measured(16);
        let (first, second, third) = (limit.start(), limit.start(), limit.start());
        limit.settle(first, Sign::Throttled(Some(Duration::from_secs(5))), at(0));
        limit.settle(second, Sign::Throttled(Some(Duration::from_secs(9))), at(1));
        limit.settle(third, Sign::Throttled(Some(Duration::from_secs(1))), at(2));
        assert_eq!(limit.held(at(2)), Some(Duration::from_secs(8)));
        assert_eq!(limit.places(), 11);
    }

    #[test]
    fn a_clock_set_back_holds_nothing_back() {
        let mut limit = measured(16);
        let ticket = limit.start();
        limit.settle(ticket, Sign::Throttled(Some(Duration::from_secs(5))), at(86_400));
        assert_eq!(limit.held(at(86_400)), Some(Duration::from_secs(5)));
        assert_eq!(limit.held(at(0)), None);
    }

    /// A server that works on so many calls at a time, each for 100 ms. More wait there, or are turned away.
    struct Server {
        capacity: usize,
        turns_away: bool,
    }

    /// Lets callers without end at a server; gives the lowest and highest limit of the second half.
    fn simulate(server: &Server, limit: &mut Limit, calls: u32) -> (u32, u32) {
        let mut free = vec![0_u64; server.capacity];
        let mut running = BinaryHeap::new();
        let mut tickets = Vec::new();
        let (mut now, mut seen) = (0, Vec::new());
        for ended in 0..calls {
            while limit.in_flight() < limit.places() {
                tickets.push(limit.start());
                let worker = free.iter_mut().min().unwrap();
                if server.turns_away && *worker > now {
                    running.push(Reverse((now + 1, tickets.len() - 1, None)));
                } else {
                    *worker = now.max(*worker) + 100;
                    running.push(Reverse((*worker, tickets.len() - 1, Some(*worker - now))));
                }
            }
            let Reverse((end, index, took)) = running.pop().unwrap();
            now = end;
            let sign =
                took.map_or(Sign::Throttled(None), |millis| Sign::Succeeded(Duration::from_millis(millis)));
            limit.settle(tickets[index], sign, at(0));
            if ended > calls / 2 {
                seen.push(limit.bound);
            }
        }
        (*seen.iter().min().unwrap(), *seen.iter().max().unwrap())
    }

    #[test]
    fn it_settles_at_what_a_server_bears() {
        for (capacity, turns_away, expected) in [
            (1, true, (1, 3)),
            (8, true, (5, 10)),
            (50, true, (34, 52)),
            (8, false, (8, 24)),
            (30, false, (30, 90)),
        ] {
            let mut limit = Limit::new(1_000);
            let (low, high) = simulate(&Server { capacity, turns_away }, &mut limit, 100_000);
            println!("capacity {capacity}, turns away {turns_away}: between {low} and {high}");
            assert!(low >= expected.0 && high <= expected.1, "{capacity}: {low} to {high}");
        }
    }

    #[test]
    fn it_follows_a_server_that_loses_and_regains_its_strength() {
        let mut limit = Limit::new(1_000);
        for (capacity, expected) in [(40, (27, 42)), (4, (2, 6)), (40, (27, 42))] {
            let (low, high) = simulate(&Server { capacity, turns_away: true }, &mut limit, 60_000);
            println!("capacity {capacity}: between {low} and {high}");
            assert!(low >= expected.0 && high <= expected.1, "{capacity}: {low} to {high}");
            limit.in_flight = 0;
        }
    }
}
