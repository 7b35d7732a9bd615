//! Exact amounts, parsed from digits and never through a float. Only `round_half_up` rounds.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use rust_decimal::{Decimal, RoundingStrategy};
use serde::{Deserialize, Serialize};

/// The maximum number of digits of an amount before the decimal point.
pub const INTEGER_DIGITS_MAX: u32 = 15;
/// The maximum number of digits of an amount after the decimal point.
pub const FRACTION_DIGITS_MAX: u32 = 6;
/// Two totals count as equal if they differ by no more than this (spec.md, "Limits").
pub const TOLERANCE: Amount = Amount::HUNDREDTH;

/// An exact decimal: an amount of money, a quantity or a rate.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Amount(#[serde(with = "rust_decimal::serde::arbitrary_precision")] Decimal);

/// The reason why a number is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmountFault {
    #[error("is not a decimal number")]
    NotANumber,
    #[error("has more than {INTEGER_DIGITS_MAX} digits before the decimal point")]
    TooLarge,
    #[error("has more than {FRACTION_DIGITS_MAX} digits after the decimal point")]
    TooPrecise,
}

impl Amount {
    pub const ZERO: Self = Self(Decimal::ZERO);
    pub const HUNDREDTH: Self = Self(Decimal::from_parts(1, 0, 0, false, 2));
    pub const ONE_HUNDRED: Self = Self(Decimal::ONE_HUNDRED);

    /// Parses the digits of a JSON number, with or without an exponent.
    pub fn parse(digits: &str) -> Result<Self, AmountFault> {
        let value = match digits.split_once(['e', 'E']) {
            None => parse_exact(without_excess_zeros(digits))?,
            Some((mantissa, exponent)) => parse_with_exponent(mantissa, exponent)?,
        };
        let normal = value.normalize();
        if normal.scale() > FRACTION_DIGITS_MAX {
            return Err(AmountFault::TooPrecise);
        }
        if normal.abs() >= Decimal::from(10_i64.pow(INTEGER_DIGITS_MAX)) {
            return Err(AmountFault::TooLarge);
        }
        Ok(Self(if value.scale() > FRACTION_DIGITS_MAX {
            normal
        } else {
            value
        }))
    }

    pub fn is_negative(self) -> bool {
        self.0.is_sign_negative() && !self.0.is_zero()
    }

    /// Returns the amount without its sign.
    #[must_use]
    pub fn abs(self) -> Self {
        Self(self.0.abs())
    }

    pub fn is_zero(self) -> bool {
        self.0.is_zero()
    }

