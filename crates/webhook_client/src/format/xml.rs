//! Writes JSON as XML 1.0. A member becomes an element with its name, a list item an element `item`, and null an
//! element with `xsi:nil`. An invalid name becomes `<member name="…">`.

use serde_json::Value;

/// Writes a JSON value as the content of an element.
pub(super) fn write_children(value: &Value, out: &mut String) {
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::String(text) => write_escaped(text, out),
        Value::Array(items) => items
            .iter()
            .for_each(|item| write_element("item", item, out)),
        Value::Object(members) => members
            .iter()
            .for_each(|(name, value)| write_element(name, value, out)),
    }
}

fn write_element(name: &str, value: &Value, out: &mut String) {
    let is_plain = is_name(name);
    let tag = if is_plain { name } else { "member" };
    out.push('<');
    out.push_str(tag);
    if !is_plain {
        out.push_str(" name=\"");
        write_escaped(name, out);
        out.push('"');
    }
    if value.is_null() {
        out.push_str(" xsi:nil=\"true\"/>");
        return;
    }
    out.push('>');
    write_children(value, out);
    out.push_str("</");
    out.push_str(tag);
    out.push('>');
}

/// Returns true for a valid element name that is ASCII and has no prefix.
pub(super) fn is_name(name: &str) -> bool {
    let is_first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let is_reserved = name
        .get(..3)
        .is_some_and(|start| start.eq_ignore_ascii_case("xml"));
    name.starts_with(is_first)
        && name
            .chars()
            .all(|letter| is_first(letter) || letter.is_ascii_digit() || "-.".contains(letter))
        && !is_reserved
}

/// Escapes text for an element or an attribute. Characters that XML cannot represent become U+FFFD.
pub(super) fn write_escaped(text: &str, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\0'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use quick_xml::Reader;
    use quick_xml::events::Event;
    use serde_json::json;

    use super::*;

    fn render_children(value: &Value) -> String {
        let mut out = String::new();
        write_children(value, &mut out);
        out
    }

    #[test]
    fn members_become_elements_with_their_names() {
        for (value, expected) in [
            (json!({ "a": "x", "b": true }), "<a>x</a><b>true</b>"),
            (json!({ "a": [] }), "<a></a>"),
            (
                json!({ "a": [1, "two", null] }),
                r#"<a><item>1</item><item>two</item><item xsi:nil="true"/></a>"#,
            ),
            (
                json!({ "customer.email": "x" }),
                "<customer.email>x</customer.email>",
            ),
            (
                json!({ "0": 1, "a b": 2 }),
                r#"<member name="0">1</member><member name="a b">2</member>"#,
            ),
            (
                json!({ "xmlns": 1, "a:b": 2 }),
                r#"<member name="a:b">2</member><member name="xmlns">1</member>"#,
            ),
            (
                json!({ "": 1, "<\"": 2 }),
                r#"<member name="">1</member><member name="&lt;&quot;">2</member>"#,
            ),
        ] {
            assert_eq!(render_children(&value), expected);
        }
        let exact: Value = strict_json::from_trusted(r#"{"n": 12345678901234567890.50}"#).unwrap();
        assert_eq!(render_children(&exact), "<n>12345678901234567890.50</n>");
    }

    #[test]
    fn any_text_that_xml_can_represent_is_read_back_unchanged() {
        let mut text: String = (0..=0x2ff).filter_map(char::from_u32).collect();
        text.push_str("]]> &amp; 漢字 🧾 \u{fffe}\u{ffff}\r\n");
        let xml = format!("<a>{}</a>", render_children(&json!(text)));
        let mut reader = Reader::from_str(&xml);
        let mut read = String::new();
        loop {
            match reader.read_event().unwrap() {
                Event::Text(part) => read.push_str(&part),
                Event::GeneralRef(name) => match name.resolve_char_ref().unwrap() {
                    Some(letter) => read.push(letter),
                    None => {
                        read.push_str(quick_xml::escape::resolve_predefined_entity(&name).unwrap());
                    }
                },
                Event::Eof => break,
                _ => {}
            }
        }
        let is_lost = |letter: char| {
            (letter < ' ' && !"\t\n\r".contains(letter)) || "\u{fffe}\u{ffff}".contains(letter)
        };
        assert_eq!(read, text.replace(is_lost, "\u{fffd}"));
    }
}
