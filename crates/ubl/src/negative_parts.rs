//! Reverses the signs of the amounts in the unmapped parts of a negative invoice that became a credit note.

use crate::beside::{UnmappedPart, parse_fragment};
use crate::element::{CURRENCY, Element};
use crate::serialize::serialize_fragment;

/// Reverses the sign of each amount in the parts, because a negative invoice became a credit note. Prices and the
/// amounts of the preceding invoice keep their signs.
pub(crate) fn negate_amounts(parts: &mut [UnmappedPart]) {
    for part in parts {
        let keeps_sign = part.path.contains("/cac:Price")
            || part.path.contains("/cac:BillingReference")
            || part.path.contains("/@");
        if keeps_sign {
            continue;
        }
        if let Some(mut element) = parse_fragment(&part.value) {
            negate_amounts_in(&mut element);
            part.value = serialize_fragment(&element);
        }
    }
}

fn negate_amounts_in(element: &mut Element) {
    if matches!(&*element.name, "cac:Price" | "cac:BillingReference") {
        return;
    }
    let is_amount = element.attributes.iter().any(|one| one.name == CURRENCY);
    if is_amount && element.name != "cbc:PriceAmount" {
        element.text = negated(element.text.trim());
    }
    element.children.iter_mut().for_each(negate_amounts_in);
}

fn negated(number: &str) -> String {
    let is_zero = number.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    match number.strip_prefix('-') {
        Some(positive) => positive.to_owned(),
        None if is_zero => number.to_owned(),
        None => format!("-{}", number.trim_start_matches('+')),
    }
}
