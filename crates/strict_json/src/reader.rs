//! Builds a value from parser events. Depth and memory are counted while the value grows, so a text that
//! exceeds a limit is refused at once. The stack of open containers is on the heap.

use std::borrow::Cow;
use std::collections::BTreeMap;

use json_event_parser::{JsonEvent, JsonSyntaxError, SliceJsonParser};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{JsonError, KeyError, KeyErrorKind, PathSegment};

/// `serde_json` gives keys with this prefix a meaning of their own.
const PRIVATE_TOKEN: &str = "$serde_json::private::";

/// The usual depth limit of JSON parsers.
const REQUEST_DEPTH_MAX: usize = 128;
/// The depth limit for responses and for our own texts. It is larger than that for requests, because an accepted
/// document is stored, sent and fetched inside a few more objects and arrays and must stay readable there. Values are
/// dropped, compared and written recursively; this many levels fit the smallest stack many times over.
const DEPTH_MAX: usize = 192;

/// The bytes of memory that a text may take for each of its bytes. Invoices take six to ten, `[0,0,…]` up to
/// 40, and `[{"a":0},…]` 90.
const MEMORY_BYTES_PER_TEXT_BYTE: usize = 16;
/// Memory that every text may use, however short it is.
const MEMORY_BYTES_FREE: usize = 1024 * 1024;

/// The length of an escape with a code: `\u` and four digits.
const ESCAPE_BYTES: usize = 6;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

const VALUE_BYTES: usize = size_of::<Value>();
const KEY_BYTES: usize = size_of::<String>();
/// `serde_json` keeps an object in a B-tree. A node of the tree has this many slots and is at least about
/// half full.
const MAP_NODE_SLOTS: usize = 11;
const MAP_NODE_FILLED_SLOTS_MIN: usize = 6;
const MAP_NODE_BYTES: usize = MAP_NODE_SLOTS * (VALUE_BYTES + KEY_BYTES) + 16;
/// The smallest allocation in bytes. A shorter text takes as much.
const TEXT_BYTES_MIN: usize = 16;

/// The limits for reading a text.
#[derive(Debug, Clone, Copy)]
pub struct JsonLimits {
    /// The maximum nesting of objects and arrays.
    depth_max: usize,
    /// The maximum bytes of memory for each byte of text; `None` means no limit.
    memory_bytes_per_text_byte: Option<usize>,
}

impl JsonLimits {
    /// The limits for the body of a request.
    pub const REQUEST: Self = Self {
        depth_max: REQUEST_DEPTH_MAX,
        memory_bytes_per_text_byte: Some(MEMORY_BYTES_PER_TEXT_BYTE),
    };
    /// The limits for the response to one of our calls.
    pub const ANSWER: Self = Self {
        depth_max: DEPTH_MAX,
        memory_bytes_per_text_byte: Some(MEMORY_BYTES_PER_TEXT_BYTE),
    };
    /// The limits for text that this service wrote. Its memory was counted when it came in.
    pub const TRUSTED: Self = Self {
        depth_max: DEPTH_MAX,
        memory_bytes_per_text_byte: None,
    };

    /// Returns the maximum memory for reading a text, in bytes.
    pub fn memory_bytes_max(self, text: &[u8]) -> usize {
        let Some(per_byte) = self.memory_bytes_per_text_byte else {
            return usize::MAX;
        };
        text.len()
            .saturating_mul(per_byte)
            .saturating_add(MEMORY_BYTES_FREE)
    }
}

/// Reads a response to one of our calls. A duplicate or reserved key makes it unreadable.
pub fn from_untrusted<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    read_typed(text, JsonLimits::ANSWER)
}

/// Returns the text of one member of the object that a response holds, as it was sent: with its spelling of numbers and
/// its order of keys. `None` if the object has no such member. Refuses what `from_untrusted` refuses.
#[expect(
    clippy::disallowed_types,
    reason = "the text is checked before it is cut into its members"
)]
pub fn member_text(text: &[u8], name: &str) -> Result<Option<String>, JsonError> {
    let mut members: BTreeMap<String, Box<serde_json::value::RawValue>> = from_untrusted(text)?;
    let member = members.remove(name);
    Ok(member.map(|member| member.get().to_owned()))
}

/// Reads text that this service wrote, such as a column of its database. Its depth and keys were checked when
/// it came in. They are checked again only if the text contains the private token: searching for the token is
/// nearly free, but a second check of each text would take most of the time of a GET.
pub fn from_trusted<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    if text.contains(PRIVATE_TOKEN) {
        read_typed(text.as_bytes(), JsonLimits::TRUSTED)
    } else {
        read_checked_text(text.as_bytes())
    }
}

