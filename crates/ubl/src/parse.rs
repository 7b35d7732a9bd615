//! Parses bytes into a tree of elements, within limits. A document with a DOCTYPE, or with an entity that XML itself
//! does not define, is refused, so that no text can grow while it is read.

use std::borrow::Cow;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::reader::NsReader;

use crate::element::{Element, number_repeated_names};
use crate::fault::{Cause, Fault};

pub(crate) const CBC: &str = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2";
pub(crate) const CAC: &str =
    "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2";
pub(crate) const EXT: &str =
    "urn:oasis:names:specification:ubl:schema:xsd:CommonExtensionComponents-2";
pub(crate) const INVOICE: &str = "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2";
pub(crate) const CREDIT_NOTE: &str = "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2";
/// The namespace of hints for parsers, such as the location of the schema.
const SCHEMA_INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// The maximum length of the name of an element or attribute. The longest of UBL has 43 characters.
const NAME_BYTES_MAX: usize = 128;
/// The maximum number of namespace declarations that apply to one element, its own and those of the elements around it.
const NAMESPACES_MAX: usize = 256;

/// The limits of a document that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub bytes_max: usize,
    /// The maximum depth of nested elements.
    pub depth_max: usize,
    /// The maximum number of elements and attributes together.
    pub elements_max: usize,
    pub lines_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 20 << 20,
            depth_max: 40,
            elements_max: 500_000,
            lines_max: 10_000,
        }
    }
}

/// Reads the tree of a document.
pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Element, Fault> {
    if bytes.len() > limits.bytes_max {
        let sentence = format!(
            "The document has {} bytes; at most {} are read.",
            bytes.len(),
            limits.bytes_max
        );
        return Err(fault(Cause::Limit, sentence));
    }
    let text = decode_text(bytes)?;
    Parser {
        limits,
        open: Vec::new(),
        root: None,
        count: 0,
        lines: 0,
    }
    .parse_root(&text)
}

struct Parser<'a> {
    limits: &'a Limits,
    /// The elements whose end tag was not read yet, the innermost last.
    open: Vec<Element>,
    root: Option<Element>,
    count: usize,
    lines: usize,
}

