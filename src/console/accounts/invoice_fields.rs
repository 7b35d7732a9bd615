//! The fields of the forms about an invoice: their names (those of Create Invoice (Standard) and Update Invoice), their
//! labels, and the groups in which a page shows them.

use std::collections::BTreeSet;

use crate::console::form_values::FormValues;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::stored_document::stored_path;
use crate::domain::reference::catalog::Catalog;
use crate::http::respond::error::capitalize;

/// A field of a form: its name, its label and the type of its input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EditField {
    pub(super) name: String,
    pub(super) label: String,
    pub(super) kind: &'static str,
    pub(super) hint: &'static str,
    /// The values of which one is chosen, each with its label; empty for a field with an input.
    pub(super) options: Vec<(String, String)>,
    /// The id of the list of values that the page suggests; empty if it suggests none.
    pub(super) list: &'static str,
    /// True if the page shows the value, but does not let the person change it.
    pub(super) is_fixed: bool,
    /// True for the field at which the person goes on.
    pub(super) has_focus: bool,
}

impl EditField {
    /// True if the value may have several lines.
    pub(super) fn is_multiline(&self) -> bool {
        self.name == "note" || self.name.ends_with(".description")
    }
}

/// Fields under one heading.
#[derive(Debug)]
pub(super) struct FieldGroup {
    pub(super) title: String,
    pub(super) fields: Vec<EditField>,
    /// The name of the field that removes the line from the invoice; empty if the group is not a line.
    pub(super) removal_field: String,
    /// True for a line that was added in the form. It is removed at once, not only when the form is saved.
    pub(super) is_added: bool,
}

impl FieldGroup {
    /// True if the number of the customer cannot be changed.
    pub(super) fn has_fixed_customer(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|field| field.is_fixed && field.name == "customer.no")
    }
}

/// The lines in a form: those that the stored invoice has, and those that were added in the form. A form for a new
/// document has only added lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FormLines {
    pub(super) stored: usize,
    pub(super) all: usize,
}

impl FormLines {
    pub(super) fn from_invoice(invoice: &Invoice) -> Self {
        let stored = invoice.lines.len();
        Self {
            stored,
            all: stored,
        }
    }

    /// Returns the lines of a form that was sent. A form has at least one line.
    pub(super) fn from_form(stored: usize, values: &FormValues) -> Self {
        let sent = values.text(LINE_COUNT).parse().unwrap_or(0_usize);
        let least = stored.max(1);
        Self {
            stored,
            all: sent.clamp(least, LINES_MAX.max(least)),
        }
    }
}

/// The fields that only a form for a new document has.
pub(super) const NEW_FIELDS: [(&str, &str); 5] = [
    ("invoice_no", "Invoice number"),
    ("invoice_type_code", "Invoice type"),
    ("invoice_category", "Category"),
    ("invoice_date", "Issue date"),
    ("currency", "Currency"),
];
pub(super) const HEADER_FIELDS: [(&str, &str); 3] = [
    ("due_date", "Due date"),
    ("note", "Note"),
    ("original_invoice_reference", "Corrects the invoice (IRN)"),
];
pub(super) const CUSTOMER_FIELDS: [(&str, &str); 10] = [
    ("no", "Customer number"),
    ("name", "Customer name"),
    ("email", "Customer email"),
    ("tin", "Customer TIN"),
    ("business_description", "Customer's business"),
    ("address_street_name", "Customer's street"),
    ("address_city", "Customer's city"),
    ("address_state", "Customer's state"),
    ("address_postal_code", "Customer's postal code"),
    ("address_country", "Customer's country"),
];
pub(super) const LINE_FIELDS: [(&str, &str); 12] = [
    ("item_name", "item"),
    ("item_no", "item number"),
    ("item_type", "PRODUCT or SERVICE"),
    ("product_category", "HSN code"),
    ("service_category", "ISIC code"),
    ("quantity", "quantity"),
    ("price_unit", "unit"),
    ("unit_price", "unit price"),
    ("discount_rate", "discount in per cent"),
    ("discount_amount", "discount"),
    ("tax_category", "tax category"),
    ("description", "description"),
];
/// The last part of the name of the field that removes a line from the invoice.
pub(super) const REMOVAL: &str = "remove";
/// The hidden field with the number of lines in the form.
pub(super) const LINE_COUNT: &str = "line_count";
/// The button that adds a line to the form.
pub(super) const ADD_LINE: &str = "add_line";
/// The button that fills in the stored customer with the number in the form.
pub(super) const FIND_CUSTOMER: &str = "find_customer";
/// The hidden field with the number of the stored customer whose data the form showed.
pub(super) const SHOWN_CUSTOMER: &str = "shown_customer";
/// The value that names the field at which the person goes on after a button that only changes the form.
pub(super) const FOCUS: &str = "focus";
/// The maximum number of lines that the form can show. An invoice with more must be corrected in the system that
/// created it.
pub(super) const LINES_MAX: usize = 100;

