//! Template filters that write times and amounts.

#![expect(
    clippy::inline_always,
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "askama makes a type of each filter and says what it returns"
)]

use std::fmt::Display;

use askama::filters::Safe;
use jiff::Timestamp;

/// Writes a time in UTC, exact to a second.
#[askama::filter_fn]
pub(crate) fn moment(at: &Timestamp, _: &dyn askama::Values) -> askama::Result<Safe<String>> {
    let exact = at.strftime("%Y-%m-%dT%H:%M:%SZ");
    let shown = at.strftime("%Y-%m-%d %H:%M:%S");
    Ok(Safe(format!("<time datetime=\"{exact}\">{shown}</time>")))
}

/// Writes a time in UTC without its year, for dense lists. The title has the whole time.
#[askama::filter_fn]
pub(crate) fn brief(at: &Timestamp, _: &dyn askama::Values) -> askama::Result<Safe<String>> {
    let exact = at.strftime("%Y-%m-%dT%H:%M:%SZ");
    let whole = at.strftime("%Y-%m-%d %H:%M:%S UTC");
    let shown = at.strftime("%d %b %H:%M:%S");
    Ok(Safe(format!(
        "<time datetime=\"{exact}\" title=\"{whole}\">{shown}</time>"
    )))
}

/// Writes a time in UTC as plain text, for places that take no markup.
#[askama::filter_fn]
pub(crate) fn utc(at: &Timestamp, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(at.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// Writes an amount with all its digits, and with commas between thousands.
#[askama::filter_fn]
pub(crate) fn money(amount: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(group_digits(&amount.to_string()))
}

fn group_digits(amount: &str) -> String {
    let (whole, fraction) = amount
        .split_once('.')
        .map_or((amount, None), |(whole, rest)| (whole, Some(rest)));
    let (sign, digits) = whole
        .strip_prefix('-')
        .map_or(("", whole), |digits| ("-", digits));
    let mut grouped = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if let Some(rest) = fraction {
        grouped.push('.');
        grouped.push_str(rest);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_told_apart_and_no_digit_is_lost() {
        for (amount, shown) in [
            ("0", "0"),
            ("999.5", "999.5"),
            ("1000", "1,000"),
            ("-1234567.8901", "-1,234,567.8901"),
            ("100000", "100,000"),
        ] {
            assert_eq!(group_digits(amount), shown);
        }
    }
}