impl Parser<'_> {
    fn parse_root(mut self, text: &str) -> Result<Element, Fault> {
        let mut reader = NsReader::from_str(text);
        reader
            .resolver_mut()
            .set_max_namespace_bindings(NAMESPACES_MAX);
        loop {
            let position = reader.buffer_position();
            let event = reader.read_event().map_err(|error| {
                fault(
                    Cause::Xml,
                    format!("The XML ends in an error at byte {position}: {error}."),
                )
            })?;
            match event {
                Event::Start(start) => {
                    let element = self.read_element(&reader, &start)?;
                    self.open.push(element);
                }
                Event::Empty(start) => {
                    let element = self.read_element(&reader, &start)?;
                    self.close_element(element)?;
                }
                Event::End(_) => {
                    if let Some(element) = self.open.pop() {
                        self.close_element(element)?;
                    }
                }
                Event::Text(text) => self.add_text(&text.xml10_content())?,
                Event::CData(text) => self.add_text(&text.xml10_content())?,
                Event::GeneralRef(reference) => {
                    let character = resolve_reference(&reference)?;
                    self.add_text(character.encode_utf8(&mut [0; 4]))?;
                }
                Event::DocType(_) => {
                    let sentence =
                        "The XML has a DOCTYPE, which no UBL document needs and which is not read.";
                    return Err(fault(Cause::Xml, sentence.to_owned()));
                }
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) => {}
                Event::Eof => break,
            }
        }
        match (self.root, self.open.last()) {
            (Some(root), None) => Ok(root),
            (_, Some(open)) => {
                let sentence = format!("The XML ends inside the element {}.", open.name);
                Err(fault(Cause::Xml, sentence))
            }
            (None, None) => Err(fault(Cause::Xml, "The document has no element.".to_owned())),
        }
    }

    fn read_element(
        &mut self,
        reader: &NsReader<&[u8]>,
        start: &BytesStart,
    ) -> Result<Element, Fault> {
        let (namespace, local) = reader.resolver().resolve_element(start.name());
        let mut element = Element::new(&canonical_name(&namespace, local.as_ref())?);
        self.count_node()?;
        element.id = u32::try_from(self.count).unwrap_or(u32::MAX);
        if self.open.len() >= self.limits.depth_max {
            let sentence = format!(
                "More than {} elements stand in each other; deeper ones are not read.",
                self.limits.depth_max
            );
            return Err(fault(Cause::Limit, sentence));
        }
        if matches!(&*element.name, "cac:InvoiceLine" | "cac:CreditNoteLine") {
            self.lines += 1;
            if self.lines > self.limits.lines_max {
                let sentence = format!(
                    "The document has more than {} lines.",
                    self.limits.lines_max
                );
                return Err(fault(Cause::Limit, sentence));
            }
        }
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| {
                fault(Cause::Xml, format!("An attribute is malformed: {error}."))
            })?;
            let (namespace, local) = reader.resolver().resolve_attribute(attribute.key);
            let is_declaration = attribute.key.as_namespace_binding().is_some();
            if is_declaration
                || matches!(&namespace, ResolveResult::Bound(Namespace(SCHEMA_INSTANCE)))
            {
                continue;
            }
            self.count_node()?;
            let value = attribute
                .normalized_value(XmlVersion::Explicit1_0)
                .map_err(|error| {
                    fault(Cause::Xml, format!("An attribute is malformed: {error}."))
                })?;
            let name = match &namespace {
                ResolveResult::Unbound => check_name(local.as_ref())?.to_owned(),
                // Without its namespace it would be another attribute, such as the declaration `xmlns`.
                ResolveResult::Bound(Namespace(root @ (INVOICE | CREDIT_NOTE))) => {
                    format!("{{{root}}}{}", check_name(local.as_ref())?)
                }
                namespace => canonical_name(namespace, local.as_ref())?,
            };
            element = element.with_attribute(&name, &value);
        }
        Ok(element)
    }

    fn count_node(&mut self) -> Result<(), Fault> {
        self.count += 1;
        if self.count > self.limits.elements_max {
            let sentence = format!(
                "The document has more than {} elements and attributes.",
                self.limits.elements_max
            );
            return Err(fault(Cause::Limit, sentence));
        }
        Ok(())
    }

    fn close_element(&mut self, mut element: Element) -> Result<(), Fault> {
        let all = number_repeated_names(element.children.iter().map(|child| &*child.name));
        for (child, number) in element.children.iter_mut().zip(all) {
            child.number = number;
        }
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None if self.root.is_none() => self.root = Some(element),
            None => {
                let sentence = "The XML has more than one outermost element.".to_owned();
                return Err(fault(Cause::Xml, sentence));
            }
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str) -> Result<(), Fault> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => {
                let sentence = "The XML has text outside of its outermost element.".to_owned();
                return Err(fault(Cause::Xml, sentence));
            }
        }
        Ok(())
    }
}

/// Returns the name with the prefix that this crate uses for the namespace.
fn canonical_name(namespace: &ResolveResult, local: &str) -> Result<String, Fault> {
    let local = check_name(local)?;
    Ok(match namespace {
        ResolveResult::Bound(Namespace(CBC)) => format!("cbc:{local}"),
        ResolveResult::Bound(Namespace(CAC)) => format!("cac:{local}"),
        ResolveResult::Bound(Namespace(EXT)) => format!("ext:{local}"),
        ResolveResult::Bound(Namespace(INVOICE | CREDIT_NOTE)) => local.to_owned(),
        ResolveResult::Bound(Namespace(other)) => format!("{{{}}}{local}", check_length(other)?),
        ResolveResult::Unbound => format!("{{}}{local}"),
        ResolveResult::Unknown(prefix) => {
            let sentence = format!("The prefix {prefix} has no namespace.");
            return Err(fault(Cause::Xml, sentence));
        }
    })
}