/// Returns the fields in groups, for a form with all of them.
pub(super) fn field_groups(lines: FormLines) -> Vec<FieldGroup> {
    let group = |title: &str, fields: Vec<EditField>| FieldGroup {
        title: title.to_owned(),
        fields,
        removal_field: String::new(),
        is_added: false,
    };
    let new_fields = if lines.stored == 0 {
        &NEW_FIELDS[..]
    } else {
        &[]
    };
    let header = new_fields
        .iter()
        .chain(&HEADER_FIELDS)
        .map(|(name, _)| edit_field((*name).to_owned()));
    let line_groups = (0..lines.all).map(|index| FieldGroup {
        removal_field: removal_name(index),
        is_added: index >= lines.stored,
        ..group(&format!("Line {}", index + 1), line_fields(index))
    });
    let customer = CUSTOMER_FIELDS
        .iter()
        .map(|(name, _)| edit_field(format!("customer.{name}")));
    [group("Document", header.collect())]
        .into_iter()
        .chain(line_groups)
        .chain([group("Customer", customer.collect())])
        .collect()
}

/// Returns the name of the field that removes the line with this index.
pub(super) fn removal_name(line_index: usize) -> String {
    format!("lines.{line_index}.{REMOVAL}")
}

/// Returns the fields of the line with this index.
fn line_fields(line_index: usize) -> Vec<EditField> {
    let names = LINE_FIELDS.iter();
    names
        .map(|(name, _)| edit_field(format!("lines.{line_index}.{name}")))
        .collect()
}

/// Returns the fields at these paths. Leaves out those that cannot be changed here: the data of a stored customer
/// stays, except that a missing TIN can be added.
pub(super) fn fields_at_paths(
    invoice: &Invoice,
    paths: impl IntoIterator<Item = String>,
) -> Vec<EditField> {
    let known: BTreeSet<_> = field_groups(FormLines::from_invoice(invoice))
        .into_iter()
        .flat_map(|group| group.fields)
        .map(|field| field.name)
        .collect();
    let mut named: Vec<_> = paths
        .into_iter()
        .filter(|path| known.contains(path))
        .filter(|path| {
            !path.starts_with("customer.")
                || (path == "customer.tin" && invoice.customer.tin.is_none())
        })
        .collect();
    named.sort();
    named.dedup();
    named.into_iter().map(edit_field).collect()
}

fn edit_field(name: String) -> EditField {
    let hint = match name.rsplit('.').next() {
        Some("product_category") => "For a product, such as 8471.30",
        Some("service_category") => "For a service, such as 6201",
        Some("price_unit") => "A code such as EA, KGM or HUR",
        _ => "",
    };
    EditField {
        label: field_label(&name),
        kind: if name.ends_with("_date") {
            "date"
        } else {
            "text"
        },
        hint,
        name,
        ..EditField::default()
    }
}

/// Returns the label of the field at a path of the stored invoice. A path without a label is returned as it is.
pub(super) fn field_label(path: &str) -> String {
    find_label(path).unwrap_or_else(|| path.to_owned())
}

