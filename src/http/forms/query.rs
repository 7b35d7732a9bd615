//! The query string of lists and feeds. An invalid page number falls back to its default. An invalid position in a feed
//! is a fault, since restarting at the beginning would repeat every event.

use std::convert::Infallible;
use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use database::page::Page;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use url::form_urlencoded;

use crate::domain::events::log_position::{LOG_POSITION_FORM, LogPosition};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId, parse_id};
use crate::http::forms::text_checks;

/// The maximum number of items on one page of a list.
const PER_PAGE_MAX: u64 = 100;

/// The largest page number. No list has so many pages, so this number can replace any larger number.
const PAGE_MAX: u64 = i64::MAX as u64;

/// The decoded name-value pairs of a query string, in their original order.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl<'a> FromIterator<(&'a str, &'a str)> for Query {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        Self(
            pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }
}

impl Query {
    pub(crate) fn from_text(text: &str) -> Self {
        Self(
            form_urlencoded::parse(text.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    /// Returns the value of the last pair with this name; `None` if it contains a NUL, which the database cannot store.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let pair = self.0.iter().rev().find(|(key, _)| key == name);
        pair.map(|(_, value)| value.as_str())
            .filter(|value| !value.contains('\0'))
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the trimmed value of the last pair with this name; `None` if it is blank. Replaces each NUL, which the
    /// database cannot store.
    pub(crate) fn trimmed_text(&self, name: &str) -> Option<String> {
        let (_, value) = self.0.iter().rev().find(|(key, _)| key == name)?;
        let text = value.trim().replace('\0', "\u{fffd}");
        (!text.is_empty()).then_some(text)
    }

    /// Returns the value as a whole number. Any value other than a whole number of at least `min` is a fault.
    pub(crate) fn whole_number(&self, name: &str, min: i64) -> Result<Option<i64>, Fault> {
        let Some((_, text)) = self.0.iter().rev().find(|(key, _)| key == name) else {
            return Ok(None);
        };
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_digits
            .then(|| text.parse().ok())
            .flatten()
            .filter(|number| *number >= min);
        number.map(Some).ok_or_else(|| {
            Fault::field(
                name,
                FieldRule::must_be("integer", format!("a whole number of at least {min}")),
            )
        })
    }

    /// Returns the value as one of a fixed set of words, which `allowed` describes. Any other word is a fault, since a
    /// list without this filter would show unwanted items.
    pub(crate) fn word<T>(
        &self,
        name: &str,
        parse: fn(&str) -> Option<T>,
        allowed: fn() -> String,
    ) -> Result<Option<T>, Fault> {
        let Some(text) = self.filled_value(name) else {
            return Ok(None);
        };
        text_checks::parse_word(text, parse, allowed)
            .map(Some)
            .map_err(|rule| Fault::field(name, rule))
    }

    /// Returns the value as a log position: an event number or a timestamp.
    pub(crate) fn log_position(&self, name: &str) -> Result<Option<LogPosition>, Fault> {
        let Some(text) = self.filled_value(name) else {
            return Ok(None);
        };
        // The timestamp's offset may have a plus sign. A plus sign that was not percent-encoded arrives as a blank.
        let position =
            LogPosition::parse(text).or_else(|| LogPosition::parse(&text.replace(' ', "+")));
        position
            .map(Some)
            .ok_or_else(|| Fault::field(name, FieldRule::must_be("format", LOG_POSITION_FORM)))
    }

    /// Returns the value as an RFC 3339 timestamp.
    pub(crate) fn moment(&self, name: &str) -> Result<Option<Timestamp>, Fault> {
        let Some(text) = self.filled_value(name) else {
            return Ok(None);
        };
        // The timestamp's offset may have a plus sign. A plus sign that was not percent-encoded arrives as a blank.
        let timestamp = text.parse().or_else(|_| text.replace(' ', "+").parse());
        timestamp
            .map(Some)
            .map_err(|_| Fault::field(name, FieldRule::MOMENT))
    }

    /// Returns the value as a time: an RFC 3339 timestamp, or a day or a time without an offset, which is UTC.
    pub(crate) fn utc_moment(&self, name: &str) -> Result<Option<Timestamp>, Fault> {
        let without_offset = self
            .filled_value(name)
            .and_then(|text| text.parse::<DateTime>().ok())
            .and_then(|time| time.to_zoned(TimeZone::UTC).ok());
        match without_offset {
            Some(time) if self.moment(name).is_err() => Ok(Some(time.timestamp())),
            _ => self.moment(name),
        }
    }

    /// Returns the value as a boolean; false if it is absent. Any word other than true, false, 1 or 0 is a fault.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Fault> {
        match self
            .filled_value(name)
            .map(str::to_ascii_lowercase)
            .as_deref()
        {
            Some("true" | "1") => Ok(true),
            None | Some("false" | "0") => Ok(false),
            Some(_) => Err(Fault::field(
                name,
                FieldRule::must_be("boolean", "true or false"),
            )),
        }
    }

    /// Returns the trimmed value of the last pair with this name; `None` if it is blank.
    fn filled_value(&self, name: &str) -> Option<&str> {
        let pair = self.0.iter().rev().find(|(key, _)| key == name);
        pair.map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    }

    /// Returns the value as a day. Any other text is a fault, since a list without the filter would be wrong.
    pub(crate) fn date(&self, name: &str) -> Result<Option<Date>, Fault> {
        let Some(text) = self.filled_value(name) else {
            return Ok(None);
        };
        text_checks::parse_date(text)
            .map(Some)
            .map_err(|rule| Fault::field(name, rule))
    }

    /// Returns the value, a month, as the first day of the month. Any text that is no month is a fault.
    pub(crate) fn month(&self, name: &str) -> Result<Option<Date>, Fault> {
        let Some(text) = self.filled_value(name) else {
            return Ok(None);
        };
        let first_day = text_checks::parse_date(&format!("{text}-01")).ok();
        first_day.map(Some).ok_or_else(|| {
            let rule = FieldRule::must_be("month", "a month written YYYY-MM");
            Fault::field(name, rule)
        })
    }

    /// Returns the value as a taxpayer's id. A value that is not a number becomes 0, which matches no taxpayer.
    pub(crate) fn taxpayer_id(&self, name: &str) -> Option<TaxpayerId> {
        self.filled_value(name)
            .map(|text| TaxpayerId(parse_id(text).unwrap_or(0)))
    }

    /// Returns the value as a taxpayer's id. A value that is not a number is a fault.
    pub(crate) fn checked_taxpayer_id(&self, name: &str) -> Result<Option<TaxpayerId>, Fault> {
        let Some(text) = self.filled_value(name) else {
            return Ok(None);
        };
        let id = parse_id(text).map(TaxpayerId);
        id.map(Some).ok_or_else(|| {
            let rule = FieldRule::must_be("integer", "the id of a taxpayer, a number");
            Fault::field(name, rule)
        })
    }

    /// Returns the value as an integrator's id. A value that is not a number becomes 0, which matches no integrator.
    pub(crate) fn integrator_id(&self, name: &str) -> Option<IntegratorId> {
        self.filled_value(name)
            .map(|text| IntegratorId(parse_id(text).unwrap_or(0)))
    }

    pub(crate) fn page(&self, per_page_default: u64) -> Page {
        Page {
            number: self.positive_number("page", PAGE_MAX).unwrap_or(1),
            per_page: self
                .positive_number("per_page", PER_PAGE_MAX)
                .unwrap_or(per_page_default),
        }
    }

    /// Returns the value as a whole number of at least 1; `max` if the number is larger. `None` if the value is absent
    /// or no such number.
    fn positive_number(&self, name: &str, max: u64) -> Option<u64> {
        let digits = self.text(name)?.trim();
        let is_whole = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        match digits.parse::<u64>() {
            Ok(0) => None,
            Ok(number) => Some(number.min(max)),
            Err(_) => is_whole.then_some(max),
        }
    }
}

impl FromRequest for Query {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self::from_text(request.query_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_an_offset_is_utc() {
        let read = |text: &str| {
            let query = Query::from_text(&format!("from={text}"));
            query
                .utc_moment("from")
                .map(|at| at.map(|at| at.to_string()))
        };
        let some = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(read("2026-01-15"), some("2026-01-15T00:00:00Z"));
        assert_eq!(read("2026-01-15T10:30"), some("2026-01-15T10:30:00Z"));
        assert_eq!(
            read("2026-01-15T10:30:00%2B01:00"),
            some("2026-01-15T09:30:00Z")
        );
        assert_eq!(read(""), Ok(None));
        assert!(read("yesterday").is_err());
    }

    #[test]
    fn a_checked_id_of_a_taxpayer_is_a_number() {
        let read = |text: &str| {
            let query = Query::from_text(&format!("taxpayer_id={text}"));
            query
                .checked_taxpayer_id("taxpayer_id")
                .map_err(|fault| fault.rule())
        };
        assert_eq!(read("7"), Ok(Some(TaxpayerId(7))));
        assert_eq!(read(""), Ok(None));
        for odd in ["abc", "0", "-1", "1.5", "99999999999999999999"] {
            assert_eq!(read(odd), Err("integer"), "{odd}");
        }
    }

    #[test]
    fn a_month_is_its_first_day() {
        let read = |text: &str| {
            let query = Query::from_text(&format!("month={text}"));
            query.month("month").map_err(|fault| fault.rule())
        };
        assert_eq!(read("2026-02"), Ok(Some(Date::constant(2026, 2, 1))));
        assert_eq!(read("+2026-12+"), Ok(Some(Date::constant(2026, 12, 1))));
        assert_eq!(read(""), Ok(None));
        for odd in [
            "2026-13",
            "2026-00",
            "2026-1",
            "26-01",
            "2026-01-01",
            "01-2026",
            "now",
            "%00",
            "-999-01",
        ] {
            assert_eq!(read(odd), Err("month"), "{odd}");
        }
    }

    #[test]
    fn an_odd_page_falls_back_to_its_default() {
        let first = Page {
            number: 1,
            per_page: 10,
        };
        for text in [
            "",
            "page=0",
            "page=-1&per_page=0",
            "page=-1&per_page=-5",
            "page=abc&per_page=x",
            "page=x&per_page=",
            "page=1.5&per_page=2.5",
            "unknown=1&page=1",
            "%FF=%00&&=",
            "page=1.5",
        ] {
            assert_eq!(Query::from_text(text).page(10), first, "{text}");
        }
        assert_eq!(
            Query::from_text("page=3&per_page=25").page(10),
            Page {
                number: 3,
                per_page: 25
            }
        );
    }

    #[test]
    fn a_page_number_beyond_every_list_does_not_become_the_first_page() {
        for (given, number) in [
            ("7", 7),
            ("007", 7),
            ("4294967296", 4_294_967_296),
            ("99999999999999", 99_999_999_999_999),
            ("9223372036854775807", PAGE_MAX),
            ("18446744073709551616", PAGE_MAX),
            (&"9".repeat(500), PAGE_MAX),
        ] {
            let page = Query::from_text(&format!("page={given}")).page(10);
            assert_eq!(page.number, number, "{given}");
        }
    }

    #[test]
    fn per_page_is_clamped() {
        for (given, used) in [("1", 1), ("100", 100), ("101", 100), ("1000000", 100)] {
            assert_eq!(
                Query::from_text(&format!("per_page={given}"))
                    .page(10)
                    .per_page,
                used,
                "{given}"
            );
        }
        for many in [
            "4000000000",
            "4294967296",
            "18446744073709551616",
            &"9".repeat(500),
        ] {
            assert_eq!(
                Query::from_text(&format!("per_page={many}"))
                    .page(15)
                    .per_page,
                100,
                "{many}"
            );
        }
        for odd in ["0", "00", "-5", "1e3", "99999999999999999999x", "\u{0663}"] {
            assert_eq!(
                Query::from_text(&format!("per_page={odd}"))
                    .page(15)
                    .per_page,
                15,
                "{odd}"
            );
        }
    }

    #[test]
    fn a_whole_number_is_read_exactly_or_refused() {
        let whole = |text: &str| {
            Query::from_text(text)
                .whole_number("after", 0)
                .map_err(|fault| fault.to_string())
        };
        assert_eq!(whole(""), Ok(None));
        assert_eq!(whole("after=1&after=99999999999"), Ok(Some(99_999_999_999)));
        for odd in [
            "",
            "x",
            "-1",
            "%2B1",
            "1.5",
            "+1",
            "%00",
            "NaN",
            "1e3",
            "99999999999999999999",
        ] {
            let expected = Err("The after field must be a whole number of at least 0.".to_owned());
            assert_eq!(whole(&format!("after={odd}")), expected, "{odd:?}");
        }
        assert!(
            Query::from_text("limit=0")
                .whole_number("limit", 1)
                .is_err()
        );
    }

    #[test]
    fn a_flag_is_yes_or_no_and_nothing_else() {
        let flag = |text: &str| {
            Query::from_text(text)
                .flag("grade")
                .map_err(|fault| fault.rule())
        };
        for (text, expected) in [
            ("", Ok(false)),
            ("grade=", Ok(false)),
            ("grade=true", Ok(true)),
            ("grade=TRUE", Ok(true)),
            ("grade=1", Ok(true)),
            ("grade=1&grade=0", Ok(false)),
            ("grade=false", Ok(false)),
            ("grade=yes", Err("boolean")),
            ("grade=%00", Err("boolean")),
        ] {
            assert_eq!(flag(text), expected, "{text}");
        }
    }

    #[test]
    fn a_value_is_decoded() {
        assert_eq!(
            Query::from_text("search=a%26b+c").text("search"),
            Some("a&b c")
        );
    }
}
