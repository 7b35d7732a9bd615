//! Checks of texts, which several field types share. The error of a check is the rule that the text breaks.

use jiff::civil::{Date, Time};

use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::invisible::{is_invisible, is_unprintable};
use crate::domain::party::email::is_email;

/// Checks the length of a text, in characters, and refuses line breaks, other control characters and noncharacters.
pub(crate) fn check_single_line(
    text: &str,
    chars_min: usize,
    chars_max: usize,
) -> Result<String, FieldRule> {
    check_char_count(text, chars_min, chars_max)?;
    if text.chars().any(is_unprintable) {
        return Err(FieldRule::NoControlCharacters);
    }
    Ok(text.to_owned())
}

/// Checks an identifier, such as an invoice number. Refuses characters that are invisible or that change the order of
/// the others, because they make different identifiers look the same.
pub(crate) fn check_identifier(text: &str, chars_max: usize) -> Result<String, FieldRule> {
    let text = check_single_line(text, 0, chars_max)?;
    if text.chars().any(is_invisible) {
        Err(FieldRule::NoInvisibleCharacters)
    } else {
        Ok(text)
    }
}

pub(crate) fn check_char_count(text: &str, min: usize, max: usize) -> Result<(), FieldRule> {
    match text.chars().count() {
        count if count < min => Err(FieldRule::MinChars(min)),
        count if count > max => Err(FieldRule::MaxChars(max)),
        _ => Ok(()),
    }
}

/// Checks a text that may have several lines. Tabs and line breaks are allowed, other control characters and
/// noncharacters are not.
pub(crate) fn check_multiline(
    text: &str,
    chars_min: usize,
    chars_max: usize,
) -> Result<String, FieldRule> {
    check_char_count(text, chars_min, chars_max)?;
    if text
        .chars()
        .any(|letter| is_unprintable(letter) && !"\n\r\t".contains(letter))
    {
        return Err(FieldRule::NoControlCharacters);
    }
    Ok(text.to_owned())
}

pub(crate) fn check_email(text: &str, chars_max: usize) -> Result<String, FieldRule> {
    check_char_count(text, 0, chars_max)?;
    if is_email(text) {
        return Ok(text.to_owned());
    }
    Err(FieldRule::with_expected(
        "email",
        "must be a valid email address",
        "an email address",
    ))
}

/// Checks that a text matches a pattern. Each 9 in the pattern stands for one digit.
pub(crate) fn check_pattern(pattern: &'static str, text: &str) -> Result<(), FieldRule> {
    let mut bytes = text.bytes().zip(pattern.bytes());
    if text.len() == pattern.len()
        && bytes.all(|(byte, expected)| matches_pattern_byte(byte, expected))
    {
        return Ok(());
    }
    Err(FieldRule::Written {
        id: "format",
        format: pattern,
    })
}

/// Returns true if the byte fits the byte of the pattern. Any digit fits a 9; any other byte fits only itself.
fn matches_pattern_byte(byte: u8, expected: u8) -> bool {
    if expected == b'9' {
        byte.is_ascii_digit()
    } else {
        byte == expected
    }
}

/// Returns true if the text consists of exactly `count` ASCII letters.
pub(crate) fn is_letters(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Reads a day that exists in the calendar, written `YYYY-MM-DD`. No calendar has a year 0, and receivers refuse it.
pub(crate) fn parse_date(text: &str) -> Result<Date, FieldRule> {
    let bytes = text.as_bytes();
    let has_hyphens =
        bytes.len() == 10 && bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-');
    let has_digits = [0, 1, 2, 3, 5, 6, 8, 9]
        .into_iter()
        .all(|index| bytes.get(index).is_some_and(u8::is_ascii_digit));
    let calendar_date = if has_hyphens && has_digits {
        text.parse().ok()
    } else {
        None
    };
    calendar_date
        .filter(|date: &Date| date.year() > 0)
        .ok_or(FieldRule::DATE)
}

/// Returns true for a time of day written `HH:mm:ss`. Returns false for a leap second (`:60`), which receivers may be
/// unable to parse.
pub(crate) fn is_clock_time(text: &str) -> bool {
    let parts = text.split(':').map(|part| {
        let has_two_digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        if has_two_digits {
            part.parse::<i8>().ok()
        } else {
            None
        }
    });
    let parts: Option<Vec<i8>> = parts.collect();
    let Some([hour, minute, second]) = parts.as_deref() else {
        return false;
    };
    Time::new(*hour, *minute, *second, 0).is_ok()
}

/// Reads one of a fixed set of words. `allowed` describes the set in the error message.
pub(crate) fn parse_word<T>(
    text: &str,
    parse: fn(&str) -> Option<T>,
    allowed: fn() -> String,
) -> Result<T, FieldRule> {
    parse(text).ok_or_else(|| FieldRule::OneOf(allowed()))
}

pub(crate) fn country_rule() -> FieldRule {
    FieldRule::must_be("country", "a country code of 2 letters")
}

pub(crate) fn currency_rule() -> FieldRule {
    FieldRule::must_be("currency", "a currency code of 3 letters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_at_most_23_59_59() {
        for time in ["00:00:00", "10:30:59", "23:59:59"] {
            assert!(is_clock_time(time), "{time}");
        }
        let odd = [
            "10:30:60",
            "23:59:60",
            "24:00:00",
            "10:60:00",
            "10:30",
            "10:30:00Z",
            "1:30:000",
            "+1:30:00",
        ];
        for time in odd.into_iter().chain([
            "10:30:00:00",
            "",
            " 1:30:00",
            "\u{661}0:30:00",
            "10:30:00.5",
        ]) {
            assert!(!is_clock_time(time), "{time}");
        }
    }

    #[test]
    fn a_date_is_a_day_of_the_calendar_which_has_no_year_0() {
        for (text, is_date) in [
            ("2024-02-29", true),
            ("0001-01-01", true),
            ("9999-12-31", true),
            ("0000-01-01", false),
            ("0000-12-31", false),
            ("2023-02-29", false),
            ("-001-01-01", false),
            ("2026-1-01", false),
            ("2026-01-01T00:00:00", false),
        ] {
            assert_eq!(parse_date(text).is_ok(), is_date, "{text}");
        }
    }

    #[test]
    fn an_identifier_has_no_invisible_and_no_direction_characters() {
        assert_eq!(
            check_identifier("INV 001/\u{e9}-\u{4e2d}", 20).unwrap(),
            "INV 001/\u{e9}-\u{4e2d}"
        );
        for hidden in [
            "\u{200b}",
            "\u{202e}",
            "\u{2066}",
            "\u{200d}",
            "\u{feff}",
            "\u{fe0f}",
            "\u{e0041}",
            "\u{3164}",
        ] {
            let rule = check_identifier(&format!("INV{hidden}001"), 20).unwrap_err();
            assert_eq!(rule.id(), "invisible_characters", "{hidden:?}");
        }
    }
}
