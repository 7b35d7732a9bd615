//! Rule violations of texts, and the checks that several field types share.

use jiff::civil::Date;

use crate::domain::reference::catalog::ReferenceList;
use crate::http::forms::report::Report;

/// A violated rule: its id and the rest of the sentence.
pub(crate) struct RuleViolation {
    pub(crate) rule: &'static str,
    pub(crate) what: String,
}

pub(crate) const CONTROL: (&str, &str) = ("control_characters", "must not contain control characters");

impl RuleViolation {
    pub(crate) fn new(rule: &'static str, what: impl Into<String>) -> Self {
        Self { rule, what: what.into() }
    }
}

impl From<(&'static str, &'static str)> for RuleViolation {
    fn from((rule, what): (&'static str, &'static str)) -> Self {
        Self::new(rule, what)
    }
}

pub(crate) fn violation(rule: &'static str, what: &'static str) -> RuleViolation {
    RuleViolation::new(rule, what)
}

/// Checks that a code is on a list. Without a snapshot of the list any text is accepted, with a warning.
pub(crate) fn listed(report: &Report<'_>, list: ReferenceList, text: &str) -> Result<String, RuleViolation> {
    match report.catalog.has(list, text) {
        Some(false) => return Err(RuleViolation::new("exists", format!("must exist in {list}"))),
        Some(true) => {}
        None if text.chars().any(char::is_control) => return Err(CONTROL.into()),
        None => report.unchecked(list),
    }
    Ok(text.to_owned())
}

pub(crate) fn line(text: &str, min: usize, max: usize) -> Result<String, RuleViolation> {
    chars(text, min, max)?;
    if text.chars().any(char::is_control) { Err(CONTROL.into()) } else { Ok(text.to_owned()) }
}

pub(crate) fn chars(text: &str, min: usize, max: usize) -> Result<(), RuleViolation> {
    let count = text.chars().count();
    if count < min {
        return Err(RuleViolation::new("min", format!("must be at least {min} characters")));
    }
    if count > max {
        return Err(RuleViolation::new("max", format!("must not be greater than {max} characters")));
    }
    Ok(())
}

pub(crate) fn matches_pattern(pattern: &str, text: &str) -> Result<(), RuleViolation> {
    let fits = |(byte, described): (u8, u8)| {
        if described == b'9' { byte.is_ascii_digit() } else { byte == described }
    };
    if text.len() == pattern.len() && text.bytes().zip(pattern.bytes()).all(fits) {
        return Ok(());
    }
    Err(RuleViolation::new("format", format!("must be written {pattern}")))
}

pub(crate) fn strict_date(text: &str) -> Option<Date> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_written = bytes.len() == 10 && bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-');
    let has_digits = [0, 1, 2, 3, 5, 6, 8, 9].into_iter().all(is_digit);
    (is_written && has_digits).then(|| text.parse().ok())?
}