fn read_typed<T: DeserializeOwned>(text: &[u8], limits: JsonLimits) -> Result<T, JsonError> {
    let mut refused = None;
    let value = read(text, limits, |fault| {
        refused.get_or_insert_with(|| JsonError::Key {
            path: fault_path(fault),
            kind: fault.kind,
        });
    })?;
    drop(value);
    refused.map_or_else(|| read_checked_text(text), Err)
}

/// Reads a text that was checked before. Starts from the text, because converting the value of [`read`] to
/// `T` would change the spelling of numbers.
#[expect(
    clippy::disallowed_methods,
    reason = "the text has no private token, and its depth is bounded"
)]
fn read_checked_text<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    let mut json =
        serde_json::Deserializer::from_slice(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text));
    json.disable_recursion_limit();
    let value = T::deserialize(&mut json).map_err(JsonError::Shape)?;
    json.end().map_err(JsonError::Shape)?;
    Ok(value)
}

fn fault_path(fault: &KeyError<'_>) -> String {
    let steps = fault.steps().map(|step| match step {
        PathSegment::Key(key) => key.to_owned(),
        PathSegment::Index(index) => index.to_string(),
    });
    steps.collect::<Vec<_>>().join(".")
}

/// Reads one JSON text, with or without a byte order mark. Passes each forbidden key to `on_fault`, in the
/// order of the text. If there is one, the returned value lacks members and is fit for error reports only.
/// Numbers keep their digits.
pub fn read(
    text: &[u8],
    limits: JsonLimits,
    mut on_fault: impl FnMut(&KeyError<'_>),
) -> Result<Value, JsonError> {
    let mut parser = SliceJsonParser::new(text);
    let mut builder = Builder {
        open: Vec::new(),
        root: Value::Null,
        depth_max: limits.depth_max,
        memory_left: limits.memory_bytes_max(text),
    };
    loop {
        let event = parser.parse_next();
        match event.map_err(|error| syntax_error(text, &error))? {
            JsonEvent::Null => builder.add_value(Value::Null)?,
            JsonEvent::Boolean(is_true) => builder.add_value(Value::Bool(is_true))?,
            JsonEvent::Number(digits) => builder.add_number(&digits)?,
            JsonEvent::String(text) => builder.add_text(text)?,
            JsonEvent::StartArray => builder.open(Container::Array(Vec::new()))?,
            JsonEvent::StartObject => builder.open(Container::Object(ObjectMembers::default()))?,
            JsonEvent::ObjectKey(key) => {
                if let Some(kind) = builder.begin_member(key)? {
                    on_fault(&KeyError {
                        kind,
                        open: &builder.open,
                    });
                }
            }
            JsonEvent::EndArray | JsonEvent::EndObject => builder.close()?,
            JsonEvent::Eof => return Ok(builder.root),
        }
    }
}

/// Converts the parser's error. If an escape stands for half a character, the parser only reports an unexpected end, so
/// the position of the escape is searched for.
fn syntax_error(text: &[u8], error: &JsonSyntaxError) -> JsonError {
    let message = error.message();
    let may_be_half =
        message.starts_with("Unexpected end of file") || message.contains("surrogate");
    if let Some(at) = find_half_character(text).filter(|_| may_be_half) {
        return half_character_error(text, at);
    }
    let start = error.location().start;
    JsonError::Syntax {
        message: message.to_owned(),
        line: start.line + 1,
        column: start.column + 1,
    }
}

/// Returns the error for an escape at `at` that stands for half a character.
fn half_character_error(text: &[u8], at: usize) -> JsonError {
    let before = text.get(..at).unwrap_or_default();
    let escape = text.get(at..at + ESCAPE_BYTES).unwrap_or_default();
    let mut lines = before.rsplit(|byte| *byte == b'\n');
    let column = lines.next().unwrap_or_default().len() + 1;
    JsonError::Syntax {
        message: format!(
            "{} is half of a character, and the other half is missing",
            String::from_utf8_lossy(escape)
        ),
        line: u64::try_from(lines.count() + 1).unwrap_or(u64::MAX),
        column: u64::try_from(column).unwrap_or(u64::MAX),
    }
}

/// Returns the position of the first escape that stands for one half of a character (a surrogate) without the other
/// half.
fn find_half_character(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += text.get(at..)?.iter().position(|byte| *byte == b'\\')?;
        let pair = (
            surrogate_at(text, at),
            surrogate_at(text, at + ESCAPE_BYTES),
        );
        at += match pair {
            (None, _) => 2,
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 2 * ESCAPE_BYTES,
            (Some(_), _) => return Some(at),
        };
    }
}

