//! Checks of texts, which several field types share. The error of a check is the rule that the text breaks.

use jiff::civil::Date;

use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::reference::catalog::ReferenceList;
use crate::http::forms::report::Report;

/// Checks that a code is on one of the authority's lists. A list that was not fetched accepts any code, with a warning.
pub(crate) fn listed(report: &Report<'_>, list: ReferenceList, text: &str) -> Result<String, FieldRule> {
    match report.catalog.has(list, text) {
        Some(false) => return Err(FieldRule::Listed(list.as_str())),
        Some(true) => {}
        None if text.chars().any(char::is_control) => return Err(FieldRule::NoControlCharacters),
        None => report.unchecked(list),
    }
    Ok(text.to_owned())
}

/// Checks the length of a text, in characters, and refuses line breaks and other control characters.
pub(crate) fn line(text: &str, min: usize, max: usize) -> Result<String, FieldRule> {
    chars(text, min, max)?;
    if text.chars().any(char::is_control) {
        return Err(FieldRule::NoControlCharacters);
    }
    Ok(text.to_owned())
}

pub(crate) fn chars(text: &str, min: usize, max: usize) -> Result<(), FieldRule> {
    match text.chars().count() {
        count if count < min => Err(FieldRule::MinChars(min)),
        count if count > max => Err(FieldRule::MaxChars(max)),
        _ => Ok(()),
    }
}

/// Checks that a text matches a pattern. Each 9 in the pattern stands for one digit.
pub(crate) fn matches_pattern(pattern: &'static str, text: &str) -> Result<(), FieldRule> {
    let fits = |byte: u8, expected: u8| {
        if expected == b'9' { byte.is_ascii_digit() } else { byte == expected }
    };
    let mut bytes = text.bytes().zip(pattern.bytes());
    if text.len() == pattern.len() && bytes.all(|pair| fits(pair.0, pair.1)) {
        return Ok(());
    }
    Err(FieldRule::Written { id: "format", format: pattern })
}

/// Returns true if the text consists of exactly `count` ASCII letters.
pub(crate) fn is_letters(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Reads a day that exists in the calendar, written `YYYY-MM-DD`.
pub(crate) fn date(text: &str) -> Result<Date, FieldRule> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_written = bytes.len() == 10 && bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-');
    let has_digits = [0, 1, 2, 3, 5, 6, 8, 9].into_iter().all(is_digit);
    let found = if is_written && has_digits { text.parse().ok() } else { None };
    found.ok_or(FieldRule::DATE)
}

/// Reads one of a fixed set of words. `allowed` describes the set in the error message.
pub(crate) fn word<T>(
    text: &str,
    parse: fn(&str) -> Option<T>,
    allowed: fn() -> String,
) -> Result<T, FieldRule> {
    parse(text).ok_or_else(|| FieldRule::OneOf(allowed()))
}
