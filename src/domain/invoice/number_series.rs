//! Groups invoice numbers into series: numbers with the same text before the digits at their end (`INV-0017`). A series
//! shows its first and last number and the numbers that are missing between them. `7` and `007` are the same number of
//! a series. Memory is bounded: consecutive numbers are kept as ranges, and a series with too many ranges keeps none.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The maximum number of series. The numbers of further series are only counted.
pub(super) const SERIES_MAX: usize = 2_000;
/// The maximum number of ranges of all series together. There are fewer gaps than ranges.
pub(super) const RANGES_MAX: usize = 50_000;
/// The maximum number of digits that form the end of a number. Further digits before them belong to the prefix.
const DIGITS_MAX: usize = 18;

#[derive(Debug, Default)]
pub struct NumberSeries {
    series: BTreeMap<String, Series>,
    ranges: usize,
    /// The number of invoice numbers that belong to no series, because they do not end in a digit or there were too
    /// many series.
    pub others: u64,
}

#[derive(Debug, Default)]
struct Series {
    /// The number of digits with which a missing number is written, so that `7` becomes `0007`.
    width: usize,
    count: u64,
    first: TrailingNumber,
    last: TrailingNumber,
    /// The numbers that were added, as ranges: the first number of each range, with its last. `None` if there were too
    /// many ranges.
    ranges: Option<BTreeMap<u64, u64>>,
}

/// A series, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesSummary {
    pub prefix: String,
    pub count: u64,
    pub first: String,
    pub last: String,
    pub last_sequence: u64,
    /// The number of all missing numbers; `None` if the ranges were not kept.
    pub missing: Option<u64>,
    /// The first gaps. There may be more than these.
    pub gaps: Vec<Gap>,
}

/// Consecutive numbers that are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub from: String,
    pub to: String,
    pub count: u64,
}

/// An invoice number, split into the text and the number at its end.
struct SplitNumber<'a> {
    prefix: &'a str,
    sequence: TrailingNumber,
}

/// The number at the end of an invoice number: its value, and the number of digits with which it is written.
#[derive(Debug, Clone, Copy, Default)]
struct TrailingNumber {
    value: u64,
    digits: usize,
}

impl SeriesSummary {
    /// True if more numbers are missing than those of `gaps`.
    pub fn has_more_gaps(&self) -> bool {
        let shown: u64 = self.gaps.iter().map(|gap| gap.count).sum();
        self.missing.is_some_and(|missing| missing > shown)
    }
}

impl TrailingNumber {
    /// Returns true if the value is written with leading zeros.
    fn is_padded(self) -> bool {
        self.digits > self.value.to_string().len()
    }

    fn format(self, prefix: &str) -> String {
        format_number(prefix, self.value, self.digits)
    }
}

fn gap_length(gap: &RangeInclusive<u64>) -> u64 {
    gap.end() - gap.start() + 1
}

/// Writes a number with at least `width` digits.
fn format_number(prefix: &str, value: u64, width: usize) -> String {
    format!("{prefix}{value:0width$}")
}

impl<'a> SplitNumber<'a> {
    fn parse(number: &'a str) -> Option<Self> {
        let trimmed = number.trim_end_matches(|sign: char| sign.is_ascii_digit());
        let start = trimmed.len().max(number.len().saturating_sub(DIGITS_MAX));
        let (prefix, digits) = number.split_at(start);
        let sequence = TrailingNumber {
            value: digits.parse().ok()?,
            digits: digits.len(),
        };
        Some(Self { prefix, sequence })
    }
}

impl NumberSeries {
    /// Adds the number of an invoice.
    pub fn add(&mut self, number: &str) {
        let Some(numbered) = SplitNumber::parse(number) else {
            self.others += 1;
            return;
        };
        if !self.series.contains_key(numbered.prefix) && self.series.len() >= SERIES_MAX {
            self.others += 1;
            return;
        }
        let series = self.series.entry(numbered.prefix.to_owned()).or_default();
        series.count_number(numbered.sequence);
        self.insert(&numbered);
    }