/// Refuses a name that Namespaces in XML does not allow (section 3), such as one with two colons. The writer would turn
/// what stands before the second one into a prefix, which may mean anything.
fn check_name(local: &str) -> Result<&str, Fault> {
    if !local.is_empty() && local.chars().all(may_stand_in_name) {
        return check_length(local);
    }
    let shown: String = local.chars().take(NAME_BYTES_MAX).collect();
    let sentence = format!("{shown:?} is not the name of an element or attribute.");
    Err(fault(Cause::Xml, sentence))
}

/// True for the letters, digits and signs of names. Of other alphabets, only white space is excluded.
fn may_stand_in_name(letter: char) -> bool {
    if letter.is_ascii() {
        letter.is_ascii_alphanumeric() || "-_.".contains(letter)
    } else {
        !letter.is_whitespace()
    }
}

fn check_length(name: &str) -> Result<&str, Fault> {
    if name.len() <= NAME_BYTES_MAX {
        return Ok(name);
    }
    let sentence = format!("A name has more than {NAME_BYTES_MAX} bytes.");
    Err(fault(Cause::Limit, sentence))
}

/// Returns the character of a reference such as `&amp;` or `&#233;`.
fn resolve_reference(reference: &BytesRef) -> Result<char, Fault> {
    let character = match &*reference.xml10_content() {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "apos" => Some('\''),
        "quot" => Some('"'),
        _ => reference.resolve_char_ref().ok().flatten(),
    };
    character.ok_or_else(|| {
        let sentence = format!(
            "The XML uses the entity {}, which is not read.",
            &**reference
        );
        fault(Cause::Xml, sentence)
    })
}

/// Returns the text of UTF-8, UTF-16 with a byte order mark, or ISO 8859-1 if the XML declares it.
fn decode_text(bytes: &[u8]) -> Result<Cow<'_, str>, Fault> {
    let (bytes, is_utf_16_be) = match bytes {
        [0xFE, 0xFF, text @ ..] => (text, Some(true)),
        [0xFF, 0xFE, text @ ..] => (text, Some(false)),
        [0xEF, 0xBB, 0xBF, text @ ..] | text => (text, None),
    };
    if let Some(is_be) = is_utf_16_be {
        let units = bytes.chunks_exact(2).map(|pair| {
            let pair = [pair[0], pair[1]];
            if is_be {
                u16::from_be_bytes(pair)
            } else {
                u16::from_le_bytes(pair)
            }
        });
        let text: Result<String, _> = char::decode_utf16(units).collect();
        return text.map(Cow::Owned).map_err(|_| {
            fault(
                Cause::Xml,
                "The document is not in UTF-16, as its first bytes say.".to_owned(),
            )
        });
    }
    if declares_latin_1(bytes) {
        return Ok(bytes.iter().map(|byte| char::from(*byte)).collect());
    }
    std::str::from_utf8(bytes)
        .map(Cow::Borrowed)
        .map_err(|error| {
            let sentence = format!(
                "The document is not in UTF-8: byte {} is not text.",
                error.valid_up_to()
            );
            fault(Cause::Xml, sentence)
        })
}

/// True if the XML declares ISO 8859-1. Other parts of ISO 8859, such as ISO 8859-15, have other letters.
fn declares_latin_1(bytes: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).to_lowercase();
    let declaration = start.split_once("?>").map_or("", |(inside, _)| inside);
    ["\"iso-8859-1\"", "'iso-8859-1'"]
        .iter()
        .any(|name| declaration.contains(name))
}

fn fault(cause: Cause, sentence: String) -> Fault {
    Fault {
        cause,
        path: "/".to_owned(),
        sentence,
    }
}
