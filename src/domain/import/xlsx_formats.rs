//! The number formats in which a sheet shows more than the number itself: percentages, and codes such as tax numbers or
//! postal codes, whose leading zeros the number does not have.

use rust_decimal::Decimal;

/// The maximum length of the format of a code, in bytes. It is limited because the format is read again for each cell.
const CODE_FORMAT_BYTES_MAX: usize = 100;
/// A format with fewer zeros than this shows an amount and not a code, such as `0" kg"`.
const CODE_ZEROS_MIN: usize = 2;

/// The kind of a format of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormatKind {
    /// The number is used as it is.
    Plain,
    Percentage,
    /// A code: the digits of a whole number take the place of the zeros of the format, such as those of
    /// `00000000-0000`.
    Code,
}

impl FormatKind {
    pub(super) fn from_format(format: &str) -> Self {
        if is_percentage(format) {
            Self::Percentage
        } else if code_format_parts(format).is_some() {
            Self::Code
        } else {
            Self::Plain
        }
    }

    /// Returns a number as a format of this kind shows it; `None` if it shows the number alone. A percentage keeps its
    /// sign, such as `10%` for 0.1, so that a column of numbers refuses it. Without the sign, 0.1 would be taken for a
    /// tenth of a percent.
    pub(super) fn formatted_text(self, number: Decimal, format: &str) -> Option<String> {
        match self {
            Self::Plain => None,
            Self::Percentage => {
                let hundredfold = number.checked_mul(Decimal::ONE_HUNDRED)?;
                Some(format!("{}%", hundredfold.normalize()))
            }
            Self::Code => {
                let number = number.normalize();
                if !number.is_integer() || number.is_sign_negative() {
                    return None;
                }
                Some(fill_code_format(
                    &number.to_string(),
                    &code_format_parts(format)?,
                ))
            }
        }
    }
}

/// True if a format shows a number as a percentage: it has a percent sign outside of the texts in it. `_%` is only a
/// gap as wide as the sign, and `*%` repeats the sign as a filling.
fn is_percentage(format: &str) -> bool {
    let mut signs = format.chars();
    let mut is_text = false;
    while let Some(sign) = signs.next() {
        match sign {
            '"' => is_text = !is_text,
            '\\' | '_' | '*' if !is_text => _ = signs.next(),
            '%' if !is_text => return true,
            _ => {}
        }
    }
    false
}

/// One character of a code format such as `00000000-0000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormatPart {
    /// A zero, in whose place a digit is shown.
    Digit,
    Text(char),
}

/// Returns the characters of a format that shows codes: a format of zeros and fixed text only. Returns `None` for any
/// other format. Only the part of the format for positive numbers is read.
fn code_format_parts(format: &str) -> Option<Vec<FormatPart>> {
    if format.len() > CODE_FORMAT_BYTES_MAX {
        return None;
    }
    let mut found = Vec::new();
    let mut is_text = false;
    let mut signs = format.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '"' => is_text = !is_text,
            _ if is_text => found.push(FormatPart::Text(sign)),
            '\\' => found.push(FormatPart::Text(signs.next()?)),
            '0' => found.push(FormatPart::Digit),
            '-' | ' ' | '(' | ')' | '+' => found.push(FormatPart::Text(sign)),
            ';' => break,
            _ => return None,
        }
    }
    (count_zeros(&found) >= CODE_ZEROS_MIN).then_some(found)
}

fn count_zeros(signs: &[FormatPart]) -> usize {
    let zeros = signs.iter().filter(|sign| **sign == FormatPart::Digit);
    zeros.count()
}

/// Returns the code: the format with the digits in place of its zeros. If there are more digits than zeros, the surplus
/// digits at the beginning also take the place of the first zero.
fn fill_code_format(digits: &str, signs: &[FormatPart]) -> String {
    let places = count_zeros(signs);
    let padded = format!("{digits:0>places$}");
    let mut left = padded.chars();
    let mut more = padded.len().saturating_sub(places);
    let mut code = String::with_capacity(padded.len() + signs.len());
    for sign in signs {
        match sign {
            FormatPart::Text(text) => code.push(*text),
            FormatPart::Digit => {
                code.extend(left.by_ref().take(more + 1));
                more = 0;
            }
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_shown_as_its_format_says() {
        for (format, number, shown) in [
            ("General", "7", None),
            ("0", "7", None),
            ("0.00", "7", None),
            ("#,##0", "7", None),
            ("0\" kg\"", "7", None),
            ("[<=9999999]000\\-0000;000", "7", None),
            ("00 \"x", "7", Some("07 x")),
            ("0%", "0.075", Some("7.5%")),
            ("0.00%", "0.1", Some("10%")),
            ("0.0\"%\"", "7.5", None),
            ("0.0_%", "7.5", None),
            ("00000", "1234", Some("01234")),
            ("00000", "0", Some("00000")),
            ("00000", "1234567", Some("1234567")),
            ("00000", "12.5", None),
            ("00000", "-12", None),
            ("00000000\\-0000", "12345670001", Some("01234567-0001")),
            ("00000000-0000", "9123456780001", Some("912345678-0001")),
            ("\"INV-\"0000", "12", Some("INV-0012")),
            ("+000 000;\\-000;@", "234800", Some("+234 800")),
            ("000\\", "7", None),
        ] {
            let kind = FormatKind::from_format(format);
            let found = kind.formatted_text(number.parse().unwrap(), format);
            assert_eq!(found.as_deref(), shown, "{format} {number}");
        }
        let long = "0".repeat(CODE_FORMAT_BYTES_MAX + 1);
        assert_eq!(FormatKind::from_format(&long), FormatKind::Plain);
    }
}
