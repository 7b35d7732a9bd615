//! The bodies of Create Invoice (Standard) and Update Invoice that the forms about an invoice become, and the faults of a
//! body as faults of the form.

use serde_json::{Map, Value, json};

use crate::console::accounts::invoice_fields::{
    CUSTOMER_FIELDS, FormLines, HEADER_FIELDS, LINE_FIELDS, NEW_FIELDS, find_label,
    form_field_name, removal_name, split_line_path,
};
use crate::console::accounts::invoice_values::{CATEGORY, TYPE};
use crate::console::form_values::FormValues;
use crate::console::typed_amount;
use crate::domain::invoice::{Draft, Invoice};
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::field::LONG_TEXT_CHARS_MAX;
use crate::http::forms::reader::{self, AcceptedForm, Reader};
use crate::http::forms::standard_invoice::{self, StandardInvoiceForm};

/// The fields of a line whose values are numbers in the body.
const AMOUNTS: [&str; 4] = ["quantity", "unit_price", "discount_rate", "discount_amount"];

/// The body that a form becomes, and the indexes that its lines have in the form.
pub(super) struct InvoiceBody {
    pub(super) body: Map<String, Value>,
    line_indexes: Vec<usize>,
    /// The faults of typed numbers, at the fields of the form. The body contains these numbers as typed, so that the
    /// API refuses them.
    number_faults: Vec<Fault>,
}

impl InvoiceBody {
    /// Makes the body of Update Invoice from all values of the form.
    pub(super) fn for_update(invoice: &Invoice, values: &FormValues) -> Self {
        let lines = FormLines::from_form(invoice.lines.len(), values);
        let mut invoice_body = Self::with_customer_and_lines("lines", lines, values);
        let header = HEADER_FIELDS.map(|(name, _)| name);
        invoice_body.body.extend(values.to_object(&header));
        invoice_body
            .body
            .extend(values.to_object(&[TYPE, CATEGORY]));
        let by_id = UniqueNoType::PortalId.as_str();
        invoice_body.body.extend([
            ("unique_no".to_owned(), json!(invoice.id.to_string())),
            ("unique_no_type".to_owned(), json!(by_id)),
        ]);
        invoice_body
    }

    /// Makes the body of Create Invoice (Standard) from all values of the form. The body also has the note and the
    /// descriptions of the lines, for which that call has no fields.
    pub(super) fn for_new_document(values: &FormValues) -> Self {
        let lines = FormLines::from_form(0, values);
        let mut invoice_body = Self::with_customer_and_lines("invoice_lines", lines, values);
        let header = HEADER_FIELDS.map(|(name, _)| name);
        invoice_body.body.extend(values.to_object(&header));
        let new_names = NEW_FIELDS.map(|(name, _)| name);
        invoice_body.body.extend(values.to_object(&new_names));
        name_original_by_irn(&mut invoice_body.body);
        invoice_body
    }

    /// Makes the body of Create Invoice (Standard) for the corrected invoice, from all values of the form.
    pub(super) fn for_correction(invoice: &Invoice, values: &FormValues) -> Self {
        let mut invoice_body = Self::for_update(invoice, values);
        let body = &mut invoice_body.body;
        let lines = body.remove("lines").unwrap_or_default();
        for name in ["unique_no", "unique_no_type"] {
            body.remove(name);
        }
        if let Some(code) = invoice.extras.get("invoice_type_code") {
            body.insert("invoice_type_code".to_owned(), code.clone());
        }
        name_original_by_irn(body);
        let date = invoice.invoice_date.to_string();
        body.extend([
            ("invoice_no".to_owned(), json!(invoice.invoice_no)),
            (TYPE.to_owned(), json!(invoice.invoice_type)),
            ("invoice_date".to_owned(), json!(date)),
            ("currency".to_owned(), json!(invoice.currency)),
            ("invoice_lines".to_owned(), lines),
        ]);
        invoice_body
    }

