//! Tests that a body with any value in any place is patched without a panic, and that the verdict on it is right.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::{body, catalog, mend, passes, sold_lines};
use crate::http::forms::testing::number;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn whatever_stands_anywhere_nothing_breaks(
        sold in sold_lines(),
        place in 0..200_usize,
        odd in select(vec![
            json!(null), json!(true), json!([]), json!({}), json!([[]]), json!("\u{0}"), json!("é"), json!(-1),
            number("1e400"), number("0.0000000001"), number("999999999999999"), json!("2026-01-15T"), json!("0"),
        ]),
    ) {
        let catalog = catalog();
        let right = body(&sold);
        let all = pointers(&right, "");
        let pointer = &all[place % all.len()];
        let mut body = right.clone();
        *body.pointer_mut(pointer).unwrap() = odd;
        let (is_right, _, patched) = mend(&body, catalog);
        prop_assert_eq!(is_right, passes(&patched, catalog));
    }
}

fn pointers(value: &Value, here: &str) -> Vec<String> {
    let below = |name: &str, value: &Value| {
        let here = format!("{here}/{name}");
        let mut all = pointers(value, &here);
        all.push(here);
        all
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| below(name, value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(place, item)| below(&place.to_string(), item))
            .collect(),
        _ => Vec::new(),
    }
}
