//! A tree of XML elements. Names get the prefixes `cbc`, `cac` and `ext`, whatever prefixes the XML has. A name in
//! another namespace is written `{namespace}name`.

use std::cell::Cell;
use std::collections::HashMap;

/// The name of the attribute that says the currency of an amount.
pub(crate) const CURRENCY: &str = "currencyID";
/// The name of the attribute that says the unit of a quantity.
pub(crate) const UNIT: &str = "unitCode";

#[derive(Debug, Clone, Default)]
pub(crate) struct Element {
    pub name: String,
    pub attributes: Vec<Attribute>,
    pub text: String,
    pub children: Vec<Element>,
    /// The number of the element in the order of the text; zero if the tree was not read from a text.
    pub id: u32,
    /// The number among the siblings with the same name, counted from one; zero if there is no such sibling.
    pub number: u32,
    /// True if the writer invented the content, because the document has none.
    pub is_default: bool,
    /// True once the text was read into a field of the document.
    is_read: Cell<bool>,
    /// True once the element with all its content was turned into something else, so that it need not be kept as a
    /// part.
    is_converted: Cell<bool>,
}

#[derive(Debug, Clone)]
pub(crate) struct Attribute {
    pub name: String,
    pub value: String,
    pub is_read: Cell<bool>,
}

impl Element {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    pub fn leaf(name: &str, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::new(name)
        }
    }

    pub fn with_attribute(mut self, name: &str, value: &str) -> Self {
        self.attributes.push(Attribute {
            name: name.to_owned(),
            value: value.to_owned(),
            is_read: Cell::new(false),
        });
        self
    }

    /// Adds a child, unless it has neither a text nor children, because UBL forbids empty elements.
    pub fn push(&mut self, child: Self) {
        if !child.text.is_empty() || !child.children.is_empty() {
            self.children.push(child);
        }
    }

    pub fn with(mut self, child: Self) -> Self {
        self.push(child);
        self
    }

    /// Adds a leaf with this text, if there is one.
    pub fn push_text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.push(Self::leaf(name, text));
        }
    }

    /// True if the element holds information. A basic element of UBL (`cbc`) without a text holds none, even if it has
    /// attributes.
    pub fn has_content(&self) -> bool {
        let is_basic = self.name.starts_with("cbc:");
        !self.text.trim().is_empty()
            || !(is_basic || self.attributes.is_empty())
            || self.children.iter().any(Self::has_content)
    }

    pub fn with_default_mark(mut self) -> Self {
        self.is_default = true;
        self
    }

    pub fn children_named<'a, 'n>(
        &'a self,
        name: &'n str,
    ) -> impl Iterator<Item = &'a Self> + use<'a, 'n> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Returns the first element at a path of names such as `cac:Party/cbc:EndpointID`.
    pub fn at(&self, path: &str) -> Option<&Self> {
        path.split('/')
            .try_fold(self, |element, name| element.children_named(name).next())
    }

    /// Returns the text at a path with its white space folded, and marks it as read. `None` if there is no text.
    pub fn text_at(&self, path: &str) -> Option<String> {
        self.at(path)?.folded_text()
    }

    /// Returns the text with its white space folded, and marks it as read. `None` if there is no text. The element is
    /// then not marked, because no field of the document holds it.
    pub fn folded_text(&self) -> Option<String> {
        let text = fold_spaces(&self.text);
        let text = Some(text).filter(|text| !text.is_empty())?;
        self.mark_read();
        Some(text)
    }

    /// Returns the text with the white space of each line folded, and marks it as read. `None` if there is no text.
    pub fn folded_lines(&self) -> Option<String> {
        let lines: Vec<_> = self.text.lines().map(fold_spaces).collect();
        let text = lines.join("\n").trim().to_owned();
        let text = Some(text).filter(|text| !text.is_empty())?;
        self.mark_read();
        Some(text)
    }

    /// Returns the text at a path with its white space folded, without marking it as read; empty if there is none.
    pub fn peek_at(&self, path: &str) -> String {
        self.at(path)
            .map(|element| fold_spaces(&element.text))
            .unwrap_or_default()
    }

    /// Returns an attribute, without white space at its ends, and marks it as read. `None` if it has no text.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let attribute = self.attributes.iter().find(|one| one.name == name)?;
        attribute.is_read.set(true);
        Some(attribute.value.trim()).filter(|value| !value.is_empty())
    }

    pub fn mark_read(&self) {
        self.is_read.set(true);
    }

    pub fn mark_all_read(&self) {
        self.mark_read();
        self.children.iter().for_each(Self::mark_all_read);
        for attribute in &self.attributes {
            attribute.is_read.set(true);
        }
    }

    pub fn mark_converted(&self) {
        self.is_converted.set(true);
    }

    pub fn is_converted(&self) -> bool {
        self.is_converted.get()
    }

    pub fn is_read(&self) -> bool {
        self.is_read.get()
    }
}

/// Returns the path of an element, such as `/Invoice/cac:InvoiceLine[2]/cbc:ID`. A name has a number if several
/// siblings have this name.
pub(crate) fn path(root: &Element, target: &Element) -> String {
    let mut path = format!("/{}", root.name);
    let mut element = root;
    while element.id != target.id {
        let after = element
            .children
            .partition_point(|child| child.id <= target.id);
        let Some(index) = after.checked_sub(1) else {
            break;
        };
        let child = &element.children[index];
        path.push('/');
        path.push_str(&path_step(&child.name, child.number));
        element = child;
    }
    path
}

/// Returns one part of a path. The number is zero for an element without siblings of its name.
pub(crate) fn path_step(name: &str, number: u32) -> String {
    if number == 0 {
        name.to_owned()
    } else {
        format!("{name}[{number}]")
    }
}

/// Numbers the elements of each name that occurs more than once, from one. The numbers of the others are zero.
pub(crate) fn number_repeated_names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<u32> {
    let mut totals = HashMap::new();
    for name in names.clone() {
        *totals.entry(name).or_insert(0) += 1;
    }
    let mut counts = HashMap::new();
    names
        .map(|name| {
            let count = counts.entry(name).or_insert(0);
            *count += 1;
            if totals.get(name) == Some(&1) {
                0
            } else {
                *count
            }
        })
        .collect()
}

/// Replaces every run of white space by one blank, and removes white space at both ends.
pub(crate) fn fold_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
