//! The parts of a UBL document for which a trade document has no field. They are kept as texts and written again when
//! the document is written as UBL later.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::active_content::{is_active, remove_active_content};
use crate::element::{Attribute, Element, number_repeated_names, path_step};
use crate::fixed_texts::{IRN_DESCRIPTION, TAX_CURRENCY_DESCRIPTION};
use crate::order;
use crate::parse::{CAC, CBC, EXT, Limits, parse};
use crate::serialize::serialize_fragment;

/// The end of the path of a base quantity. The writer leaves out a base quantity of one.
const BASE_QUANTITY: &str = "/cbc:BaseQuantity";

/// A part of a UBL document for which a trade document has no field: an element or an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmappedPart {
    /// The path of the element's parent, or of the attribute, such as `/Invoice/cac:InvoiceLine[2]` or
    /// `/Invoice/cbc:ID/@schemeID`. The numbers count only elements that were read into fields.
    pub path: String,
    /// The element as XML with the prefixes `cbc`, `cac` and `ext`, or the value of the attribute.
    pub value: String,
}

impl UnmappedPart {
    /// True if the part is a whole element directly below the root.
    pub fn is_root_child(&self) -> bool {
        self.path.matches('/').count() == 1
    }

    /// Returns the name of an element directly below the root: the part itself, or the element that contains the part.
    pub fn root_child(&self) -> &str {
        let step = self.path.split('/').nth(2).unwrap_or_else(|| {
            let tag = self.value.trim_start_matches('<');
            tag.split([' ', '/', '>']).next().unwrap_or_default()
        });
        step.split('[').next().unwrap_or_default()
    }
}

/// Returns everything in the tree that was not read into a field, without what is active. Parts inside of elements that
/// were read come first.
pub(crate) fn collect_unmapped_parts(root: &Element) -> Vec<UnmappedPart> {
    let mut all = Vec::new();
    collect_parts_in(root, &format!("/{}", root.name), &mut all);
    all
}

fn collect_parts_in(element: &Element, path: &str, parts: &mut Vec<UnmappedPart>) {
    let attributes = element.attributes.iter();
    for attribute in attributes.filter(|one| !one.is_read.get() && !is_active(&one.name)) {
        parts.push(UnmappedPart {
            path: format!("{path}/@{}", attribute.name),
            value: attribute.value.clone(),
        });
    }
    let children = element
        .children
        .iter()
        .filter(|child| !child.is_converted() && !is_active(&child.name));
    let touched = children
        .clone()
        .filter(|child| is_mapped(child) && !is_writer_reference(child));
    let touched: Vec<_> = touched.collect();
    let all = number_repeated_names(touched.iter().map(|child| &*child.name));
    for (child, number) in touched.into_iter().zip(all) {
        collect_parts_in(
            child,
            &format!("{path}/{}", path_step(&child.name, number)),
            parts,
        );
    }
    for child in children.filter(|child| !is_mapped(child) && child.has_content()) {
        let mut kept = child.clone();
        if remove_active_content(&mut kept) && !kept.has_content() {
            continue;
        }
        parts.push(UnmappedPart {
            path: path.to_owned(),
            value: serialize_fragment(&kept),
        });
    }
}

fn is_mapped(element: &Element) -> bool {
    element.is_read() || element.is_converted() || element.children.iter().any(is_mapped)
}

/// Puts the parts back into a tree that the writer made. A part that has no place there is left out: an element that
/// the writer has already written from a field, a child of an element that no longer exists, or an element that this
/// kind of document does not allow.
pub(crate) fn merge_parts(root: &mut Element, parts: &[UnmappedPart]) {
    // The reader did not count the reference that holds the IRN, so it is taken out while paths with numbers are
    // resolved.
    let irn = root.children.iter().position(is_writer_reference);
    let irn = irn.map(|place| (place, root.children.remove(place)));
    let mut parts: Vec<_> = parts.iter().collect();
    // The numbers in paths count only elements that were read, so they would be wrong after whole elements are added to
    // the same parent. The deepest parts are therefore added first.
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
    remove_untaxed_rates(root);
}

/// True if the writer made the reference for a field of the document, so that it refers to no other document.
pub(crate) fn is_writer_reference(element: &Element) -> bool {
    let own = [IRN_DESCRIPTION, TAX_CURRENCY_DESCRIPTION];
    element.name == "cac:AdditionalDocumentReference"
        && own.contains(&element.peek_at("cbc:DocumentDescription").as_str())
}

