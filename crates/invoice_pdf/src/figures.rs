//! Numbers as they are printed: exact, with separators, never through a float.

use rust_decimal::Decimal;

/// Writes an amount with at least as many decimal digits as its currency has. More digits are kept unless they are
/// zeros.
pub fn write_amount(amount: Decimal, currency: &str) -> String {
    write_decimal(amount, currency_digits(currency))
}

/// Writes a quantity or rate without trailing zeros.
pub fn write_number(number: Decimal) -> String {
    write_decimal(number, 0)
}

/// Writes a percentage such as 7.5 %. No line may end at its space.
pub fn write_percent(percent: Decimal) -> String {
    format!("{}\u{a0}%", write_number(percent))
}

fn write_decimal(number: Decimal, digits_min: u32) -> String {
    let number = number.normalize();
    let digits = usize::try_from(number.scale().max(digits_min)).unwrap_or_default();
    // A precision in the format would make a number of 29 digits longer than a `Decimal` can print.
    let plain = number.abs().to_string();
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut text = String::with_capacity(plain.len() + plain.len() / 3 + 4);
    if number.is_sign_negative() && !number.is_zero() {
        text.push('-');
    }
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if digits > 0 {
        text.push('.');
        text.push_str(fraction);
        text.extend(std::iter::repeat_n('0', digits - fraction.len()));
    }
    text
}

/// Returns the number of decimal digits of amounts in this currency, from ISO 4217.
fn currency_digits(currency: &str) -> u32 {
    match currency {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX"
        | "UYI" | "VND" | "VUV" | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        "CLF" | "UYW" => 4,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn an_amount_has_separators_and_the_digits_of_its_currency() {
        for (amount, currency, text) in [
            ("450000", "NGN", "450,000.00"),
            ("38500.5", "NGN", "38,500.50"),
            ("1075.00000", "NGN", "1,075.00"),
            ("0.12345", "NGN", "0.12345"),
            ("0", "NGN", "0.00"),
            ("-0.00", "NGN", "0.00"),
            ("-999.9", "EUR", "-999.90"),
            ("-1000", "EUR", "-1,000.00"),
            ("123456", "XOF", "123,456"),
            ("1.5", "XOF", "1.5"),
            ("1234.5", "KWD", "1,234.500"),
            (
                "79228162514264337593543950335",
                "NGN",
                "79,228,162,514,264,337,593,543,950,335.00",
            ),
            (
                "79228162514264337593543950335",
                "CLF",
                "79,228,162,514,264,337,593,543,950,335.0000",
            ),
            (
                "0.0000000000000000000000000001",
                "NGN",
                "0.0000000000000000000000000001",
            ),
        ] {
            assert_eq!(write_amount(decimal(amount), currency), text);
        }
    }

    #[test]
    fn a_quantity_and_a_percentage_have_no_zeros_at_their_end() {
        assert_eq!(write_number(decimal("10.500")), "10.5");
        assert_eq!(write_number(decimal("1000.00")), "1,000");
        assert_eq!(write_percent(decimal("7.50")), "7.5\u{a0}%");
    }
}
