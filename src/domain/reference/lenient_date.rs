//! Parses a day in other forms than `YYYY-MM-DD`, if the text has only one meaning. `03/04/2026` is refused: it can be
//! the third of April or the fourth of March.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;

/// The accepted years. Any other year is more likely a typo.
const ACCEPTED_YEARS: std::ops::RangeInclusive<i16> = 1970..=2099;
/// The maximum length of a text, in bytes. A longer text is not a date.
const TEXT_BYTES_MAX: usize = 64;
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Returns the day that a text means; `None` if it can mean several days or none. A timestamp must be on the same day
/// in its own time zone and in `zone`.
pub fn parse_day(text: &str, zone: Offset) -> Option<Date> {
    let text = text.trim();
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let found = parse_timestamp_day(text, zone)
        .or_else(|| parse_eight_digits(text))
        .or_else(|| parse_parts(text));
    found.filter(|date| ACCEPTED_YEARS.contains(&date.year()))
}

/// Parses a timestamp such as `2026-01-15T09:30:00+01:00`. The offset may be absent.
fn parse_timestamp_day(text: &str, zone: Offset) -> Option<Date> {
    let written: Date = text.get(..10)?.parse().ok()?;
    let after = text.as_bytes().get(10)?;
    if !matches!(after, b'T' | b't' | b' ') {
        return None;
    }
    let text = text.replacen(' ', "T", 1);
    match text.parse::<Timestamp>() {
        Ok(moment) => (zone.to_datetime(moment).date() == written).then_some(written),
        Err(_) => text.parse::<DateTime>().is_ok().then_some(written),
    }
}

/// Parses eight digits, such as `20260115`.
fn parse_eight_digits(text: &str) -> Option<Date> {
    let is_compact = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_compact.then(|| date_from_numbers(text.get(..4)?, text.get(4..6)?, text.get(6..)?))?
}

/// Parses three parts that are separated by hyphens, slashes, points, commas or blanks.
fn parse_parts(text: &str) -> Option<Date> {
    let separator = text
        .chars()
        .find(|letter| "-/.".contains(*letter) || is_blank(*letter))?;
    let parts: Vec<&str> = if is_blank(separator) {
        text.split(is_blank)
            .filter(|part| !part.is_empty())
            .collect()
    } else {
        text.split(separator).collect()
    };
    let [first, second, third] = parts[..] else {
        return None;
    };
    match (month_number(first), month_number(second)) {
        (Some(month), None) => date_from_numbers(third, month, without_ordinal_ending(second)),
        (None, Some(month)) => date_from_numbers(third, month, without_ordinal_ending(first)),
        (Some(_), Some(_)) => None,
        (None, None) if first.len() == 4 => date_from_numbers(first, second, third),
        (None, None) => parse_day_and_month(first, second, third),
    }
}

fn is_blank(letter: char) -> bool {
    letter == ' ' || letter == ','
}

/// Parses a day and a month in either order, and a year. A number above 12 is the day. Returns `None` if both numbers
/// can be the month and they differ.
fn parse_day_and_month(first: &str, second: &str, year: &str) -> Option<Date> {
    let day_first = date_from_numbers(year, second, first);
    let month_first = date_from_numbers(year, first, second);
    match (day_first, month_first) {
        (Some(one), Some(other)) => (one == other).then_some(one),
        (one, other) => one.or(other),
    }
}

/// Returns the number of a month from its English name or an abbreviation, such as `jan` or `sept`.
fn month_number(text: &str) -> Option<&'static str> {
    const MONTH_NUMBERS: [&str; 12] = [
        "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12",
    ];
    let text = text.trim_end_matches('.').to_ascii_lowercase();
    let place = MONTHS.iter().position(|name| {
        **name == text
            || text.len() == 3 && name.starts_with(&text)
            || text == "sept" && name.starts_with("sept")
    });
    MONTH_NUMBERS.get(place?).copied()
}

/// Removes the ending of an ordinal number: `15th` becomes `15`.
fn without_ordinal_ending(text: &str) -> &str {
    let lower = ["st", "nd", "rd", "th"];
    lower
        .iter()
        .find_map(|ending| text.strip_suffix(ending))
        .unwrap_or(text)
}

fn date_from_numbers(year: &str, month: &str, day: &str) -> Option<Date> {
    if year.len() != 4 {
        return None;
    }
    let month = i8::try_from(parse_number(month, 2)?).ok()?;
    let day = i8::try_from(parse_number(day, 2)?).ok()?;
    Date::new(parse_number(year, 4)?, month, day).ok()
}

fn parse_number(text: &str, digits_max: usize) -> Option<i16> {
    let are_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = are_digits && (1..=digits_max).contains(&text.len());
    is_number.then(|| text.parse::<i16>().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Option<String> {
        parse_day(text, Offset::constant(1)).map(|date| date.to_string())
    }

    #[test]
    fn a_day_that_reads_in_one_way_is_a_day() {
        for text in [
            "2026-1-15",
            "2026/01/15",
            "2026.1.15",
            "20260115",
            "15/01/2026",
            "15-1-2026",
            "15.01.2026",
            "01/15/2026",
            "2026-01-15T09:30:00Z",
            "2026-01-15T09:30:00.123+01:00",
            "2026-01-15T00:00:00",
            "2026-01-15 23:59:59",
            "15 January 2026",
            "15-Jan-2026",
            "Jan 15, 2026",
            "January 15th, 2026",
            " 2026/01/15 ",
        ] {
            assert_eq!(read_text(text).as_deref(), Some("2026-01-15"), "{text}");
        }
        assert_eq!(
            read_text("05/05/2026").as_deref(),
            Some("2026-05-05"),
            "either way the same"
        );
        assert_eq!(read_text("1 Sept 2026").as_deref(), Some("2026-09-01"));
    }

    #[test]
    fn a_day_that_reads_in_two_ways_or_none_is_no_day() {
        for text in [
            "03/04/2026",
            "3.4.2026",
            "03-04-26",
            "15/01/26",
            "2026-13-45",
            "30/02/2026",
            "2026/15/01",
            "2026-01",
            "15012026",
            "today",
            "",
            "Q1 2026 x",
            "1/2/3/2026",
            "15/01-2026",
            "15/Jan/26",
            "May May 2026",
            "2026-01-15X",
            "2026-01-15T25:00:00",
            "0026-01-15",
            "2026-01-15é",
        ] {
            assert_eq!(read_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_moment_near_midnight_is_a_day_only_where_the_calendars_agree() {
        assert_eq!(
            read_text("2026-01-14T23:00:00Z"),
            None,
            "in the zone it is the 15th already"
        );
        assert_eq!(
            read_text("2026-01-14T22:59:59Z").as_deref(),
            Some("2026-01-14")
        );
        assert_eq!(read_text("2026-01-15T00:30:00+14:00"), None);
    }
}
