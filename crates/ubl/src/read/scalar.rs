//! Reads dates, times, numbers and amounts.

use jiff::civil::{Date, Time};
use rust_decimal::Decimal;

use super::Reader;
use crate::element::{CURRENCY, Element};
use crate::fault::Cause;
use crate::rounding::round;

/// The maximum number of digits before and after the decimal point.
const INTEGER_DIGITS_MAX: usize = 15;
const FRACTION_DIGITS_MAX: u32 = 6;
/// The number of digits after the decimal point that are read before the number is rounded. Further digits are cut off.
const FRACTION_BYTES_MAX: usize = 12;
/// The length of `YYYY-MM-DD`.
const DATE_BYTES: usize = 10;

impl Reader<'_> {
    pub(super) fn date_at(&mut self, parent: &Element, path: &str) -> Option<Date> {
        parent.at(path).and_then(|element| self.date(element))
    }

    /// Reads a date. A time zone after it is dropped, and the change is reported.
    pub(super) fn date(&mut self, element: &Element) -> Option<Date> {
        let text = element.folded_text()?;
        let (date, zone) = text.split_at_checked(DATE_BYTES).unwrap_or((&text, ""));
        let Ok(date) = date.parse() else {
            let sentence = format!("“{text}” is no date; one is written like 2026-11-26.");
            self.report_fault(Cause::Malformed, element, sentence);
            return None;
        };
        if !zone.is_empty() {
            self.report_change(
                Cause::Precision,
                element,
                format!("“{zone}” after the date {date} was left out."),
            );
        }
        Some(date)
    }

    /// Reads the time in whole seconds, which is all that the forms take.
    pub(super) fn issue_time(&mut self) -> Option<Time> {
        let element = self.root.at("cbc:IssueTime")?;
        let text = element.folded_text()?;
        let end = text.find(['Z', '+', '-']).unwrap_or(text.len());
        let (clock, zone) = text.split_at(end);
        let Ok(exact) = clock.parse::<Time>() else {
            let sentence = format!("“{text}” is no time; one is written like 13:45:00.");
            self.report_fault(Cause::Malformed, element, sentence);
            return None;
        };
        let time = jiff::civil::time(exact.hour(), exact.minute(), exact.second(), 0);
        if time != exact {
            let sentence =
                format!("The time {exact} became {time}, without the fraction of a second.");
            self.report_change(Cause::Precision, element, sentence);
        }
        if !zone.is_empty() {
            self.report_change(
                Cause::Precision,
                element,
                format!("The zone “{zone}” of the time {time} was left out."),
            );
        }
        Some(time)
    }

    pub(super) fn decimal_at(&mut self, parent: &Element, path: &str) -> Option<Decimal> {
        parent.at(path).and_then(|element| self.decimal(element))
    }

    /// Reads a number that is written as a decimal of XML Schema. Rounds to six decimal digits, and reports this
    /// change.
    pub(super) fn decimal(&mut self, element: &Element) -> Option<Decimal> {
        let text = element.folded_text()?;
        let Some(value) = parse_decimal(&text) else {
            let sentence = format!(
                "“{text}” is no number of at most {INTEGER_DIGITS_MAX} digits before the decimal point."
            );
            self.report_fault(Cause::Malformed, element, sentence);
            return None;
        };
        let rounded = round(value, FRACTION_DIGITS_MAX);
        if rounded != value {
            let sentence = format!(
                "{text} became {rounded}: at most {FRACTION_DIGITS_MAX} digits after the decimal point are kept."
            );
            self.report_change(Cause::Precision, element, sentence);
        }
        Some(rounded)
    }

    pub(super) fn amount_at(
        &mut self,
        parent: &Element,
        path: &str,
        currency: &str,
    ) -> Option<Decimal> {
        parent
            .at(path)
            .and_then(|element| self.amount(element, currency))
    }

    /// Reads an amount. It must be in this currency.
    pub(super) fn amount(&mut self, element: &Element, currency: &str) -> Option<Decimal> {
        match element.attribute(CURRENCY) {
            Some(other) if !other.eq_ignore_ascii_case(currency) => {
                let sentence = format!("The amount is in {other}, the document in {currency}.");
                self.report_fault(Cause::Currency, element, sentence);
                None
            }
            _ => self.decimal(element),
        }
    }

    /// Returns the result of a calculation. Reports a fault if it is too large.
    pub(super) fn require_in_range(
        &mut self,
        element: &Element,
        value: Option<Decimal>,
    ) -> Option<Decimal> {
        if value.is_none() {
            let sentence = "The numbers are too large to be multiplied.".to_owned();
            self.report_fault(Cause::Malformed, element, sentence);
        }
        value
    }
}

fn parse_decimal(text: &str) -> Option<Decimal> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = !(whole.is_empty() && fraction.is_empty())
        && whole
            .bytes()
            .chain(fraction.bytes())
            .all(|byte| byte.is_ascii_digit());
    let whole = whole.trim_start_matches('0');
    if !is_number || whole.len() > INTEGER_DIGITS_MAX {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(FRACTION_BYTES_MAX)];
    let point = if fraction.is_empty() { "" } else { "." };
    let value: Decimal = format!("0{whole}{point}{fraction}").parse().ok()?;
    Some(if text.starts_with('-') { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_those_of_xml_schema() {
        for (text, value) in [
            ("1", "1"),
            ("+1.50", "1.50"),
            ("-.5", "-0.5"),
            ("5.", "5"),
            ("000000000000000000007", "7"),
            ("0.1234567890123456789", "0.123456789012"),
        ] {
            assert_eq!(parse_decimal(text), Some(value.parse().unwrap()), "{text}");
        }
        for text in [
            "",
            ".",
            "-",
            "1e5",
            "1,000",
            "1_0",
            "NaN",
            "1 0",
            "--1",
            "1234567890123456",
        ] {
            assert_eq!(parse_decimal(text), None, "{text}");
        }
    }
}
