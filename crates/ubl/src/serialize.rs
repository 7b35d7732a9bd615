//! Writes a tree of elements as XML text.

use quick_xml::escape::{escape, partial_escape};

use crate::element::Element;
use crate::fault::UnwritableDocument;
use crate::parse::{CAC, CBC, CREDIT_NOTE, EXT, INVOICE};

/// The namespace of attributes such as `xml:lang`. No prefix but `xml` may be bound to it.
const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// Writes a whole document, each element on a line of its own.
pub(crate) fn serialize_document(root: &Element) -> Result<String, UnwritableDocument> {
    check_characters(root)?;
    let namespace = if root.name == "Invoice" {
        INVOICE
    } else {
        CREDIT_NOTE
    };
    let declarations = format!(
        " xmlns=\"{namespace}\" xmlns:cac=\"{CAC}\" xmlns:cbc=\"{CBC}\" xmlns:ext=\"{EXT}\""
    );
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    write_element(&mut xml, root, &declarations, Some(0));
    Ok(xml)
}

/// Writes an element with all its content on one line. Does not declare the prefixes of UBL.
pub(crate) fn serialize_fragment(element: &Element) -> String {
    let mut xml = String::new();
    write_element(&mut xml, element, "", None);
    xml
}

/// Writes an element. `level` is its depth of indentation; `None` writes everything on one line.
fn write_element(xml: &mut String, element: &Element, declarations: &str, level: Option<usize>) {
    let name = match split_namespace(&element.name) {
        Some((_, local)) => local,
        None => &element.name,
    };
    indent(xml, level);
    xml.push('<');
    xml.push_str(name);
    xml.push_str(declarations);
    if let Some((namespace, _)) = split_namespace(&element.name) {
        write_attribute(xml, "xmlns", namespace);
    }
    for (index, attribute) in element.attributes.iter().enumerate() {
        match split_namespace(&attribute.name) {
            Some((XML, local)) => write_attribute(xml, &format!("xml:{local}"), &attribute.value),
            Some((namespace, local)) => {
                write_attribute(xml, &format!("xmlns:n{index}"), namespace);
                write_attribute(xml, &format!("n{index}:{local}"), &attribute.value);
            }
            None => write_attribute(xml, &attribute.name, &attribute.value),
        }
    }
    xml.push('>');
    if element.children.is_empty() {
        // A carriage return is escaped, because a reader would turn it into a line feed.
        xml.push_str(&partial_escape(&*element.text).replace('\r', "&#13;"));
    } else {
        for child in &element.children {
            write_element(xml, child, "", level.map(|level| level + 1));
        }
        indent(xml, level);
    }
    xml.push_str("</");
    xml.push_str(name);
    xml.push('>');
}

fn indent(xml: &mut String, level: Option<usize>) {
    if let Some(level) = level {
        if !xml.ends_with('\n') {
            xml.push('\n');
        }
        xml.extend(std::iter::repeat_n("  ", level));
    }
}

fn write_attribute(xml: &mut String, name: &str, value: &str) {
    let value = escape(value)
        .replace('\r', "&#13;")
        .replace('\n', "&#10;")
        .replace('\t', "&#9;");
    for part in [" ", name, "=\"", &value, "\""] {
        xml.push_str(part);
    }
}

/// Splits a name such as `{urn:x}name` into namespace and name.
pub(crate) fn split_namespace(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix('{')?.rsplit_once('}')
}

/// Refuses the characters that XML 1.0 forbids (section 2.2, Characters).
fn check_characters(element: &Element) -> Result<(), UnwritableDocument> {
    let attributes = element.attributes.iter().map(|attribute| &*attribute.value);
    for text in attributes.chain([&*element.text]) {
        if let Some(character) = text.chars().find(|character| !is_allowed(*character)) {
            return Err(UnwritableDocument::Character {
                element: element.name.clone(),
                character: u32::from(character),
            });
        }
    }
    element.children.iter().try_for_each(check_characters)
}

fn is_allowed(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}