/// Returns the label of the field at a path of the stored invoice; `None` if the path has none.
pub(super) fn find_label(path: &str) -> Option<String> {
    let find_in = |names: &[(&str, &'static str)], name: &str| {
        let entry = names.iter().find(|(known, _)| *known == name);
        entry.map(|(_, label)| *label)
    };
    if let Some(name) = path.strip_prefix("customer.") {
        find_in(&CUSTOMER_FIELDS, name).map(str::to_owned)
    } else if let Some((index, name)) = split_line_path(path) {
        find_in(&LINE_FIELDS, name).map(|label| format!("Line {}, {label}", index + 1))
    } else {
        find_in(&HEADER_FIELDS, path)
            .or_else(|| find_in(&NEW_FIELDS, path))
            .map(str::to_owned)
    }
}

/// Returns the label of the field at a path of a request, in which `*` stands for the index of any line. A path without
/// a label is returned as it is.
pub(super) fn request_field_label(path: &str) -> String {
    let name = form_field_name(path);
    let Some(name) = name.strip_prefix("lines.*.") else {
        let label = field_label(&name);
        return if label != name || name.contains(['.', '/', ' ']) {
            label
        } else {
            capitalize(&name.replace('_', " "))
        };
    };
    let found = LINE_FIELDS.iter().find(|(known, _)| *known == name);
    found.map_or_else(
        || path.to_owned(),
        |(_, label)| format!("{} of a line", capitalize(label)),
    )
}

/// Returns a sentence about the field at `path` with the label of the field instead of its path.
pub(super) fn replace_path(sentence: &str, path: &str, label: &str) -> String {
    let named = |name: &str| format!("The {name} field");
    sentence.replacen(&named(path), &named(label), 1)
}

/// Splits `lines.0.quantity` into the index of the line and the name of its field.
pub(super) fn split_line_path(path: &str) -> Option<(usize, &str)> {
    let (index, name) = path.strip_prefix("lines.")?.split_once('.')?;
    Some((index.parse().ok()?, name))
}

/// Returns the name of the form field for a path of the document that the authority gets.
pub(super) fn form_field_for_document_path(
    invoice: &Invoice,
    catalog: &Catalog,
    document_path: &str,
) -> String {
    form_field_name(&stored_path(invoice, catalog, document_path))
}

/// Returns the name of the form field for a path of the stored invoice.
pub(super) fn form_field_name(stored: &str) -> String {
    match stored.strip_prefix("invoice_lines.") {
        Some(rest) => format!("lines.{rest}"),
        None => stored.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_the_lines_of_its_invoice_and_those_that_were_added() {
        for (stored, sent, all) in [
            (0, "", 1),
            (0, "3", 3),
            (0, "100000", LINES_MAX),
            (2, "", 2),
            (2, "1", 2),
            (2, "5", 5),
            (2, "-1", 2),
        ] {
            let values = FormValues::from([(LINE_COUNT, sent)]);
            let lines = FormLines::from_form(stored, &values);
            assert_eq!(lines, FormLines { stored, all }, "{stored} {sent}");
            let groups = field_groups(lines);
            let added = groups.iter().filter(|group| group.is_added).count();
            assert_eq!(added, all - stored, "{stored} {sent}");
            let has_number = groups[0].fields.iter().any(|one| one.name == "invoice_no");
            assert_eq!(has_number, stored == 0, "{stored} {sent}");
        }
    }

    #[test]
    fn a_path_has_the_words_of_a_person() {
        for (path, words) in [
            ("due_date", "Due date"),
            ("customer.tin", "Customer TIN"),
            ("lines.0.product_category", "Line 1, HSN code"),
            ("profile.city", "profile.city"),
            ("lines.x.quantity", "lines.x.quantity"),
        ] {
            assert_eq!(field_label(path), words);
        }
        for (path, words) in [
            ("invoice_lines.*.unit_price", "Unit price of a line"),
            ("invoice_lines.*.product_category", "HSN code of a line"),
            ("invoice_lines.*.odd", "invoice_lines.*.odd"),
            ("customer.email", "Customer email"),
            ("customer", "Customer"),
            ("due_date", "Due date"),
            ("invoice_no", "Invoice number"),
            ("invoice_type_code", "Invoice type"),
            ("payment_means_code", "Payment means code"),
            ("tax_total.*.tax_amount", "tax_total.*.tax_amount"),
            ("/Invoice/cbc:ID", "/Invoice/cbc:ID"),
        ] {
            assert_eq!(request_field_label(path), words);
        }
        let told = "The invoice_line.0.hsn_code field must be a known code.";
        assert_eq!(
            replace_path(told, "invoice_line.0.hsn_code", "Line 1, HSN code"),
            "The Line 1, HSN code field must be a known code."
        );
        assert_eq!(replace_path("It is odd.", "irn", "IRN"), "It is odd.");
        assert_eq!(
            form_field_name("invoice_lines.3.quantity"),
            "lines.3.quantity"
        );
    }
}
