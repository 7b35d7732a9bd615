//! The reader of JSON against the parser of `serde_json`: what both read is the same value, and only what has no
//! private token may be given to the latter at all.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use serde_json::Value;
use strict_json::{JsonLimits, from_trusted, read};

const PRIVATE_TOKEN: &str = "$serde_json::private::";

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn has_private_key(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_private_key),
        Value::Object(members) => {
            members.iter().any(|(key, value)| key.starts_with(PRIVATE_TOKEN) || has_private_key(value))
        }
        _ => false,
    }
}

fn by_serde_json(text: &[u8]) -> serde_json::Result<Value> {
    let mut json = serde_json::Deserializer::from_slice(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text));
    json.disable_recursion_limit();
    let value = Value::deserialize(&mut json)?;
    json.end().map(|()| value)
}

fuzz_target!(|text: &[u8]| {
    let mut faults = 0_usize;
    let Ok(value) = read(text, JsonLimits::REQUEST, |fault| {
        assert!(fault.steps().count() > 0);
        faults += 1;
    }) else {
        return;
    };
    assert!(depth(&value) <= 128);
    assert!(!has_private_key(&value));
    let written = value.to_string();
    assert_eq!(from_trusted::<Value>(&written).expect("what was accepted stays readable"), value);
    if faults == 0 {
        assert_eq!(by_serde_json(text).expect("stricter than serde_json"), value);
    }
});
