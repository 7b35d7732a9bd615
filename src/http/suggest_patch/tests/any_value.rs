//! Tests that a body with any value in any place is patched without a panic, and that the verdict on it is right.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::{body, catalog, is_valid_body, repair, sold_lines};
use crate::http::forms::testing::number;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_value_in_any_place_is_patched_without_a_panic(
        sold in sold_lines(),
        index in 0..200_usize,
        odd_value in select(vec![
            json!(null), json!(true), json!([]), json!({}), json!([[]]), json!("\u{0}"), json!("é"), json!(-1),
            number("1e400"), number("0.0000000001"), number("999999999999999"), json!("2026-01-15T"), json!("0"),
        ]),
    ) {
        let catalog = catalog();
        let right = body(&sold);
        let all = pointers(&right, "");
        let pointer = &all[index % all.len()];
        let mut body = right.clone();
        *body.pointer_mut(pointer).unwrap() = odd_value;
        let (is_valid, _, patched) = repair(&body, catalog);
        prop_assert_eq!(is_valid, is_valid_body(&patched, catalog));
    }
}

fn pointers(value: &Value, parent: &str) -> Vec<String> {
    let member_pointers = |name: &str, value: &Value| {
        let pointer = format!("{parent}/{name}");
        let mut all = pointers(value, &pointer);
        all.push(pointer);
        all
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| member_pointers(name, value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(index, item)| member_pointers(&index.to_string(), item))
            .collect(),
        _ => Vec::new(),
    }
}