    /// Makes the customer and the lines, with `member` as the name of the lines. Leaves out removed lines.
    fn with_customer_and_lines(member: &str, lines: FormLines, values: &FormValues) -> Self {
        let line_indexes: Vec<_> = (0..lines.all)
            .filter(|index| values.text(&removal_name(*index)).is_empty())
            .collect();
        let mut number_faults = Vec::new();
        let names = CUSTOMER_FIELDS.map(|(name, _)| name);
        let customer = object_below_path(values, "customer", &names, &mut number_faults);
        let names = LINE_FIELDS.map(|(name, _)| name);
        let line_objects: Value = line_indexes
            .iter()
            .map(|index| {
                object_below_path(
                    values,
                    &format!("lines.{index}"),
                    &names,
                    &mut number_faults,
                )
            })
            .collect();
        let members = [
            ("customer".to_owned(), customer),
            (member.to_owned(), line_objects),
        ];
        Self {
            body: members.into_iter().collect(),
            line_indexes,
            number_faults,
        }
    }

    /// Reads the draft of a new document, with the note and the descriptions of its lines.
    pub(super) fn read_draft(
        &self,
        catalog: &Catalog,
    ) -> Result<AcceptedForm<StandardInvoiceForm>, Faults> {
        let mut body = self.body.clone();
        let texts = take_texts(&mut body);
        let read = reader::read(&body, catalog, standard_invoice::read);
        let texts = reader::read(&texts, catalog, |reader| Some(read_texts(reader)));
        match (read, texts) {
            (Ok(mut form), Ok(texts)) => {
                texts.value.add_to(&mut form.value.draft);
                Ok(form)
            }
            (read, texts) => {
                let fault_lists = [read.err(), texts.err()];
                let faults = fault_lists.iter().flatten().flat_map(Faults::iter);
                Err(faults.cloned().collect())
            }
        }
    }

    /// Reads the draft that an invoice should have been. A note and descriptions that the form does not have become
    /// null, because the person may have cleared them; if they were missing, they would be copied from the invoice.
    pub(super) fn read_corrected_draft(&self, catalog: &Catalog) -> Result<Draft, Faults> {
        let mut draft = self.read_draft(catalog)?.value.draft;
        draft.extras.entry("note").or_insert(Value::Null);
        for line in &mut draft.lines {
            line.extras.entry("description").or_insert(Value::Null);
        }
        Ok(draft)
    }

    /// Renames the paths of faults to fields of the form, and calls these by their labels. For typed numbers, says how
    /// to write them.
    pub(super) fn to_form_faults(&self, faults: &Faults) -> Faults {
        let renamed = faults.clone().rename_fields(|path| {
            let path = form_field_name(path);
            let in_line = split_line_path(&path).map(|(index, name)| {
                let index = self.line_indexes.get(index).copied().unwrap_or(index);
                format!("lines.{index}.{name}")
            });
            in_line.unwrap_or(path)
        });
        renamed.map(|fault| {
            let typed = self.number_faults.iter();
            let mut typed = typed.filter(|typed| typed.path == fault.path);
            let fault = typed.next().cloned().unwrap_or(fault);
            fault.with_labels(find_label)
        })
    }
}

/// Says that the reference to the original, if there is one, is an IRN.
fn name_original_by_irn(body: &mut Map<String, Value>) {
    if body.contains_key("original_invoice_reference") {
        let kind = json!(UniqueNoType::Irn);
        body.insert("original_invoice_reference_type".to_owned(), kind);
    }
}

/// The texts of a document for which Create Invoice (Standard) has no fields.
struct DocumentTexts {
    note: Option<String>,
    descriptions: Vec<Option<String>>,
}

impl DocumentTexts {
    fn add_to(self, draft: &mut Draft) {
        let note = self.note.map(|note| ("note".to_owned(), json!(note)));
        draft.extras.extend(note);
        for (line, text) in draft.lines.iter_mut().zip(self.descriptions) {
            let text = text.map(|text| ("description".to_owned(), json!(text)));
            line.extras.extend(text);
        }
    }
}

/// Takes the note and the descriptions of the lines out of a body, as a body of their own.
fn take_texts(body: &mut Map<String, Value>) -> Map<String, Value> {
    let note = body.remove("note").unwrap_or_default();
    let lines = body
        .get_mut("invoice_lines")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    let texts = lines.map(|line| {
        let text = line
            .as_object_mut()
            .and_then(|line| line.remove("description"));
        json!({ "description": text })
    });
    let texts = texts.collect();
    [
        ("note".to_owned(), note),
        ("invoice_lines".to_owned(), texts),
    ]
    .into_iter()
    .collect()
}

