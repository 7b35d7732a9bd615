//! The parts of a UBL document that no field of a trade document carries. They are kept as texts
//! and go back into the UBL that is written later.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use trade_document::TradeDocument;

use crate::element::{Attribute, Element, numbers, step};
use crate::fixed_texts::IRN_DESCRIPTION;
use crate::order;
use crate::parse::{CAC, CBC, EXT, Limits, parse};
use crate::serialize::serialize_fragment;
use crate::write::to_element;

/// A part of a UBL document that no field carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// The path of the parent of an element, or of an attribute, such as
    /// `/Invoice/cac:InvoiceLine[2]` or `/Invoice/cbc:ID/@schemeID`. The numbers count the elements
    /// that the document carries.
    pub path: String,
    /// The element with the prefixes `cbc`, `cac` and `ext`, or the value of the attribute.
    pub value: String,
}

impl Beside {
    /// True if the part is a whole child of the root.
    pub fn is_root_child(&self) -> bool {
        self.path.matches('/').count() == 1
    }

    /// Returns the name of the child of the root that the part is, or belongs to.
    pub fn root_child(&self) -> &str {
        let step = self.path.split('/').nth(2).unwrap_or_else(|| {
            let tag = self.value.trim_start_matches('<');
            tag.split([' ', '/', '>']).next().unwrap_or_default()
        });
        step.split('[').next().unwrap_or_default()
    }
}

/// Returns what stands beside a document after fields of it were emptied: the elements that it lacks
/// now, with their own parts, and the other parts.
pub fn empty_fields(
    document: &TradeDocument,
    emptied: &TradeDocument,
    parts: &[Beside],
) -> Vec<Beside> {
    let (Ok(mut whole), Ok(rest)) = (to_element(document), to_element(emptied)) else {
        return parts.to_vec();
    };
    let rest: HashSet<_> = rest.children.iter().map(serialize_fragment).collect();
    let children = whole.children.iter().enumerate();
    let gone = children.filter(|(_, child)| !rest.contains(&serialize_fragment(child)));
    let gone: Vec<_> = gone
        .map(|(place, child)| (place, child.name.clone()))
        .collect();
    let names: BTreeSet<_> = gone.iter().map(|(_, name)| name.as_str()).collect();
    let (own, others): (Vec<_>, Vec<_>) = parts
        .iter()
        .cloned()
        .partition(|part| !part.is_root_child() && names.contains(part.root_child()));
    merge(&mut whole, &own);
    let path = format!("/{}", whole.name);
    let elements = gone.iter().map(|(place, _)| Beside {
        path: path.clone(),
        value: serialize_fragment(&whole.children[*place]),
    });
    elements.chain(others).collect()
}

/// Returns everything in the tree that nobody has read. What stands inside of read elements comes
/// first.
pub(crate) fn collect(root: &Element) -> Vec<Beside> {
    let mut all = Vec::new();
    collect_in(root, &format!("/{}", root.name), &mut all);
    all
}

fn collect_in(element: &Element, path: &str, parts: &mut Vec<Beside>) {
    let attributes = element.attributes.iter();
    for attribute in attributes.filter(|one| !one.is_read.get()) {
        parts.push(Beside {
            path: format!("{path}/@{}", attribute.name),
            value: attribute.value.clone(),
        });
    }
    let children = element.children.iter().filter(|child| !child.is_gone());
    let touched = children
        .clone()
        .filter(|child| is_touched(child) && !is_irn_reference(child));
    let touched: Vec<_> = touched.collect();
    let all = numbers(touched.iter().map(|child| &*child.name));
    for (child, number) in touched.into_iter().zip(all) {
        collect_in(
            child,
            &format!("{path}/{}", step(&child.name, number)),
            parts,
        );
    }
    for child in children.filter(|child| !is_touched(child) && has_content(child)) {
        parts.push(Beside {
            path: path.to_owned(),
            value: serialize_fragment(child),
        });
    }
}

fn is_touched(element: &Element) -> bool {
    element.is_read() || element.is_gone() || element.children.iter().any(is_touched)
}

fn has_content(element: &Element) -> bool {
    !element.text.trim().is_empty()
        || !element.attributes.is_empty()
        || element.children.iter().any(has_content)
}

/// Puts the parts back into a tree that the writer made. A part without a place in it is left out:
/// an element that the document itself has, a child of an element that has gone, or one that this
/// kind of document does not know.
pub(crate) fn merge(root: &mut Element, parts: &[Beside]) {
    // The reference that holds the IRN has no number among those that were read.
    let irn = root.children.iter().position(is_irn_reference);
    let irn = irn.map(|place| (place, root.children.remove(place)));
    let mut parts: Vec<_> = parts.iter().collect();
    // The numbers in paths count the elements that were read. Whole elements come after those.
    parts.sort_by_key(|part| Reverse(part.path.matches('/').count()));
    let children = root.children.iter().enumerate();
    let lines: Vec<_> = children
        .filter(|(_, child)| is_line(&child.name))
        .map(|(index, _)| index)
        .collect();
    for part in parts {
        merge_part(root, &lines, part);
    }
    if let Some((place, irn)) = irn {
        root.children.insert(place, irn);
    }
    remove_odd_rates(root);
}

