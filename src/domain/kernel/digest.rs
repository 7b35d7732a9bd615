//! Digests of documents. The spelling of numbers and the order of keys do not change a digest.

use rust_decimal::Decimal;
use serde_json::{Number, Value};
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of a document, in hexadecimal.
pub fn document_digest(document: &Value) -> String {
    hex::encode(Sha256::digest(canonical_text(document)))
}

/// Returns the document as JSON text with its keys in order and each number in its canonical spelling.
pub fn canonical_text(document: &Value) -> String {
    canonical(document).to_string()
}

/// Returns the document with each number in its canonical spelling: 1075.0, 1.075e3 and 1075 become equal.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(canonical_number(number)),
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), canonical(value)))
            .collect(),
        other => other.clone(),
    }
}

/// Returns the number in its canonical spelling. A number outside the range of `Decimal` keeps its spelling.
fn canonical_number(number: &Number) -> Number {
    let canonical =
        canonical_number_text(&number.to_string()).and_then(|canonical| canonical.parse().ok());
    canonical.unwrap_or_else(|| number.clone())
}

/// Returns the number in its canonical spelling; `None` if the text is not a number in the range of `Decimal`.
pub fn canonical_number_text(text: &str) -> Option<String> {
    if is_zero_with_exponent(text) {
        return Some("0".to_owned());
    }
    let decimal = Decimal::from_str_exact(text)
        .or_else(|_| Decimal::from_scientific(text))
        .ok()?;
    Some(decimal.normalize().to_string())
}

/// True if the text is zero with an exponent, which may be outside the range of `Decimal`.
fn is_zero_with_exponent(text: &str) -> bool {
    text.split_once(['e', 'E'])
        .is_some_and(|(mantissa, exponent)| {
            let power = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            let is_power = !power.is_empty() && power.bytes().all(|byte| byte.is_ascii_digit());
            is_power && Decimal::from_str_exact(mantissa).is_ok_and(|value| value.is_zero())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> String {
        document_digest(&strict_json::from_trusted(text).unwrap())
    }

    #[test]
    fn the_spelling_of_a_number_and_the_order_of_keys_do_not_matter() {
        let one = digest(r#"{"amount":1075,"lines":[{"quantity":2}]}"#);
        assert_eq!(
            digest(r#"{"lines":[{"quantity":2.0}],"amount":1.075e3}"#),
            one
        );
        assert_ne!(
            digest(r#"{"lines":[{"quantity":2.01}],"amount":1075}"#),
            one
        );
        assert_ne!(digest(r#"{"lines":[{"quantity":"2"}],"amount":1075}"#), one);
    }

    #[test]
    fn zero_has_one_digest_in_every_spelling() {
        for zero in ["-0", "0.0", "-0.00", "0e0", "0e99", "-0E-99", "0.0e+400"] {
            assert_eq!(digest(zero), digest("0"), "{zero}");
        }
        for other in ["1e-99", "0.1e0", "\"0e99\"", "\"0\"", "null"] {
            assert_ne!(digest(other), digest("0"), "{other}");
        }
        for text in ["", "e", "0e", "0e+", "e5", "0e5x", "0x0e5"] {
            assert_eq!(canonical_number_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_number_beyond_our_decimals_still_counts() {
        assert_ne!(digest("1e400"), digest("1e401"));
    }
}
