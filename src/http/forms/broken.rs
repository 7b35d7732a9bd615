//! What a text may be: a rule that a value breaks, and the checks that several kinds of fields share.

use jiff::civil::Date;

use crate::domain::reference::catalog::ReferenceList;
use crate::http::forms::report::Report;

/// A rule that a value breaks: its id and the rest of the sentence.
pub(super) struct Broken {
    pub(super) rule: &'static str,
    pub(super) what: String,
}

pub(super) const CONTROL: (&str, &str) = ("control_characters", "must not contain control characters");

impl Broken {
    pub(super) fn new(rule: &'static str, what: impl Into<String>) -> Self {
        Self { rule, what: what.into() }
    }
}

impl From<(&'static str, &'static str)> for Broken {
    fn from((rule, what): (&'static str, &'static str)) -> Self {
        Self::new(rule, what)
    }
}

pub(super) fn fails(rule: &'static str, what: &'static str) -> Broken {
    Broken::new(rule, what)
}

/// A code of a list; where there is no snapshot of the list, any text is one, with a warning.
pub(super) fn listed(report: &Report<'_>, list: ReferenceList, text: &str) -> Result<String, Broken> {
    match report.catalog.has(list, text) {
        Some(false) => return Err(Broken::new("exists", format!("must exist in {list}"))),
        Some(true) => {}
        None if text.chars().any(char::is_control) => return Err(CONTROL.into()),
        None => report.unchecked(list),
    }
    Ok(text.to_owned())
}

pub(super) fn line(text: &str, min: usize, max: usize) -> Result<String, Broken> {
    chars(text, min, max)?;
    if text.chars().any(char::is_control) { Err(CONTROL.into()) } else { Ok(text.to_owned()) }
}

pub(super) fn chars(text: &str, min: usize, max: usize) -> Result<(), Broken> {
    let count = text.chars().count();
    if count < min {
        return Err(Broken::new("min", format!("must be at least {min} characters")));
    }
    if count > max {
        return Err(Broken::new("max", format!("must not be greater than {max} characters")));
    }
    Ok(())
}

pub(super) fn drawn_as(picture: &str, text: &str) -> Result<(), Broken> {
    let fits = |(byte, drawn): (u8, u8)| if drawn == b'9' { byte.is_ascii_digit() } else { byte == drawn };
    if text.len() == picture.len() && text.bytes().zip(picture.bytes()).all(fits) {
        return Ok(());
    }
    Err(Broken::new("format", format!("must be written {picture}")))
}

pub(crate) fn strict_date(text: &str) -> Option<Date> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_written = bytes.len() == 10 && bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-');
    let has_digits = [0, 1, 2, 3, 5, 6, 8, 9].into_iter().all(is_digit);
    (is_written && has_digits).then(|| text.parse().ok())?
}
