//! Keys that an object of a body has twice. JSON leaves open which of the two counts, and a proxy, a log and this
//! service may each choose another; of an amount that is sent twice none may be taken. So a body with such a key
//! is refused. Whether there is one costs a count; where it is, is looked for only then.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::domain::fault::{Fault, Faults};
use crate::http::forms::reader::Place;

/// Keys that are named at most.
const FAULTS_MAX: usize = 20;
const KEY_BYTES_SHOWN: usize = 100;

/// The keys that are there twice. The text is the one that the object was read from.
pub(crate) fn find(text: &[u8], object: &Map<String, Value>) -> Faults {
    if colons(text) == members(object) {
        return Faults::default();
    }
    let mut faults = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(text);
    // The text was read once already: it is JSON.
    let _ = Walk { place: Place::Root, faults: &mut faults }.deserialize(&mut json);
    if faults.is_empty() {
        faults.push(Fault::new("body", "duplicate", "The request body has a key that cannot be read."));
    }
    faults.into_iter().collect()
}

/// The colons of a JSON text that stand in no string: one a member.
fn colons(text: &[u8]) -> usize {
    let (mut count, mut is_string, mut is_escaped) = (0, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_string = !is_string,
            b':' if !is_string => count += 1,
            _ => {}
        }
    }
    count
}

fn members(object: &Map<String, Value>) -> usize {
    object.len() + object.values().map(members_of).sum::<usize>()
}

fn members_of(value: &Value) -> usize {
    match value {
        Value::Object(object) => members(object),
        Value::Array(items) => items.iter().map(members_of).sum(),
        _ => 0,
    }
}

/// Walks a value and everything in it, and keeps nothing but faults.
struct Walk<'w> {
    place: Place<'w>,
    faults: &'w mut Vec<Fault>,
}

/// What is shown of a key, which may be as long as the body.
fn cut(key: &str) -> &str {
    &key[..key.floor_char_boundary(KEY_BYTES_SHOWN)]
}

fn fault(place: Place<'_>) -> Fault {
    let path = place.path();
    let message = format!("The {path} field must not be sent twice.");
    Fault::new(path, "duplicate", message)
}

impl<'d> DeserializeSeed<'d> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'d>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'d> Visitor<'d> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'d>>(self, mut items: A) -> Result<(), A::Error> {
        for index in 0.. {
            let place = Place::Item(&self.place, index);
            if items.next_element_seed(Walk { place, faults: self.faults })?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Longer numbers come this way too, as objects of one member.
    fn visit_map<A: MapAccess<'d>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            let place = Place::Field(&self.place, cut(&key));
            if seen.contains(&key) && self.faults.len() < FAULTS_MAX {
                self.faults.push(fault(place));
            }
            members.next_value_seed(Walk { place, faults: self.faults })?;
            seen.insert(key);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let object = serde_json::from_str(text).unwrap();
        let faults = find(text.as_bytes(), &object);
        assert!(faults.iter().all(|fault| fault.rule == "duplicate"));
        faults.iter().map(|fault| fault.path.clone()).collect()
    }

    #[test]
    fn each_key_that_is_there_twice_is_named_by_its_path() {
        let text = r#"{"amount":1.5e300,"x":[-1,12345678901234567890123,1e400,0.1],"a":{"b":[{"c":1},{"c":1,"d":null,"c":2}]},"amount":100,"a":true,"amount":3}"#;
        assert_eq!(paths(text), ["a.b.1.c", "amount", "a", "amount"]);
        assert_eq!(paths(r#"{"amount":1,"\u0061mount":2}"#), ["amount"]);
        assert_eq!(paths(r#"{"":1,"":2}"#), [""]);
    }

    #[test]
    fn a_body_without_such_a_key_has_no_fault() {
        for text in [
            "{}",
            r#"{"a":{"a":{"a":1.5e3}},"b":[{"a":-1},{"a":[[{"a":0}]]}]}"#,
            r#"{"a:":":","b":"\":\"","c":"\\","d":"\\\":"}"#,
            "{ \"a\" :\n1e400 , \"A\" : \"x\" }",
        ] {
            assert!(paths(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn what_is_named_of_a_hostile_body_is_small() {
        let long = "k".repeat(100_000);
        let twins: Vec<_> = (0..1_000).map(|_| "\"a\":1").collect();
        let text = format!("{{\"{long}\":{{{}}}}}", twins.join(","));
        let paths = paths(&text);
        assert_eq!(paths.len(), FAULTS_MAX);
        assert_eq!(paths[0], format!("{}.a", "k".repeat(100)));
        let accents = "\u{e9}".repeat(60);
        assert_eq!(
            super::tests::paths(&format!("{{\"{accents}\":1,\"{accents}\":2}}")),
            ["\u{e9}".repeat(50)]
        );
    }

    #[test]
    fn what_looks_like_a_number_of_the_parsers_own_is_refused() {
        assert_eq!(paths(r#"{"amount":{"$serde_json::private::Number":"5"}}"#).len(), 1);
    }
}
