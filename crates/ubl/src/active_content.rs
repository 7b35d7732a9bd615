//! Elements and attributes on which a browser acts when it opens XML, such as a script in the namespace of XHTML. No
//! invoice needs them, so they are neither kept nor written.

use crate::element::Element;
use crate::serialize::split_namespace;

/// The namespaces of XHTML, SVG, `MathML` and XSLT.
const ACTIVE_NAMESPACES: [&str; 4] = [
    "http://www.w3.org/1999/xhtml",
    "http://www.w3.org/2000/svg",
    "http://www.w3.org/1998/Math/MathML",
    "http://www.w3.org/1999/XSL/Transform",
];

/// True for the name of an element or attribute in one of `ACTIVE_NAMESPACES`.
pub(crate) fn is_active(name: &str) -> bool {
    active_namespace(name).is_some()
}

fn active_namespace(name: &str) -> Option<&str> {
    let (namespace, _) = split_namespace(name)?;
    Some(namespace).filter(|namespace| ACTIVE_NAMESPACES.contains(namespace))
}

/// Finds everything active in a tree. Calls `report` with the namespace and with the element that is active, or that
/// has the active attribute. What stands inside of an active element is not reported.
pub(crate) fn find_active_content<'a>(
    element: &'a Element,
    report: &mut impl FnMut(&'a Element, &'a str),
) {
    if let Some(namespace) = active_namespace(&element.name) {
        report(element, namespace);
        return;
    }
    let names = element.attributes.iter().map(|attribute| &*attribute.name);
    for namespace in names.filter_map(active_namespace) {
        report(element, namespace);
    }
    for child in &element.children {
        find_active_content(child, report);
    }
}

/// Removes everything active from a tree, and the elements that are empty without it. Returns true if something was
/// removed.
pub(crate) fn remove_active_content(element: &mut Element) -> bool {
    let count = element.attributes.len();
    element
        .attributes
        .retain(|attribute| !is_active(&attribute.name) && !is_declaration(&attribute.name));
    let mut is_changed = element.attributes.len() < count;
    element.children.retain_mut(|child| {
        if is_active(&child.name) {
            is_changed = true;
            return false;
        }
        let has_lost = remove_active_content(child);
        is_changed |= has_lost;
        !has_lost || child.has_content()
    });
    is_changed
}

/// True for an attribute that would be read as the declaration of a namespace. The parser makes no attribute of a
/// declaration, but parts that were stored by an earlier version may have one.
fn is_declaration(name: &str) -> bool {
    name == "xmlns" || name.starts_with("xmlns:")
}
