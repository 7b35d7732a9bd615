//! Reads amounts, quantities and rates that a person typed. Commas are allowed between thousands, as pages write them.
//! A decimal comma is refused: ignoring it would turn `1,5` into 15. The API has a stricter rule of its own.

use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::{Amount, AmountFault};

const FORMAT: &str = "a number written like 1234.50, with commas between thousands only";
/// The number of digits between two commas.
const GROUP_DIGITS: usize = 3;

/// Reads an amount with as many digits as `Amount` allows.
pub(crate) fn parse(typed: &str) -> Result<Amount, FieldRule> {
    let digits = without_commas(typed.trim()).ok_or_else(format_rule)?;
    Amount::parse(&digits).map_err(|fault| match fault {
        AmountFault::NotANumber => format_rule(),
        AmountFault::TooLarge | AmountFault::TooPrecise => {
            FieldRule::other("digits", fault.to_string())
        }
    })
}

/// Reads an amount of money in a currency that has this many digits after the decimal point.
pub(crate) fn parse_money(typed: &str, currency_digits: u32) -> Result<Amount, FieldRule> {
    let amount = parse(typed)?;
    if amount.round_half_up(currency_digits) == amount {
        return Ok(amount);
    }
    let sentence = match currency_digits {
        0 => "must be a whole number in the currency of the invoice".to_owned(),
        digits => format!("must not have more than {digits} digits after the decimal point"),
    };
    Err(FieldRule::other("digits", sentence))
}

fn format_rule() -> FieldRule {
    FieldRule::must_be("number", FORMAT)
}

/// Returns the number without the commas between its thousands; `None` if it has other commas, or anything else than
/// digits, a sign and a decimal point.
fn without_commas(typed: &str) -> Option<String> {
    let unsigned = typed.strip_prefix('-').unwrap_or(typed);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let is_number = is_digits(first) && is_digits(fraction) && unsigned != ".";
    let is_grouped = whole.len() > first.len();
    // `0,500` probably means one half, so a number with commas must not begin with a zero.
    let has_valid_first_group =
        (1..=GROUP_DIGITS).contains(&first.len()) && !first.starts_with('0');
    let has_whole_groups = groups.all(|group| group.len() == GROUP_DIGITS && is_digits(group));
    let is_well_formed = is_number && has_whole_groups && (has_valid_first_group || !is_grouped);
    is_well_formed.then(|| typed.replace(',', ""))
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_between_thousands_only() {
        for (typed, amount) in [
            ("0", "0"),
            ("15", "15"),
            ("1.5", "1.5"),
            ("1234.50", "1234.50"),
            ("1,234.50", "1234.50"),
            ("12,345", "12345"),
            ("1,234,567.123456", "1234567.123456"),
            ("  1,000 ", "1000"),
            ("\u{a0}7\u{a0}", "7"),
            ("-1,075.50", "-1075.50"),
        ] {
            assert_eq!(parse(typed), Ok(Amount::parse(amount).unwrap()), "{typed}");
        }
    }

    #[test]
    fn any_other_text_is_refused_with_an_example() {
        for typed in [
            "1,5",
            "70,5",
            "0,500",
            "1.000,50",
            "1.000.000",
            "1,2,3",
            "1,23",
            "1,2345",
            "1234,567",
            "1,,000",
            ",500",
            "1,000,",
            "1,000.5,0",
            "1 000",
            "1_000",
            "1'000",
            "+5",
            "--5",
            "1e3",
            "",
            "-",
            ".",
            "lots",
            "NGN 5",
            "\u{0661}",
        ] {
            let rule = parse(typed).unwrap_err();
            assert_eq!(rule.id(), "number", "{typed}");
            assert!(rule.to_string().contains("1234.50"), "{typed}: {rule}");
        }
    }

    #[test]
    fn money_has_no_more_digits_than_its_currency() {
        for (typed, currency_digits, rule) in [
            ("10.50", 2, None),
            ("10.500", 2, None),
            ("1,000.55", 2, None),
            ("0.001", 2, Some("digits")),
            ("10.505", 2, Some("digits")),
            ("10", 0, None),
            ("10.00", 0, None),
            ("10.5", 0, Some("digits")),
            ("0.001", 3, None),
            ("0.0000001", 6, Some("digits")),
            ("1000000000000000", 2, Some("digits")),
            ("1,5", 2, Some("number")),
        ] {
            let read = parse_money(typed, currency_digits);
            let found = read.err().map(|fault| fault.id());
            assert_eq!(found, rule, "{typed} with {currency_digits} digits");
        }
    }
}
