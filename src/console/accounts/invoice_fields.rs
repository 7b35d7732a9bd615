//! The fields of a stored invoice that a person can change: their names (those of Update Invoice), their labels and
//! present values, and the body of Update Invoice that a submitted form becomes.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::console::form_values::FormValues;
use crate::console::typed_amount;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::stored_document::{stored_path, type_code};
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::money::Amount;
use crate::domain::party::Address;
use crate::domain::reference::catalog::Catalog;
use crate::http::stored_invoice::StoredInvoice;

/// A field of the form: its name, its label and the type of its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EditField {
    pub(super) name: String,
    pub(super) label: String,
    pub(super) kind: &'static str,
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
    /// The name of the checkbox that removes the line from the invoice; empty if the group is not a line.
    pub(super) removal: String,
}

const HEADER_FIELDS: [(&str, &str); 3] = [
    ("due_date", "Due date"),
    ("note", "Note"),
    ("original_invoice_reference", "Corrects the invoice (IRN)"),
];
const CUSTOMER_FIELDS: [(&str, &str); 10] = [
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
const LINE_FIELDS: [(&str, &str); 12] = [
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
/// The fields of a line whose values are numbers in the body.
const AMOUNTS: [&str; 4] = ["quantity", "unit_price", "discount_rate", "discount_amount"];
/// The last part of the name of the checkbox that removes a line from the invoice.
const REMOVAL: &str = "remove";
/// The maximum number of lines that the form can show. An invoice with more must be corrected in the system that made
/// it.
pub(super) const LINES_MAX: usize = 100;

/// The members of the body that are not fields of the form.
const TYPE: &str = "invoice_type";
const CATEGORY: &str = "invoice_category";

/// Returns the fields in groups, for a form with all of them.
pub(super) fn field_groups(invoice: &Invoice) -> Vec<FieldGroup> {
    let group = |title: String, fields: Vec<EditField>, removal: String| FieldGroup {
        title,
        fields,
        removal,
    };
    let header = HEADER_FIELDS
        .iter()
        .map(|(name, _)| edit_field((*name).to_owned()));
    let header = group("Document".to_owned(), header.collect(), String::new());
    let lines = (0..invoice.lines.len()).map(|at| {
        group(
            format!("Line {}", at + 1),
            line_fields(at),
            format!("lines.{at}.{REMOVAL}"),
        )
    });
    let customer = CUSTOMER_FIELDS
        .iter()
        .map(|(name, _)| edit_field(format!("customer.{name}")));
    let customer = group("Customer".to_owned(), customer.collect(), String::new());
    [header]
        .into_iter()
        .chain(lines)
        .chain([customer])
        .collect()
}

/// Returns the fields of the line with this index.
pub(super) fn line_fields(line_index: usize) -> Vec<EditField> {
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
    let known: BTreeSet<_> = field_groups(invoice)
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
    EditField {
        label: field_label(&name),
        kind: if name.ends_with("_date") {
            "date"
        } else {
            "text"
        },
        name,
    }
}

/// Returns the label of the field at a path of the stored invoice. A path without a label is returned as it is.
pub(super) fn field_label(path: &str) -> String {
    let found = |names: &[(&str, &'static str)], name: &str| {
        let entry = names.iter().find(|(known, _)| *known == name);
        entry.map(|(_, label)| *label)
    };
    let known = if let Some(name) = path.strip_prefix("customer.") {
        found(&CUSTOMER_FIELDS, name).map(str::to_owned)
    } else if let Some((at, name)) = split_line_path(path) {
        found(&LINE_FIELDS, name).map(|label| format!("Line {}, {label}", at + 1))
    } else {
        found(&HEADER_FIELDS, path).map(str::to_owned)
    };
    known.unwrap_or_else(|| path.to_owned())
}

/// Returns a sentence about the field at `path` with the label of the field instead of its path.
pub(super) fn replace_path(sentence: &str, path: &str, label: &str) -> String {
    let named = |name: &str| format!("The {name} field");
    sentence.replacen(&named(path), &named(label), 1)
}

/// Splits `lines.0.quantity` into the index of the line and the name of its field.
fn split_line_path(path: &str) -> Option<(usize, &str)> {
    let (at, name) = path.strip_prefix("lines.")?.split_once('.')?;
    Some((at.parse().ok()?, name))
}

/// Returns the name of the field that holds the value at this path of the document for the authority.
pub(super) fn field_name(invoice: &Invoice, catalog: &Catalog, document_path: &str) -> String {
    form_field_name(&stored_path(invoice, catalog, document_path))
}

/// Returns the name of the field at a path of the stored invoice.
pub(super) fn form_field_name(stored: &str) -> String {
    match stored.strip_prefix("invoice_lines.") {
        Some(rest) => format!("lines.{rest}"),
        None => stored.to_owned(),
    }
}

/// Returns the present values of all fields, and also of members that the form does not show.
pub(super) fn current_values(stored: &StoredInvoice, catalog: &Catalog) -> FormValues {
    let invoice = &stored.invoice;
    let mut pairs = header_values(stored, catalog);
    for (at, line) in invoice.lines.iter().enumerate() {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let amount =
            |value: Option<Amount>| value.map(|value| value.to_string()).unwrap_or_default();
        let description = line.extras.get("description").and_then(Value::as_str);
        let values = [
            ("item_name", line.item_name.clone()),
            ("item_no", text(&line.item_no)),
            ("item_type", line.item_type.to_string()),
            ("product_category", text(&line.product_category)),
            ("service_category", text(&line.service_category)),
            ("quantity", line.quantity.to_string()),
            ("price_unit", line.price_unit.clone()),
            ("unit_price", line.unit_price.to_string()),
            ("discount_rate", amount(line.discount_rate)),
            ("discount_amount", amount(line.discount_amount)),
            ("tax_category", line.tax_category.clone()),
            ("description", description.unwrap_or_default().to_owned()),
        ];
        pairs.extend(values.map(|(name, value)| (format!("lines.{at}.{name}"), value)));
    }
    pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

fn header_values(stored: &StoredInvoice, catalog: &Catalog) -> Vec<(String, String)> {
    let invoice = &stored.invoice;
    let shown = &invoice.customer;
    let details = stored.customer();
    let address = details.map(|details| &details.address);
    let of_address =
        |part: fn(&Address) -> Option<&str>| address.and_then(part).unwrap_or_default().to_owned();
    let kind = type_code(invoice, catalog).unwrap_or_else(|| invoice.invoice_type.clone());
    let due = invoice
        .due_date
        .map(|due| due.to_string())
        .unwrap_or_default();
    let note = invoice.extras.get("note").and_then(Value::as_str);
    let original = stored
        .original_irn()
        .map(ToString::to_string)
        .unwrap_or_default();
    let business = details.and_then(|details| details.business_description.clone());
    let values = [
        (CATEGORY, invoice.category.to_string()),
        (TYPE, kind),
        ("due_date", due),
        ("note", note.unwrap_or_default().to_owned()),
        ("original_invoice_reference", original),
        ("customer.no", shown.external_customer_no.clone()),
        ("customer.name", shown.name.clone()),
        ("customer.email", shown.email.clone()),
        ("customer.tin", shown.tin.clone().unwrap_or_default()),
        (
            "customer.business_description",
            business.unwrap_or_default(),
        ),
        (
            "customer.address_street_name",
            of_address(|address| Some(&address.street_name)),
        ),
        (
            "customer.address_city",
            of_address(|address| Some(&address.city)),
        ),
        (
            "customer.address_state",
            of_address(|address| address.state.as_deref()),
        ),
        (
            "customer.address_postal_code",
            of_address(|address| Some(&address.postal_code)),
        ),
        (
            "customer.address_country",
            of_address(|address| Some(&address.country)),
        ),
    ];
    values
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The body of Update Invoice, and the indexes that its lines have in the form.
pub(super) struct UpdateBody {
    pub(super) body: Map<String, Value>,
    kept: Vec<usize>,
    /// The faults of typed numbers, at the fields of the form. The body contains these numbers as typed, so that the
    /// API refuses them.
    number_faults: Vec<Fault>,
}

impl UpdateBody {
    /// Makes the body from all values. Leaves out lines whose checkbox is ticked.
    pub(super) fn new(invoice: &Invoice, values: &FormValues) -> Self {
        let kept: Vec<_> = (0..invoice.lines.len())
            .filter(|at| values.text(&format!("lines.{at}.{REMOVAL}")).is_empty())
            .collect();
        let header = HEADER_FIELDS.map(|(name, _)| name);
        let mut body = values.to_object(&header);
        body.extend(values.to_object(&[TYPE, CATEGORY]));
        body.insert("unique_no".to_owned(), json!(invoice.id.to_string()));
        let by_id = UniqueNoType::PortalId.as_str();
        body.insert("unique_no_type".to_owned(), json!(by_id));
        let customer = CUSTOMER_FIELDS.map(|(name, _)| name);
        let mut number_faults = Vec::new();
        let customer = object_below_path(values, "customer", &customer, &mut number_faults);
        body.insert("customer".to_owned(), customer);
        let line = LINE_FIELDS.map(|(name, _)| name);
        let lines = kept
            .iter()
            .map(|at| object_below_path(values, &format!("lines.{at}"), &line, &mut number_faults));
        body.insert("lines".to_owned(), lines.collect());
        Self {
            body,
            kept,
            number_faults,
        }
    }

    /// Renames the paths of faults to fields of the form. For typed numbers, says how to write them.
    pub(super) fn to_form_faults(&self, faults: &Faults) -> Faults {
        let renamed = faults
            .clone()
            .rename_fields(|path| match split_line_path(path) {
                Some((at, name)) => {
                    let at = self.kept.get(at).copied().unwrap_or(at);
                    format!("lines.{at}.{name}")
                }
                None => path.to_owned(),
            });
        renamed.map(|fault| {
            let typed = self.number_faults.iter();
            let mut typed = typed.filter(|typed| typed.path == fault.path);
            typed.next().cloned().unwrap_or(fault)
        })
    }
}

/// Makes a JSON object of the fields below a path, without blank ones. Adds the faults of its numbers to `faults`.
fn object_below_path(
    values: &FormValues,
    below: &str,
    names: &[&str],
    faults: &mut Vec<Fault>,
) -> Value {
    let mut filled = Map::new();
    for name in names {
        let path = format!("{below}.{name}");
        let text = values.text(&path);
        if text.is_empty() {
            continue;
        }
        let mut value = json!(text);
        if AMOUNTS.contains(name) {
            match typed_amount::parse(text) {
                Ok(amount) => value = json!(amount),
                Err(rule) => faults.push(Fault::field(path, rule)),
            }
        }
        filled.insert((*name).to_owned(), value);
    }
    Value::Object(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

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
