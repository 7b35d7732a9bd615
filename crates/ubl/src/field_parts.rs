//! Keeps the values of fields as parts if an import empties these fields, because the form of the import does not take
//! them.

use std::collections::{HashMap, HashSet};

use trade_document::TradeDocument;

use crate::beside::{UnmappedPart, is_writer_reference, merge_parts, split_step};
use crate::element::{Element, number_repeated_names, path_step};
use crate::serialize::serialize_fragment;
use crate::write::to_element;

/// The elements directly below the root that are written again whatever is emptied inside of them.
const PARTIES_AND_LINES: [&str; 4] = [
    "cac:AccountingSupplierParty",
    "cac:AccountingCustomerParty",
    "cac:InvoiceLine",
    "cac:CreditNoteLine",
];

/// Returns the unmapped parts that belong to `emptied`, a copy of `document` with some of its fields emptied. `parts`
/// are those of `document`. Each element directly below the root that is no longer written from `emptied`, or is
/// written differently, becomes a part that contains the parts inside it. In a party or a line, only each text that is
/// no longer written becomes a part, with its attributes. The other parts stay as they are. If one of the documents
/// cannot be written, returns `parts`.
pub fn parts_after_emptying(
    document: &TradeDocument,
    emptied: &TradeDocument,
    parts: &[UnmappedPart],
) -> Vec<UnmappedPart> {
    let (Ok(mut whole), Ok(rest)) = (to_element(document), to_element(emptied)) else {
        return parts.to_vec();
    };
    let written: HashSet<_> = rest.children.iter().map(serialize_fragment).collect();
    let children = whole.children.iter().enumerate();
    let gone = children.filter(|(_, child)| {
        !PARTIES_AND_LINES.contains(&&*child.name) && !written.contains(&serialize_fragment(child))
    });
    let gone: Vec<_> = gone.map(|(place, _)| place).collect();
    let numbers = numbers_after_removal(&whole, &gone);
    let texts = emptied_texts(&whole, &rest);
    let places = texts.iter().map(|text| comparable_path(&text.place));
    let places: HashSet<_> = places.collect();
    let mut own = Vec::new();
    let mut others = Vec::new();
    for part in parts {
        let element = part.path.split_once("/@").map(|(element, _)| element);
        if element.is_some_and(|element| places.contains(&comparable_path(element))) {
            own.push(part.clone());
            continue;
        }
        match path_after_removal(&part.path, &numbers) {
            Some(path) => others.push(UnmappedPart {
                path,
                value: part.value.clone(),
            }),
            None => own.push(part.clone()),
        }
    }
    merge_parts(&mut whole, &own);
    let path = format!("/{}", whole.name);
    let elements = gone.iter().map(|place| UnmappedPart {
        path: path.clone(),
        value: serialize_fragment(&whole.children[*place]),
    });
    // The texts are collected again, because they now have the attributes that `merge_parts` added.
    let texts = emptied_texts(&whole, &rest).into_iter();
    let texts = texts.map(|text| text.part);
    elements.chain(texts).chain(others).collect()
}

/// A text that a document no longer writes, with the path of its element.
struct EmptiedText {
    place: String,
    part: UnmappedPart,
}

/// Returns the texts in the parties and the lines of `whole` that `rest` does not have there.
fn emptied_texts(whole: &Element, rest: &Element) -> Vec<EmptiedText> {
    let mut texts = Vec::new();
    for name in PARTIES_AND_LINES {
        let names = whole.children_named(name).map(|child| &*child.name);
        let names: Vec<_> = names.collect();
        let numbers = number_repeated_names(names.into_iter());
        let pairs = whole.children_named(name).zip(rest.children_named(name));
        for ((child, other), number) in pairs.zip(numbers) {
            let path = format!("/{}/{}", whole.name, path_step(name, number));
            add_emptied_texts(child, Some(other), &path, &mut texts);
        }
    }
    texts
}

fn add_emptied_texts(
    whole: &Element,
    rest: Option<&Element>,
    path: &str,
    texts: &mut Vec<EmptiedText>,
) {
    for child in &whole.children {
        // Elements that occur more than once are skipped: no field that they come from is emptied, and they could not
        // be told apart.
        if whole.children_named(&child.name).nth(1).is_some() {
            continue;
        }
        let other = rest.and_then(|rest| rest.at(&child.name));
        let place = format!("{path}/{}", child.name);
        if !child.children.is_empty() {
            add_emptied_texts(child, other, &place, texts);
        } else if other.is_none() {
            let part = UnmappedPart {
                path: path.to_owned(),
                value: serialize_fragment(child),
            };
            texts.push(EmptiedText { place, part });
        }
    }
}

/// Returns a path without the number of elements that are the first of their name, and with the names that an invoice
/// has, because a negative invoice becomes a credit note.
fn comparable_path(path: &str) -> String {
    path.replace("[1]", "").replace("CreditNote", "Invoice")
}

/// For each name of elements directly below the root: the number that each of these elements has after some were
/// removed; `None` for a removed one.
type NumbersByName = HashMap<String, Vec<Option<usize>>>;

fn numbers_after_removal(root: &Element, gone: &[usize]) -> NumbersByName {
    let gone: HashSet<_> = gone.iter().collect();
    let mut counts = HashMap::new();
    let mut numbers = NumbersByName::new();
    for (place, child) in root.children.iter().enumerate() {
        if is_writer_reference(child) {
            continue;
        }
        let stays = !gone.contains(&place);
        let count = counts.entry(child.name.as_str()).or_insert(0_usize);
        *count += usize::from(stays);
        let number = stays.then_some(*count);
        numbers.entry(child.name.clone()).or_default().push(number);
    }
    numbers
}

/// Returns the path that a part has after elements directly below the root were removed; `None` if the part is in one
/// of them.
fn path_after_removal(path: &str, numbers: &NumbersByName) -> Option<String> {
    let steps: Vec<_> = path.splitn(4, '/').collect();
    let [_, root, child, below @ ..] = steps.as_slice() else {
        return Some(path.to_owned());
    };
    let Some((name, number)) = split_step(child) else {
        return Some(path.to_owned());
    };
    let place = number.checked_sub(1);
    let same = numbers.get(name);
    let after = match place.and_then(|place| same?.get(place)) {
        None => number,
        Some(stays) => (*stays)?,
    };
    if after == number {
        return Some(path.to_owned());
    }
    let below = below.first().map(|rest| format!("/{rest}"));
    let below = below.unwrap_or_default();
    Some(format!("/{root}/{name}[{after}]{below}"))
}