fn is_irn_reference(element: &Element) -> bool {
    element.name == "cac:AdditionalDocumentReference"
        && element.peek_at("cbc:DocumentDescription") == IRN_DESCRIPTION
}

fn merge_part(root: &mut Element, lines: &[usize], part: &Beside) -> Option<()> {
    let is_credit_note = root.name == "CreditNote";
    let (path, attribute) = match part.path.split_once("/@") {
        Some((path, attribute)) => (path, Some(attribute)),
        None => (&*part.path, None),
    };
    let steps = path.trim_start_matches('/').split('/').skip(1);
    let mut parent = root;
    for step in steps {
        parent = descend(parent, lines, step, is_credit_note)?;
    }
    let Some(name) = attribute else {
        let mut element = parse_fragment(&part.value)?;
        let is_type = ["cbc:InvoiceTypeCode", "cbc:CreditNoteTypeCode"].contains(&&*element.name);
        element.name = translate(&element.name, is_credit_note);
        // A type that an invoice has is none of a credit note.
        if is_type && !path.starts_with(&format!("/{}", parent.name)) {
            return None;
        }
        return add_element(parent, element);
    };
    if parent.name == "cbc:BaseQuantity" && parent.text.is_empty() {
        // The writer leaves out a base of one.
        "1".clone_into(&mut parent.text);
    }
    set_attribute(parent, name, &part.value);
    Some(())
}

/// Takes the rate from lines that are not subject to tax (BR-O-05). The reader fills in the one of the sum of the tax.
fn remove_odd_rates(element: &mut Element) {
    if element.name == "cac:ClassifiedTaxCategory" && element.peek_at("cbc:ID") == "O" {
        element.children.retain(|child| child.name != "cbc:Percent");
    }
    element.children.iter_mut().for_each(remove_odd_rates);
}

/// Returns the child at a step of a path. Makes the next one if the writer made none. `lines` are
/// the places of the lines in the root, of which there may be many.
fn descend<'a>(
    parent: &'a mut Element,
    lines: &[usize],
    step: &str,
    is_credit_note: bool,
) -> Option<&'a mut Element> {
    let (name, number) = match step.strip_suffix(']').and_then(|step| step.split_once('[')) {
        Some((name, number)) => (name, number.parse().ok()?),
        None => (step, 1_usize),
    };
    let name = translate(name, is_credit_note);
    let index = number.checked_sub(1)?;
    if is_line(&name) {
        return parent.children.get_mut(*lines.get(index)?);
    }
    let count = parent.children_named(&name).count();
    if index == count {
        let place = order::place(&parent.name, &name)?;
        if count > 0 && !place.repeats {
            return None;
        }
        parent.children.push(Element::new(&name));
    }
    parent
        .children
        .iter_mut()
        .filter(|child| child.name == name)
        .nth(index)
}

fn is_line(name: &str) -> bool {
    matches!(name, "cac:InvoiceLine" | "cac:CreditNoteLine")
}

/// Returns the name in an invoice or in a credit note.
fn translate(name: &str, is_credit_note: bool) -> String {
    let pairs = [
        ("cac:InvoiceLine", "cac:CreditNoteLine"),
        ("cbc:InvoicedQuantity", "cbc:CreditedQuantity"),
        ("cbc:InvoiceTypeCode", "cbc:CreditNoteTypeCode"),
    ];
    let pair = pairs
        .iter()
        .find(|(invoice, note)| name == *invoice || name == *note);
    match pair {
        Some((invoice, note)) => if is_credit_note { note } else { invoice }.to_string(),
        None => name.to_owned(),
    }
}

/// Sets an attribute. The writer's own one gives way: it is the unit that the reader mapped.
fn set_attribute(element: &mut Element, name: &str, value: &str) {
    element
        .attributes
        .retain(|attribute| attribute.name != name);
    element.attributes.push(Attribute {
        name: name.to_owned(),
        value: value.to_owned(),
        is_read: false.into(),
    });
}

fn add_element(parent: &mut Element, element: Element) -> Option<()> {
    let repeats = match order::place(&parent.name, &element.name) {
        Some(place) => place.repeats,
        None if order::is_known(&parent.name) => return None,
        None => true,
    };
    if element.name == "cbc:TaxExemptionReasonCode" {
        parent
            .children
            .retain(|child| !(child.is_default && child.name == "cbc:TaxExemptionReason"));
    }
    let same = parent
        .children
        .iter_mut()
        .find(|child| child.name == element.name);
    match same {
        Some(child) if child.is_default => *child = element,
        // The writer has made the element for other fields: the children of this one join it.
        Some(child) if !repeats => {
            for part in element.children {
                add_element(child, part);
            }
        }
        _ => parent.children.push(element),
    }
    Some(())
}

fn parse_fragment(xml: &str) -> Option<Element> {
    let whole = format!(
        "<beside xmlns:cbc=\"{CBC}\" xmlns:cac=\"{CAC}\" xmlns:ext=\"{EXT}\">{xml}</beside>"
    );
    let limits = Limits {
        depth_max: 64,
        ..Limits::default()
    };
    parse(whole.as_bytes(), &limits)
        .ok()?
        .children
        .into_iter()
        .next()
}