/// Returns the surrogate (half of a character) that an escape at `at` stands for; `None` if there is no such escape.
fn surrogate_at(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + ESCAPE_BYTES)?.strip_prefix(b"\\u")?;
    let code = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xD800..=0xDFFF).contains(&code).then_some(code)
}

/// An array or object whose end has not been read.
#[derive(Debug)]
pub(crate) enum Container {
    Array(Vec<Value>),
    Object(ObjectMembers),
}

#[derive(Debug, Default)]
pub(crate) struct ObjectMembers {
    kept: Map<String, Value>,
    /// The key whose value is being read.
    key: String,
    is_key_kept: bool,
}

impl Container {
    /// Returns the path segment of the value that is being read.
    pub(crate) fn step(&self) -> PathSegment<'_> {
        match self {
            Self::Array(items) => PathSegment::Index(items.len()),
            Self::Object(members) => PathSegment::Key(&members.key),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Array(items) => Value::Array(items),
            Self::Object(members) => Value::Object(members.kept),
        }
    }
}

struct Builder {
    open: Vec<Container>,
    root: Value,
    depth_max: usize,
    memory_left: usize,
}

impl Builder {
    fn open(&mut self, container: Container) -> Result<(), JsonError> {
        if self.open.len() >= self.depth_max {
            return Err(JsonError::TooDeep {
                max: self.depth_max,
            });
        }
        self.open.push(container);
        Ok(())
    }

    /// Closes the innermost container. The parser has already checked that the brackets match.
    fn close(&mut self) -> Result<(), JsonError> {
        match self.open.pop() {
            Some(container) => self.add_value(container.into_value()),
            None => Ok(()),
        }
    }

    fn add_number(&mut self, digits: &str) -> Result<(), JsonError> {
        self.count_memory(digits.len().max(TEXT_BYTES_MIN))?;
        // Every number that JSON allows is valid in `serde_json`, which keeps it as text.
        self.add_value(Value::Number(digits.parse().map_err(JsonError::Shape)?))
    }

    fn add_text(&mut self, text: Cow<'_, str>) -> Result<(), JsonError> {
        self.count_memory(text.len().max(TEXT_BYTES_MIN))?;
        self.add_value(Value::String(text.into_owned()))
    }

    /// Records the key of the next value. Returns the fault of a forbidden key: the key stays in the path,
    /// but its value is dropped.
    fn begin_member(&mut self, key: Cow<'_, str>) -> Result<Option<KeyErrorKind>, JsonError> {
        self.count_memory(key.len().max(TEXT_BYTES_MIN))?;
        let Some(Container::Object(members)) = self.open.last_mut() else {
            return Ok(None);
        };
        let fault = if key.starts_with(PRIVATE_TOKEN) {
            Some(KeyErrorKind::Reserved)
        } else if members.kept.contains_key(key.as_ref()) {
            Some(KeyErrorKind::Duplicate)
        } else {
            None
        };
        members.key = key.into_owned();
        members.is_key_kept = fault.is_none();
        Ok(fault)
    }

    fn add_value(&mut self, value: Value) -> Result<(), JsonError> {
        match self.open.last_mut() {
            None => self.root = value,
            Some(Container::Array(items)) => {
                let before = items.capacity();
                items.push(value);
                let grown = items.capacity() - before;
                self.count_memory(grown * VALUE_BYTES)?;
            }
            Some(Container::Object(members)) if members.is_key_kept => {
                let is_node_full = members.kept.len().is_multiple_of(MAP_NODE_FILLED_SLOTS_MIN);
                members.kept.insert(members.key.clone(), value);
                self.count_memory(if is_node_full { MAP_NODE_BYTES } else { 0 })?;
            }
            Some(Container::Object(_)) => {}
        }
        Ok(())
    }

    fn count_memory(&mut self, bytes: usize) -> Result<(), JsonError> {
        self.memory_left = self
            .memory_left
            .checked_sub(bytes)
            .ok_or(JsonError::TooManyValues)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        from_trusted(text).unwrap()
    }

    fn faults(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        read(text.as_bytes(), JsonLimits::REQUEST, |fault| {
            found.push(format!("{:?} {}", fault.kind, fault_path(fault)));
        })
        .unwrap();
        found
    }