    pub fn plus(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    pub fn minus(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    pub fn times(self, other: Self) -> Option<Self> {
        self.0.checked_mul(other.0).map(Self)
    }

    /// Divides. Returns `None` if `other` is zero or the result is too large.
    pub fn divided_by(self, other: Self) -> Option<Self> {
        self.0.checked_div(other.0).map(Self)
    }

    /// Returns `self` percent of `whole`; `None` if the result is too large.
    pub fn percent_share(self, whole: Self) -> Option<Self> {
        whole
            .0
            .checked_mul(self.0)?
            .checked_div(Decimal::ONE_HUNDRED)
            .map(Self)
    }

    /// Rounds to this number of digits after the decimal point. A half is rounded away from zero.
    #[must_use]
    pub fn round_half_up(self, digits: u32) -> Self {
        Self(
            self.0
                .round_dp_with_strategy(digits, RoundingStrategy::MidpointAwayFromZero),
        )
    }

    /// True if the amount cannot be written with this number of digits after the decimal point. Zeros at its end do not
    /// count.
    pub fn has_more_digits(self, digits: u32) -> bool {
        self.0.normalize().scale() > digits
    }

    /// Cuts the amount off after this number of digits behind the decimal point, without rounding.
    fn truncate(self, digits: u32) -> Self {
        Self(
            self.0
                .round_dp_with_strategy(digits, RoundingStrategy::ToZero),
        )
    }

    /// Returns the same amount with at least this many digits after the decimal point.
    #[must_use]
    pub fn with_digits(self, digits: u32) -> Self {
        let mut value = self.0;
        if value.scale() < digits {
            value.rescale(digits);
        }
        Self(value)
    }

    /// Writes the amount for people: with at least two digits after the decimal point, and commas between thousands.
    pub fn to_grouped_text(self) -> String {
        self.to_currency_text(2)
    }

    /// Writes the amount for people: with at least the digits of its currency, and commas between thousands.
    pub fn to_currency_text(self, digits: u32) -> String {
        group_digits(&self.with_digits(digits).to_string())
    }

    /// Returns the smallest amount with this number of digits after the decimal point: 0.01 for two.
    pub fn smallest_amount(digits: u32) -> Self {
        Self(Decimal::new(1, digits))
    }

    /// True if two totals differ by no more than `TOLERANCE`.
    pub fn is_within_tolerance(self, other: Self) -> bool {
        self.is_within(TOLERANCE, other)
    }

    /// True if two amounts differ by no more than `tolerance`.
    pub fn is_within(self, tolerance: Self, other: Self) -> bool {
        self.minus(other)
            .is_some_and(|difference| difference.0.abs() <= tolerance.0)
    }

    pub fn sum(amounts: impl IntoIterator<Item = Self>) -> Option<Self> {
        amounts.into_iter().try_fold(Self::ZERO, Self::plus)
    }
}

/// Rounds amounts to this number of digits so that they add up to `total` exactly (largest remainder method). Each
/// amount is rounded down. The missing units of the last digit then go, one each, to the amounts that lost most. If
/// `total` is far from the sum of the amounts, the largest amount takes the rest. Returns `None` if a sum is too large.
pub fn apportion(total: Amount, exact: &[Amount], digits: u32) -> Option<Vec<Amount>> {
    let unit = Amount::smallest_amount(digits);
    let mut parts: Vec<_> = exact.iter().map(|amount| amount.truncate(digits)).collect();
    let mut missing = total.minus(Amount::sum(parts.iter().copied())?)?;
    let mut by_loss: Vec<_> = (0..parts.len()).collect();
    by_loss.sort_by_key(|at| {
        let lost = exact.get(*at).zip(parts.get(*at));
        Reverse(lost.and_then(|(exact, part)| exact.minus(*part)))
    });
    for at in by_loss {
        if missing < unit {
            break;
        }
        let part = parts.get_mut(at)?;
        *part = part.plus(unit)?;
        missing = missing.minus(unit)?;
    }
    if let Some(largest) = parts.iter_mut().max() {
        *largest = largest.plus(missing)?;
    }
    Some(parts)
}

/// Writes an amount with all its digits, and with commas between thousands.
pub fn group_digits(amount: &str) -> String {
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

/// Drops zeros at the end of a fraction that has more digits than allowed. Other fractions keep their zeros, because an
/// amount is shown as it was sent.
fn without_excess_zeros(digits: &str) -> &str {
    match digits.split_once('.') {
        Some((_, fraction)) if fraction.len() > FRACTION_DIGITS_MAX as usize => {
            digits.trim_end_matches('0').trim_end_matches('.')
        }
        _ => digits,
    }
}

fn parse_exact(digits: &str) -> Result<Decimal, AmountFault> {
    Decimal::from_str_exact(digits).map_err(|fault| match fault {
        rust_decimal::Error::Underflow | rust_decimal::Error::ScaleExceedsMaximumPrecision(_) => {
            AmountFault::TooPrecise
        }
        rust_decimal::Error::ExceedsMaximumPossibleValue => AmountFault::TooLarge,
        _ => parse_fault(digits),
    })
}

/// Returns why the text is refused: it has too many digits, or it is no number. `rust_decimal` reports the same error
/// for both.
fn parse_fault(digits: &str) -> AmountFault {
    let unsigned = digits.trim_start_matches('-');
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if unsigned.is_empty()
        || !whole
            .chars()
            .chain(fraction.chars())
            .all(|c| c.is_ascii_digit())
    {
        AmountFault::NotANumber
    } else if whole.len() > INTEGER_DIGITS_MAX as usize {
        AmountFault::TooLarge
    } else {
        AmountFault::TooPrecise
    }
}

/// Parses a number with an exponent, such as `12.5e3`. Moving the decimal point is exact, so no digit is lost.
fn parse_with_exponent(mantissa: &str, exponent: &str) -> Result<Decimal, AmountFault> {
    let mantissa = parse_exact(mantissa)?;
    if mantissa.is_zero() {
        return Ok(Decimal::ZERO);
    }
    let sign = exponent.starts_with('-');
    let power: u32 = exponent
        .trim_start_matches(['-', '+'])
        .parse()
        .map_err(|_| {
            if sign {
                AmountFault::TooPrecise
            } else {
                AmountFault::TooLarge
            }
        })?;
    let factor = 10_i64.checked_pow(power).map(Decimal::from);
    if sign {
        let value = factor
            .and_then(|factor| mantissa.checked_div(factor))
            .ok_or(AmountFault::TooPrecise)?;
        let back = factor.and_then(|factor| value.checked_mul(factor));
        return if back == Some(mantissa) {
            Ok(value)
        } else {
            Err(AmountFault::TooPrecise)
        };
    }
    factor
        .and_then(|factor| mantissa.checked_mul(factor))
        .ok_or(AmountFault::TooLarge)
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Amount {
    type Err = AmountFault;

    /// Parses the output of `Display`. A sum may have more digits than `Amount::parse` accepts from a caller.
    fn from_str(text: &str) -> Result<Self, AmountFault> {
        parse_exact(text).map(Self)
    }
}

impl From<Amount> for Decimal {
    fn from(amount: Amount) -> Self {
        amount.0
    }
}

impl From<i64> for Amount {
    fn from(whole: i64) -> Self {
        Self(Decimal::from(whole))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    #[test]
    fn rounded_parts_add_up_to_their_total() {
        let cases: [(&str, u32, &[&str], &[&str]); 7] = [
            (
                "1",
                2,
                &["0.333333", "0.333333", "0.333334"],
                &["0.33", "0.33", "0.34"],
            ),
            ("0.01", 2, &["0.005", "0.005"], &["0.01", "0.00"]),
            ("100", 0, &["33.4", "66.6"], &["33", "67"]),
            ("7.5", 2, &["7.5"], &["7.5"]),
            ("0", 2, &[], &[]),
            ("9", 2, &["7.5"], &["9"]),
            ("7", 2, &["7.5", "1.001"], &["6.00", "1.00"]),
        ];
        for (total, digits, exact, parts) in cases {
            let amounts = |texts: &[&str]| -> Vec<_> {
                texts
                    .iter()
                    .map(|text| Amount::parse(text).unwrap())
                    .collect()
            };
            let found = apportion(Amount::parse(total).unwrap(), &amounts(exact), digits);
            assert_eq!(found, Some(amounts(parts)), "{total}");
        }
    }

    #[test]
    fn digits_are_read_exactly() {
        for text in [
            "0",
            "0.10",
            "100.00",
            "-3.5",
            "999999999999999.999999",
            "1e3",
            "1.25e2",
            "125e-2",
        ] {
            assert!(Amount::parse(text).is_ok(), "{text}");
        }
        assert_eq!(
            Amount::parse("0.1")
                .unwrap()
                .plus(Amount::parse("0.2").unwrap()),
            Amount::parse("0.3").ok()
        );
        assert_eq!(Amount::parse("1.25e2").unwrap(), Amount::from(125));
    }

    #[test]
    fn an_amount_out_of_range_is_refused_with_its_reason() {
        assert_eq!(Amount::parse("1e400"), Err(AmountFault::TooLarge));
        assert_eq!(
            Amount::parse("1e99999999999999"),
            Err(AmountFault::TooLarge)
        );
        assert_eq!(
            Amount::parse("1e-99999999999999"),
            Err(AmountFault::TooPrecise)
        );
        assert_eq!(Amount::parse("1e-7"), Err(AmountFault::TooPrecise));
        assert_eq!(Amount::parse(&"9".repeat(40)), Err(AmountFault::TooLarge));
        assert_eq!(
            Amount::parse(&format!("0.{}", "1".repeat(40))),
            Err(AmountFault::TooPrecise)
        );
        assert_eq!(
            Amount::parse("1000000000000000"),
            Err(AmountFault::TooLarge)
        );
        assert_eq!(Amount::parse("NaN"), Err(AmountFault::NotANumber));
    }

    #[test]
    fn trailing_zeros_do_not_count_as_precision() {
        assert_eq!(
            Amount::parse("1.50000000").unwrap(),
            Amount::parse("1.5").unwrap()
        );
        assert_eq!(
            Amount::parse(&format!("1.{}", "0".repeat(40))).unwrap(),
            Amount::from(1)
        );
        assert_eq!(Amount::parse("100.00").unwrap().to_string(), "100.00");
    }

    #[test]
    fn half_is_rounded_up() {
        assert_eq!(
            Amount::parse("2.345").unwrap().round_half_up(2).to_string(),
            "2.35"
        );
        assert_eq!(
            Amount::parse("2.344999")
                .unwrap()
                .round_half_up(2)
                .to_string(),
            "2.34"
        );
    }

    #[test]
    fn totals_agree_within_a_hundredth() {
        let hundred = Amount::from(100);
        assert!(hundred.is_within_tolerance(Amount::parse("100.01").unwrap()));
        assert!(!hundred.is_within_tolerance(Amount::parse("100.011").unwrap()));
    }

    proptest! {
        #[test]
        fn an_amount_survives_text_and_json(units in -999_999_999_999_999_i64..999_999_999_999_999, scale in 0_u32..=6) {
            let amount = Amount(Decimal::new(units, scale));
            prop_assert_eq!(amount.to_string().parse::<Amount>().unwrap(), amount);
            let json = serde_json::to_string(&amount).unwrap();
            prop_assert_eq!(strict_json::from_trusted::<Amount>(&json).unwrap(), amount);
            prop_assert_eq!(Amount::parse(&json).unwrap(), amount);
        }

        #[test]
        fn addition_has_no_drift(cents in prop::collection::vec(0_i64..1_000_000, 0..200)) {
            let sum = Amount::sum(cents.iter().map(|c| Amount(Decimal::new(*c, 2)))).unwrap();
            prop_assert_eq!(sum, Amount(Decimal::new(cents.iter().sum(), 2)));
        }
    }
}