fn read_texts(reader: &mut Reader<'_>) -> DocumentTexts {
    let note = reader.optional("note").long_text(0, LONG_TEXT_CHARS_MAX);
    let lines = reader.optional("invoice_lines");
    let descriptions = lines.objects(0, |line| {
        let text = line.optional("description");
        Some(text.long_text(0, LONG_TEXT_CHARS_MAX))
    });
    DocumentTexts {
        note,
        descriptions: descriptions.unwrap_or_default(),
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
    use crate::console::accounts::invoice_fields::LINE_COUNT;
    use crate::http::forms::testing::catalog;

    fn sample_form() -> FormValues {
        FormValues::from([
            ("invoice_no", "INV7"),
            ("invoice_type_code", "381"),
            ("invoice_category", "B2C"),
            ("invoice_date", "2026-03-01"),
            ("due_date", "2026-03-31"),
            ("currency", "NGN"),
            ("customer.no", "C-1"),
            ("customer.name", "Shop"),
            ("customer.email", "shop@example.com"),
            ("customer.address_street_name", "1 Broad Street"),
            ("customer.address_city", "Lagos"),
            ("customer.address_state", "Lagos"),
            ("customer.address_postal_code", "100001"),
            ("customer.address_country", "NG"),
            (LINE_COUNT, "3"),
            ("lines.0.remove", "yes"),
            ("lines.1.item_name", "Laptop"),
            ("lines.1.item_no", "LAP-1"),
            ("lines.1.item_type", "PRODUCT"),
            ("lines.1.product_category", "8471.30"),
            ("lines.1.quantity", "2"),
            ("lines.1.price_unit", "EA"),
            ("lines.1.unit_price", "1,500.50"),
            ("lines.1.tax_category", "STANDARD_VAT"),
            ("lines.2.item_name", "Case"),
            ("lines.2.item_no", "CASE-1"),
            ("lines.2.item_type", "PRODUCT"),
            ("lines.2.quantity", "1"),
            ("lines.2.price_unit", "EA"),
            ("lines.2.unit_price", "10"),
            ("lines.2.tax_category", "STANDARD_VAT"),
            ("lines.2.description", "Light\nand fast"),
            ("note", "As agreed"),
        ])
    }

    #[test]
    fn a_form_becomes_a_draft_with_its_note_and_descriptions() {
        let body = InvoiceBody::for_new_document(&sample_form());
        let form = body.read_draft(&catalog()).unwrap();
        let draft = form.value.draft;
        assert_eq!(form.warnings, [""; 0]);
        assert_eq!(draft.invoice_no, "INV7");
        assert_eq!(draft.extras["note"], "As agreed");
        let items = draft.lines.iter().map(|line| line.item_name.as_str());
        assert_eq!(items.collect::<Vec<_>>(), ["Laptop", "Case"]);
        assert_eq!(draft.lines[0].extras.get("description"), None);
        assert_eq!(draft.lines[1].extras["description"], "Light\nand fast");
    }

    #[test]
    fn a_fault_names_the_field_that_the_form_shows() {
        let long = "x".repeat(LONG_TEXT_CHARS_MAX + 1);
        for (name, value, path, named) in [
            ("invoice_no", "", "invoice_no", "The Invoice number field"),
            (
                "lines.2.quantity",
                "0",
                "lines.2.quantity",
                "The Line 3, quantity field",
            ),
            (
                "lines.1.unit_price",
                "1,5",
                "lines.1.unit_price",
                "The Line 2, unit price field",
            ),
            (
                "lines.1.product_category",
                "85",
                "lines.1.product_category",
                "The Line 2, HSN code field must be written 9999.99.",
            ),
            (
                "customer.email",
                "shop",
                "customer.email",
                "The Customer email field",
            ),
            ("note", &long, "note", "The Note field"),
            (
                "lines.2.description",
                &long,
                "lines.2.description",
                "The Line 3, description field",
            ),
        ] {
            let values = sample_form().with_fields(FormValues::from([(name, value)]));
            let body = InvoiceBody::for_new_document(&values);
            let faults = body.read_draft(&catalog()).unwrap_err();
            let faults = body.to_form_faults(&faults);
            let found: Vec<_> = faults
                .iter()
                .map(|fault| (fault.path.as_str(), fault.to_string()))
                .collect();
            let [(found_path, sentence)] = &found[..] else {
                panic!("{name}: {found:?}");
            };
            assert_eq!(*found_path, path);
            assert!(sentence.starts_with(named), "{sentence}");
        }
    }
}