    /// Marks a number as not missing without counting it, for example because an invoice outside of the period has it.
    pub fn mark_used(&mut self, number: &str) {
        if let Some(numbered) = SplitNumber::parse(number) {
            self.insert(&numbered);
        }
    }

    /// Adds an invoice number to the ranges of its series, and updates the total count of ranges. Does nothing if the
    /// series does not exist.
    fn insert(&mut self, numbered: &SplitNumber<'_>) {
        let Some(series) = self.series.get_mut(numbered.prefix) else {
            return;
        };
        let before = series.range_count();
        let may_grow = self.ranges < RANGES_MAX;
        series.insert(numbered.sequence.value, may_grow);
        self.ranges = self.ranges.saturating_sub(before) + series.range_count();
    }

    /// Returns the series with the most numbers, with their prefixes, in descending order of their counts.
    fn largest_series(&self, max: usize) -> Vec<(&String, &Series)> {
        let mut all: Vec<_> = self.series.iter().collect();
        all.sort_by_key(|(_, series)| Reverse(series.count));
        all.truncate(max);
        all
    }

    /// Returns the first missing numbers, each with and without leading zeros. Series that miss few numbers come first,
    /// so that one huge gap leaves out only numbers of its own series.
    pub fn missing_numbers(&self, max: usize) -> Vec<String> {
        let mut all: Vec<_> = self.series.iter().collect();
        all.sort_by_cached_key(|(_, series)| series.missing_count());
        let numbers = all.into_iter().flat_map(|(prefix, series)| {
            let missing = series.gaps().flatten();
            missing.map(move |value| (prefix, series.width, value))
        });
        let mut spellings = Vec::new();
        for (prefix, width, value) in numbers.take(max) {
            let plain = format_number(prefix, value, 0);
            let padded = format_number(prefix, value, width);
            if padded != plain {
                spellings.push(padded);
            }
            spellings.push(plain);
        }
        spellings
    }

    /// Returns the series with the most numbers, each with its first gaps, in descending order of their counts.
    pub fn summaries(&self, series_max: usize, gaps_max: usize) -> Vec<SeriesSummary> {
        let all = self.largest_series(series_max).into_iter();
        all.map(|(prefix, series)| series.summary(prefix, gaps_max))
            .collect()
    }

    pub fn series_count(&self) -> usize {
        self.series.len()
    }
}

impl Series {
    fn count_number(&mut self, sequence: TrailingNumber) {
        if self.count == 0 {
            self.first = sequence;
            self.last = sequence;
            self.ranges = Some(BTreeMap::new());
        }
        self.count += 1;
        if sequence.value < self.first.value {
            self.first = sequence;
        }
        if sequence.value > self.last.value {
            self.last = sequence;
        }
        // The width is known only from a number with a leading zero.
        if sequence.is_padded() {
            self.width = self.width.max(sequence.digits);
        }
    }

    fn range_count(&self) -> usize {
        self.ranges.as_ref().map_or(0, BTreeMap::len)
    }

    /// Adds a number to its range. If it needs a new range and `may_grow` is false, the series drops all its ranges.
    fn insert(&mut self, sequence: u64, may_grow: bool) {
        let Some(ranges) = &mut self.ranges else {
            return;
        };
        let before = ranges.range(..=sequence).next_back();
        let before = before.map(|(start, end)| (*start, *end));
        if before.is_some_and(|(_, end)| end >= sequence) {
            return;
        }
        let joined = before.filter(|(_, end)| end + 1 == sequence);
        let after = ranges.remove(&(sequence + 1));
        if joined.is_none() && after.is_none() && !may_grow {
            self.ranges = None;
            return;
        }
        let start = joined.map_or(sequence, |(start, _)| start);
        ranges.insert(start, after.unwrap_or(sequence));
    }