    fn refused(text: &str) -> String {
        from_untrusted::<Value>(text.as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn half_a_character_is_told_where_it_stands() {
        let told = "is half of a character, and the other half is missing at line";
        for (text, escape, place) in [
            (r#"{"note":"\ud800"}"#, r"\ud800", "1 column 10"),
            (
                r#"{"note":"\ud800","other":"long enough"}"#,
                r"\ud800",
                "1 column 10",
            ),
            (
                r#"{"note":"a\uDC00b and more text"}"#,
                r"\uDC00",
                "1 column 11",
            ),
            (
                "{\n\"n\":\"\\ud800\\u0041 and more text\"}",
                r"\ud800",
                "2 column 6",
            ),
            (
                r#"["\ud83d\ude00","\\ud800","\ud83d"]"#,
                r"\ud83d",
                "1 column 28",
            ),
        ] {
            assert_eq!(refused(text), format!("{escape} {told} {place}"), "{text}");
        }
        assert_eq!(value(r#""\ud83d\ude00""#), "\u{1f600}");
        let message = refused(r#"{"note":"a"#);
        assert!(!message.contains("half"), "{message}");
    }

    #[test]
    fn numbers_keep_their_digits() {
        for digits in [
            "0",
            "-0",
            "0.0",
            "0.10",
            "0.0000001",
            "12345678901234567890.1234567890",
            "-1.50e+3",
            "1e-400",
        ] {
            assert_eq!(value(digits).to_string(), digits);
            let number = read(digits.as_bytes(), JsonLimits::REQUEST, |_| {}).unwrap();
            assert_eq!(number.to_string(), digits);
        }
        let long = "9".repeat(10_000);
        assert_eq!(value(&long).to_string(), long);
        // Only exponents change: they are always written in one way.
        assert_eq!(value("1E5").to_string(), "1e+5");
        assert_eq!(value("18446744073709551615").as_u64(), Some(u64::MAX));
    }

    #[test]
    fn only_one_json_text_is_read() {
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "{} {}",
            "{\"a\":}",
            "{'a':1}",
            "plain",
            "<xml/>",
            "01",
            "+1",
            ".5",
            "1.",
            "1e",
            "0x10",
            "1_000",
            "NaN",
            "Infinity",
            "-Infinity",
            "nul",
            "'a'",
            "{a:1}",
            "[1 2]",
            "{\"a\" 1}",
            "\"\t\"",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\ud800\\u0041\"",
            "\"\\u00\"",
            "\u{b}1",
            "/**/1",
            "]",
            "}",
            ",",
            ":",
            "{\"a\":1]",
            "[}",
            "\"a",
            "\u{feff}\u{feff}1",
        ] {
            assert!(from_trusted::<Value>(text).is_err(), "{text}");
            assert!(from_untrusted::<Value>(text.as_bytes()).is_err(), "{text}");
        }
        assert!(from_untrusted::<Value>(b"\"\xff\"").is_err());
        assert!(from_untrusted::<Value>(b"{\"\xc3\":1}").is_err());
        assert_eq!(value("\u{feff} {}\r\n"), Value::Object(Map::new()));
        assert_eq!(
            value(r#""\ud83d\ude00\u00e9\/\b\n""#),
            Value::from("\u{1f600}é/\u{8}\n")
        );
    }

    #[test]
    fn a_member_is_cut_out_as_it_was_sent() {
        for (text, expected) in [
            (
                r#"{"a":{"data":1}, "data" : [{"b":1e3,"a":2.50}, {}] ,"c":1}"#,
                Some(r#"[{"b":1e3,"a":2.50}, {}]"#),
            ),
            (
                "\u{feff}{\"d\\u0061ta\":\"\\u00e9}\"}",
                Some("\"\\u00e9}\""),
            ),
            (r#"{"data":null}"#, Some("null")),
            (r#"{"Data":1}"#, None),
            ("{}", None),
        ] {
            let found = member_text(text.as_bytes(), "data").unwrap();
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        for text in [
            r#"{"data":1,"data":2}"#,
            r#"{"data":[{"a":1,"a":2}]}"#,
            r#"{"data":{"$serde_json::private::RawValue":"[]"}}"#,
            r#"{"$serde_json::private::RawValue":"{}","data":1}"#,
            r#"{"data":[}"#,
            "[1]",
        ] {
            assert!(member_text(text.as_bytes(), "data").is_err(), "{text}");
        }
    }

    #[test]
    fn an_error_names_its_line_and_column() {
        assert_eq!(
            refused("{\n  \"a\": x}"),
            "Unexpected char: 'x' at line 2 column 8"
        );
        assert_eq!(
            refused(r#"{"a":[{"b":1,"b":2}]}"#),
            "the key a.0.b is sent twice"
        );
        let error = from_trusted::<u8>("256").unwrap_err();
        assert!(matches!(error, JsonError::Shape(_)), "{error}");
    }

    #[test]
    fn a_private_token_of_the_library_is_a_key_that_is_refused() {
        for token in ["RawValue", "Number", "", "else"] {
            for prefix in [
                "$serde_json::private::",
                "\\u0024serde_json::private::",
                "$serde_json\\u003a:private:\\u003A",
            ] {
                for text in [
                    format!(r#"{{"{prefix}{token}":"1"}}"#),
                    format!(r#"[{{"{prefix}{token}":"[[["}}]"#),
                    format!(r#"{{"a":1,"{prefix}{token}":{{"b":2}}}}"#),
                ] {
                    let found = faults(&text);
                    assert!(
                        found.len() == 1 && found[0].starts_with("Reserved "),
                        "{text}: {found:?}"
                    );
                    assert!(refused(&text).ends_with("is reserved"), "{text}");
                }
            }
        }
        // As a value the token is a text like any other. Without the dollar sign it is a key like any other.
        assert_eq!(
            value(r#"["$serde_json::private::RawValue"]"#)[0],
            "$serde_json::private::RawValue"
        );
        assert_eq!(
            faults(r#"{"serde_json::private::RawValue":"1","$serde_json":1}"#),
            [""; 0]
        );
    }

    #[test]
    fn a_refused_member_is_left_out_and_its_neighbours_stay() {
        let text = r#"{"a":1,"$serde_json::private::RawValue":"{\"b\":1}","c":[true],"a":2}"#;
        let left = read(text.as_bytes(), JsonLimits::REQUEST, |_| {}).unwrap();
        assert_eq!(left, value(r#"{"a":1,"c":[true]}"#));
    }

    #[test]
    fn each_key_that_is_sent_twice_is_named_in_the_order_of_the_text() {
        let text = r#"{"amount":1,"x":[-1,{"y":2}],"a":{"b":[{"c":1},{"c":1,"d":null,"c":2}]},"amount":{"z":1,"z":1},"":1,"":2}"#;
        let named = ["a.b.1.c", "amount", "amount.z", ""].map(|path| format!("Duplicate {path}"));
        assert_eq!(faults(text), named);
        assert_eq!(
            faults(r#"{"amount":1,"\u0061mount":2}"#),
            ["Duplicate amount"]
        );
        assert_eq!(
            faults(r#"{"a":{"a":{"a":1}},"A":[{"a":1},{"a":1}]}"#),
            [""; 0]
        );
    }

    fn nested(depth: usize) -> String {
        format!(
            "{}1{}",
            "[{\"a\":".repeat(depth / 2),
            "}]".repeat(depth / 2)
        )
    }

    #[test]
    fn the_depth_is_bounded_and_takes_no_stack() {
        let deepest = |limits, depth| read(nested(depth).as_bytes(), limits, |_| {});
        assert!(
            deepest(JsonLimits::REQUEST, 128).is_ok() && deepest(JsonLimits::ANSWER, 192).is_ok()
        );
        // An accepted text stays readable inside the containers that it is stored in, and its value can be
        // dropped.
        let kept: Value = from_trusted(&nested(192)).unwrap();
        assert_eq!(from_trusted::<Value>(&kept.to_string()).unwrap(), kept);
        for (limits, depth) in [
            (JsonLimits::REQUEST, 130),
            (JsonLimits::ANSWER, 194),
            (JsonLimits::TRUSTED, 1_000_000),
        ] {
            assert!(
                matches!(deepest(limits, depth), Err(JsonError::TooDeep { .. })),
                "{depth}"
            );
        }
    }

    #[test]
    fn a_text_of_tiny_values_is_refused_before_it_takes_the_memory() {
        let of = |item: &str, count: usize| format!("[{}0]", item.repeat(count));
        for item in ["0,", "[0],", "{\"a\":0},", "\"\",", "[[[[0]]]],"] {
            let text = of(item, 2_000_000 / item.len());
            let read = |limits| read(text.as_bytes(), limits, |_| {});
            assert!(
                matches!(read(JsonLimits::REQUEST), Err(JsonError::TooManyValues)),
                "{item}"
            );
            assert!(read(JsonLimits::TRUSTED).is_ok(), "{item}");
        }
        // A short text may consist of tiny values only.
        for item in ["0,", "{\"a\":0},"] {
            assert!(
                read(of(item, 1_000).as_bytes(), JsonLimits::REQUEST, |_| {}).is_ok(),
                "{item}"
            );
        }
    }
}
