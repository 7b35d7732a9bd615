//! Members of a body of a create request, from the values of a trade document.

use rust_decimal::Decimal;
use serde_json::{Map, Number, Value};
use trade_document::Party;

use crate::domain::money::Amount;

/// Returns a decimal as a JSON number, without zeros at its end.
pub(super) fn json_number(value: Decimal) -> Value {
    let number = value.normalize().to_string().parse::<Number>();
    number.map_or(Value::Null, Value::Number)
}

/// Adds those members that have a value.
pub(super) fn add_members<const N: usize>(
    object: &mut Map<String, Value>,
    members: [(&str, Option<Value>); N],
) {
    for (name, value) in members {
        if let Some(value) = value {
            object.insert(name.to_owned(), value);
        }
    }
}

/// Returns the text as a JSON value; `None` if it is missing or blank.
pub(super) fn optional_value(text: Option<&str>) -> Option<Value> {
    text.and_then(value_if_filled)
}

/// Returns the text as a JSON value; `None` if it is blank.
pub(super) fn value_if_filled(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| Value::from(text))
}

pub(super) fn party_name(party: &Party) -> Option<Value> {
    value_if_filled(&party.name)
}

/// Returns a decimal as an amount; `None` if it is too large or has too many digits.
pub(super) fn to_amount(sum: Decimal) -> Option<Amount> {
    Amount::parse(&sum.to_string()).ok()
}