    /// Returns the missing numbers of each gap, as a range.
    fn gaps(&self) -> impl Iterator<Item = RangeInclusive<u64>> {
        let ranges = self.ranges.iter().flatten();
        let starts = self.ranges.iter().flatten().skip(1);
        ranges
            .zip(starts)
            .map(|((_, end), (start, _))| end + 1..=start - 1)
    }

    fn missing_count(&self) -> u64 {
        self.gaps().map(|gap| gap_length(&gap)).sum()
    }

    fn summary(&self, prefix: &str, gaps_max: usize) -> SeriesSummary {
        let shown = self.gaps().take(gaps_max).map(|gap| Gap {
            from: format_number(prefix, *gap.start(), self.width),
            to: format_number(prefix, *gap.end(), self.width),
            count: gap_length(&gap),
        });
        SeriesSummary {
            prefix: prefix.to_owned(),
            count: self.count,
            first: self.first.format(prefix),
            last: self.last.format(prefix),
            last_sequence: self.last.value,
            missing: self.ranges.is_some().then(|| self.missing_count()),
            gaps: shown.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(numbers: &[&str]) -> NumberSeries {
        let mut series = NumberSeries::default();
        for number in numbers {
            series.add(number);
        }
        series
    }

    /// Writes each series as `prefix first-last: gaps`.
    fn texts(series: &NumberSeries) -> Vec<String> {
        let all = series.summaries(10, 10).into_iter();
        all.map(|one| {
            let gaps = one.gaps.iter().map(|gap| match gap.count {
                1 => gap.from.clone(),
                count => format!("{}-{} ({count})", gap.from, gap.to),
            });
            let gaps = gaps.collect::<Vec<_>>().join(", ");
            format!("{} {}-{}: {gaps}", one.count, one.first, one.last)
        })
        .collect()
    }

    #[test]
    fn gaps_are_between_the_first_and_the_last_of_a_prefix() {
        let cases: [(&[&str], &[&str]); 14] = [
            (&[], &[]),
            (&["INV-7"], &["1 INV-7-INV-7: "]),
            (&["INV-3", "INV-1", "INV-2"], &["3 INV-1-INV-3: "]),
            (&["A01", "A05", "A03"], &["3 A01-A05: A02, A04"]),
            (&["A5", "A1"], &["2 A1-A5: A2-A4 (3)"]),
            (&["A1", "A1", "A3", "A2"], &["4 A1-A3: "]),
            (&["A9", "A11"], &["2 A9-A11: A10"]),
            (&["009", "011"], &["2 009-011: 010"]),
            (
                &["2026/1", "2026/3", "2025/9"],
                &["2 2026/1-2026/3: 2026/2", "1 2025/9-2025/9: "],
            ),
            (&["é1", "é3"], &["2 é1-é3: é2"]),
            (&["X", "", "1A"], &[]),
            (&["N0", "N2"], &["2 N0-N2: N1"]),
            // First and last are as they were written, a missing number is as wide as the others.
            (
                &["INV007", "INV8", "INV11"],
                &["3 INV007-INV11: INV009-INV010 (2)"],
            ),
            (&["B8", "B011", "B13"], &["3 B8-B13: B009-B010 (2), B012"]),
        ];
        for (numbers, expected) in cases {
            assert_eq!(texts(&series(numbers)), expected, "{numbers:?}");
        }
        assert_eq!(series(&["X", "", "1A", "A1"]).others, 3);
    }

    #[test]
    fn a_list_of_gaps_says_if_there_are_more() {
        for (numbers, gaps_max, has_more) in [
            (&["A1", "A2"][..], 0, false),
            (&["A1", "A5"], 1, false),
            (&["A1", "A3", "A5"], 2, false),
            (&["A1", "A3", "A5"], 1, true),
            (&["A1", "A3"], 0, true),
        ] {
            let found = series(numbers).summaries(1, gaps_max);
            assert_eq!(found[0].has_more_gaps(), has_more, "{numbers:?} {gaps_max}");
        }
    }

    #[test]
    fn only_the_last_digits_of_a_long_number_are_its_sequence() {
        let long = "9".repeat(40);
        let found = series(&[&long]).summaries(1, 1);
        assert_eq!(found[0].prefix.len(), 40 - DIGITS_MAX);
        assert_eq!(found[0].last, long);
    }

    #[test]
    fn a_number_that_is_used_elsewhere_fills_its_gap() {
        let mut series = series(&["A1", "A5"]);
        assert_eq!(series.missing_numbers(2), ["A2", "A3"]);
        assert_eq!(series.missing_numbers(9).len(), 3);
        series.mark_used("A3");
        series.mark_used("Z9");
        assert_eq!(texts(&series), ["2 A1-A5: A2, A4"]);
        assert_eq!(series.summaries(1, 1)[0].missing, Some(2));
    }

    #[test]
    fn a_number_fills_its_gap_with_and_without_zeros() {
        let cases: [(&[&str], &[&str], &str, &str); 4] = [
            (
                &["INV007", "INV8", "INV11"],
                &["INV009", "INV9", "INV010", "INV10"],
                "INV9",
                "3 INV007-INV11: INV010",
            ),
            (
                &["INV007", "INV8", "INV11"],
                &["INV009", "INV9", "INV010", "INV10"],
                "INV010",
                "3 INV007-INV11: INV009",
            ),
            (&["A001", "A003"], &["A002", "A2"], "A2", "2 A001-A003: "),
            (
                &["A098", "A100"],
                &["A099", "A99"],
                "A98",
                "2 A098-A100: A099",
            ),
        ];
        for (numbers, looked_for, used, expected) in cases {
            let mut series = series(numbers);
            assert_eq!(series.missing_numbers(9), looked_for, "{numbers:?}");
            series.mark_used(used);
            assert_eq!(texts(&series), [expected], "{numbers:?}");
        }
        // A huge gap hides only numbers of its own series.
        let two = series(&["A1", "A2", "A99", "B1", "B3"]);
        assert_eq!(two.missing_numbers(2), ["B2", "A3"]);
        // A number that is sought in two spellings counts once.
        assert_eq!(series(&["A001", "A9"]).missing_numbers(2).len(), 4);
    }

    #[test]
    fn scattered_numbers_are_counted_and_their_ranges_given_up() {
        let mut series = NumberSeries::default();
        for sequence in 0..u64::try_from(RANGES_MAX).unwrap() + 10 {
            series.add(&format!("A{}", sequence * 2));
        }
        let found = &series.summaries(1, 1)[0];
        assert_eq!((found.missing, found.gaps.len()), (None, 0));
        assert_eq!(found.last, format!("A{}", (RANGES_MAX + 9) * 2));
        assert!(series.ranges <= RANGES_MAX);
        for prefix in 0..SERIES_MAX {
            series.add(&format!("P{prefix}-1"));
        }
        assert_eq!((series.series_count(), series.others), (SERIES_MAX, 1));
    }

    #[test]
    fn all_ranges_are_counted_and_bounded_however_a_number_comes() {
        type Act = fn(&mut NumberSeries, &str);
        let acts: [(&str, Act); 2] = [
            ("add", NumberSeries::add),
            ("fill", NumberSeries::mark_used),
        ];
        // The numbers that there are in steps of four, the number that comes, and how many ranges there are then.
        let cases = [
            (3, "A4", 3),
            (3, "A5", 3),
            (3, "A6", 4),
            (3, "B6", 3),
            (RANGES_MAX, "A1", RANGES_MAX),
            (RANGES_MAX, "A2", 0),
        ];
        for (kept, number, expected) in cases {
            for (name, act) in acts {
                let mut series = NumberSeries::default();
                for sequence in 0..kept {
                    series.add(&format!("A{}", sequence * 4));
                }
                act(&mut series, number);
                let is_new_series = name == "add" && number.starts_with('B');
                let counted: usize = series.series.values().map(Series::range_count).sum();
                let expected = expected + usize::from(is_new_series);
                assert_eq!(
                    (series.ranges, counted),
                    (expected, expected),
                    "{name} {number}"
                );
            }
        }
    }
}