fn merge_part(root: &mut Element, lines: &[usize], part: &UnmappedPart) -> Option<()> {
    let is_credit_note = root.name == "CreditNote";
    let (path, attribute) = match part.path.split_once("/@") {
        Some((path, attribute)) => (path, Some(attribute)),
        None => (&*part.path, None),
    };
    let steps = path.trim_start_matches('/').split('/').skip(1);
    if attribute.is_some() && !path.ends_with(BASE_QUANTITY) {
        // An attribute is dropped if its element is not there: made only for the attribute, the element would be empty.
        let mut own = steps.clone();
        own.try_fold(&*root, |element, step| {
            let (name, number) = split_step(step)?;
            let name = translate_name(name, is_credit_note);
            let place = child_index(element, lines, &name, number)?;
            element.children.get(place)
        })?;
    }
    let mut parent = root;
    for step in steps {
        parent = child_at_step(parent, lines, step, is_credit_note)?;
    }
    let Some(name) = attribute else {
        let mut element = parse_fragment(&part.value)?;
        let is_type = ["cbc:InvoiceTypeCode", "cbc:CreditNoteTypeCode"].contains(&&*element.name);
        element.name = translate_name(&element.name, is_credit_note);
        // The type code of an invoice does not fit a credit note, and the other way round.
        if is_type && !path.starts_with(&format!("/{}", parent.name)) {
            return None;
        }
        return add_element(parent, element);
    };
    if path.ends_with(BASE_QUANTITY) && parent.text.is_empty() {
        // The writer leaves out a base quantity of one, so this quantity is added to carry the attribute.
        "1".clone_into(&mut parent.text);
    }
    set_attribute(parent, name, &part.value);
    Some(())
}

/// Removes the rate from lines that are not subject to tax (BR-O-05). The reader has copied it from the document's tax.
fn remove_untaxed_rates(element: &mut Element) {
    if element.name == "cac:ClassifiedTaxCategory" && element.peek_at("cbc:ID") == "O" {
        element.children.retain(|child| child.name != "cbc:Percent");
    }
    element.children.iter_mut().for_each(remove_untaxed_rates);
}

/// Returns the name and the number in a step of a path. A step without a number is the first of its name.
pub(crate) fn split_step(step: &str) -> Option<(&str, usize)> {
    match step.strip_suffix(']').and_then(|step| step.split_once('[')) {
        Some((name, number)) => Some((name, number.parse().ok()?)),
        None => Some((step, 1)),
    }
}

/// Returns the index of the child with this name and number among the children of an element.
fn child_index(parent: &Element, lines: &[usize], name: &str, number: usize) -> Option<usize> {
    let index = number.checked_sub(1)?;
    if is_line(name) {
        return lines.get(index).copied();
    }
    let children = parent.children.iter().enumerate();
    let mut same = children.filter(|(_, child)| child.name == name);
    same.nth(index).map(|(place, _)| place)
}

/// Returns the child at a step of a path. Adds an empty one if it is the next of its name. `lines` holds the positions
/// of the lines among the root's children, so that documents with many lines are fast.
fn child_at_step<'a>(
    parent: &'a mut Element,
    lines: &[usize],
    step: &str,
    is_credit_note: bool,
) -> Option<&'a mut Element> {
    let (name, number) = split_step(step)?;
    let name = translate_name(name, is_credit_note);
    let place = child_index(parent, lines, &name, number);
    if let (None, false) = (place, is_line(&name)) {
        let count = parent.children_named(&name).count();
        let allowed = order::child_place(&parent.name, &name)?;
        if number != count + 1 || (count > 0 && !allowed.repeats) {
            return None;
        }
        parent.children.push(Element::new(&name));
        return parent.children.last_mut();
    }
    parent.children.get_mut(place?)
}

fn is_line(name: &str) -> bool {
    matches!(name, "cac:InvoiceLine" | "cac:CreditNoteLine")
}

/// Returns the name that an element of this name has in this kind of document: an invoice and a credit note have other
/// names for some elements.
fn translate_name(name: &str, is_credit_note: bool) -> String {
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

/// Sets an attribute. Replaces the value that the writer set, which may be a unit that the reader changed.
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
    let repeats = match order::child_place(&parent.name, &element.name) {
        Some(place) => place.repeats,
        None if order::has_known_children(&parent.name) => return None,
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
        Some(child) if child.is_default || repeats_code_name(child, &element) => *child = element,
        // The writer has already made this element for a field, and it may occur only once. So the children of the part
        // are added to it.
        Some(child) if !repeats => {
            for part in element.children {
                add_element(child, part);
            }
        }
        _ => parent.children.push(element),
    }
    Some(())
}

/// True if `text`, which the writer made, only repeats the name of `code`, from which the reader took it.
fn repeats_code_name(text: &Element, code: &Element) -> bool {
    let mut attributes = code.attributes.iter();
    code.name == "cbc:IndustryClassificationCode"
        && attributes.any(|one| one.name == "name" && one.value.trim() == text.text)
}

pub(crate) fn parse_fragment(xml: &str) -> Option<Element> {
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
