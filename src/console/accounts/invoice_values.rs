//! The values of the forms about an invoice: those of a stored invoice, those of its stored customer, and those of a
//! form after one of the buttons that only change the form.

use serde_json::Value;

use crate::console::accounts::invoice_fields::{
    ADD_LINE, CUSTOMER_FIELDS, FIND_CUSTOMER, FOCUS, FormLines, HEADER_FIELDS, LINE_COUNT,
    LINE_FIELDS, LINES_MAX, NEW_FIELDS, REMOVAL, removal_name,
};
use crate::console::form_values::FormValues;
use crate::domain::invoice::stored_document::type_code;
use crate::domain::kernel::codes::ItemType;
use crate::domain::money::Amount;
use crate::domain::party::{Address, CustomerDetails};
use crate::domain::reference::catalog::Catalog;
use crate::http::stored_invoice::StoredInvoice;

/// The members of the body of Update Invoice that are not fields of its form.
pub(super) const TYPE: &str = "invoice_type";
pub(super) const CATEGORY: &str = "invoice_category";
/// The hidden field with the time of the last change that the form knows of (`seen_invoice`).
const SEEN: &str = "seen";

/// Returns the current values of all fields, and also of members that the form does not show.
pub(super) fn current_values(stored: &StoredInvoice, catalog: &Catalog) -> FormValues {
    let invoice = &stored.invoice;
    let mut pairs = header_values(stored, catalog);
    for (index, line) in invoice.lines.iter().enumerate() {
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
        pairs.extend(values.map(|(name, value)| (format!("lines.{index}.{name}"), value)));
    }
    collect_values(&pairs)
}

fn header_values(stored: &StoredInvoice, catalog: &Catalog) -> Vec<(String, String)> {
    let invoice = &stored.invoice;
    let invoice_customer = &invoice.customer;
    let details = stored.customer();
    let address = details.map(|details| &details.address);
    // A change of the invoice takes over the stored name and email, so the form shows those.
    let name = details.map_or(&invoice_customer.name, |details| &details.name);
    let email = details.map_or(&invoice_customer.email, |details| &details.email);
    let address_part =
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
        ("customer.no", invoice_customer.external_customer_no.clone()),
        ("customer.name", name.clone()),
        ("customer.email", email.clone()),
        (
            "customer.tin",
            invoice_customer.tin.clone().unwrap_or_default(),
        ),
        (
            "customer.business_description",
            business.unwrap_or_default(),
        ),
        (
            "customer.address_street_name",
            address_part(|address| Some(&address.street_name)),
        ),
        (
            "customer.address_city",
            address_part(|address| Some(&address.city)),
        ),
        (
            "customer.address_state",
            address_part(|address| address.state.as_deref()),
        ),
        (
            "customer.address_postal_code",
            address_part(|address| Some(&address.postal_code)),
        ),
        (
            "customer.address_country",
            address_part(|address| Some(&address.country)),
        ),
    ];
    values
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Returns the stored data of a customer as values of the form, without its number and without what it lacks.
pub(super) fn customer_values(details: &CustomerDetails) -> FormValues {
    let address = &details.address;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let values = [
        ("customer.name", details.name.clone()),
        ("customer.email", details.email.clone()),
        ("customer.tin", text(&details.tin)),
        (
            "customer.business_description",
            text(&details.business_description),
        ),
        ("customer.address_street_name", address.street_name.clone()),
        ("customer.address_city", address.city.clone()),
        ("customer.address_state", text(&address.state)),
        ("customer.address_postal_code", address.postal_code.clone()),
        ("customer.address_country", address.country.clone()),
    ];
    let stored = values.iter().filter(|(_, value)| !value.is_empty());
    stored
        .map(|(name, value)| (*name, value.as_str()))
        .collect()
}

/// Returns the values with the stored data of their customer where the form has none.
pub(super) fn fill_in_customer(values: FormValues, details: &CustomerDetails) -> FormValues {
    let stored = customer_values(details);
    let names = customer_names();
    let missing = names
        .iter()
        .filter(|name| values.text(name).is_empty() && !stored.text(name).is_empty());
    let missing: FormValues = missing
        .map(|name| (name.as_str(), stored.text(name)))
        .collect();
    values.with_fields(missing)
}

/// Returns the values without those that are the stored data of this customer. Its number stays.
pub(super) fn remove_customer_data(values: FormValues, details: &CustomerDetails) -> FormValues {
    let stored = customer_values(details);
    let names = customer_names();
    let shown_names = names.iter().filter(|name| {
        let text = stored.text(name);
        !text.is_empty() && values.text(name) == text
    });
    let cleared: FormValues = shown_names.map(|name| (name.as_str(), "")).collect();
    values.with_fields(cleared)
}

fn customer_names() -> [String; 10] {
    CUSTOMER_FIELDS.map(|(name, _)| format!("customer.{name}"))
}

/// Returns the values of a form after a button that only changes the form: adds a line, or removes lines that were
/// added before. A line of the stored invoice is only marked, because nothing is removed before the form is saved.
pub(super) fn rearrange_lines(values: &FormValues, lines: FormLines) -> FormValues {
    let mut former_indexes: Vec<_> = (0..lines.all)
        .filter(|index| *index < lines.stored || values.text(&removal_name(*index)).is_empty())
        .map(Some)
        .collect();
    let is_line_wanted = !values.text(ADD_LINE).is_empty() && former_indexes.len() < LINES_MAX;
    if is_line_wanted || former_indexes.is_empty() {
        former_indexes.push(None);
    }
    let header = NEW_FIELDS.iter().chain(&HEADER_FIELDS);
    let header = header.map(|(name, _)| (*name).to_owned());
    let names = header
        .chain(customer_names())
        .chain([TYPE, SEEN].map(str::to_owned));
    let mut pairs: Vec<_> = names
        .map(|name| {
            let value = values.text(&name).to_owned();
            (name, value)
        })
        .collect();
    pairs.push((LINE_COUNT.to_owned(), former_indexes.len().to_string()));
    let focus = field_after_button(values, lines, former_indexes.len());
    pairs.push((FOCUS.to_owned(), focus));
    for (index, former_index) in former_indexes.into_iter().enumerate() {
        let names = LINE_FIELDS.iter().map(|(name, _)| *name).chain([REMOVAL]);
        pairs.extend(names.map(|name| {
            let value = match former_index {
                Some(former_index) => values
                    .text(&format!("lines.{former_index}.{name}"))
                    .to_owned(),
                None => new_line_value(name),
            };
            (format!("lines.{index}.{name}"), value)
        }));
    }
    collect_values(&pairs)
}

/// Returns the field at which the person goes on after a button. `count` is the number of lines that the form then has.
fn field_after_button(pressed: &FormValues, lines: FormLines, count: usize) -> String {
    if !pressed.text(FIND_CUSTOMER).is_empty() {
        return "customer.no".to_owned();
    }
    let last = count.saturating_sub(1);
    let mut added = lines.stored..lines.all;
    let removed = added.find(|index| !pressed.text(&removal_name(*index)).is_empty());
    format!("lines.{}.item_name", removed.unwrap_or(last).min(last))
}

/// Returns the value that a field of a new line has at first.
pub(super) fn new_line_value(name: &str) -> String {
    if name == "item_type" {
        ItemType::Product.to_string()
    } else {
        String::new()
    }
}

fn collect_values(pairs: &[(String, String)]) -> FormValues {
    pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(values: &FormValues) -> Vec<String> {
        let lines = FormLines::from_form(0, values);
        let names = (0..lines.all).map(|index| format!("lines.{index}.item_name"));
        names.map(|name| values.text(&name).to_owned()).collect()
    }

    #[test]
    fn a_line_is_added_or_removed_and_the_others_keep_their_values() {
        let typed = FormValues::from([
            ("invoice_no", "INV7"),
            ("customer.name", "Shop"),
            ("seen", "12"),
            (LINE_COUNT, "3"),
            ("lines.0.item_name", "a"),
            ("lines.1.item_name", "b"),
            ("lines.2.item_name", "c"),
        ]);
        for (stored, button, expected, removed, focus) in [
            (0, FIND_CUSTOMER, vec!["a", "b", "c"], "", "customer.no"),
            (
                0,
                ADD_LINE,
                vec!["a", "b", "c", ""],
                "",
                "lines.3.item_name",
            ),
            (0, "lines.0.remove", vec!["b", "c"], "", "lines.0.item_name"),
            (0, "lines.2.remove", vec!["a", "b"], "", "lines.1.item_name"),
            (2, "lines.2.remove", vec!["a", "b"], "", "lines.1.item_name"),
            // A line of the stored invoice is only marked.
            (
                2,
                "lines.0.remove",
                vec!["a", "b", "c"],
                "yes",
                "lines.2.item_name",
            ),
        ] {
            let pressed = FormValues::from([(button, "yes")]);
            let values = typed.clone().with_fields(pressed);
            let lines = FormLines::from_form(stored, &values);
            let changed = rearrange_lines(&values, lines);
            assert_eq!(items(&changed), expected, "{stored} {button}");
            assert_eq!(changed.text("lines.0.remove"), removed, "{stored} {button}");
            assert_eq!(changed.text(FOCUS), focus, "{stored} {button}");
            for name in ["invoice_no", "customer.name", "seen"] {
                assert_eq!(changed.text(name), typed.text(name), "{button}");
            }
        }
        let only = FormValues::from([("lines.0.remove", "yes")]);
        let emptied = rearrange_lines(&only, FormLines::from_form(0, &only));
        assert_eq!(items(&emptied), [""]);
        assert_eq!(emptied.text("lines.0.item_type"), "PRODUCT");
    }

    #[test]
    fn a_stored_customer_fills_in_what_the_form_lacks() {
        let details = CustomerDetails {
            no: "C-1".to_owned(),
            name: "Shop".to_owned(),
            email: "shop@example.com".to_owned(),
            tin: None,
            business_description: None,
            address: Address::default(),
            telephone: None,
        };
        let typed = FormValues::from([
            ("customer.no", "C-1"),
            ("customer.name", "Another"),
            ("customer.tin", "123"),
        ]);
        let filled = fill_in_customer(typed, &details);
        for (name, value) in [
            ("customer.no", "C-1"),
            ("customer.name", "Another"),
            ("customer.email", "shop@example.com"),
            ("customer.tin", "123"),
        ] {
            assert_eq!(filled.text(name), value);
        }
        let left = remove_customer_data(filled, &details);
        for (name, value) in [
            ("customer.no", "C-1"),
            ("customer.name", "Another"),
            ("customer.email", ""),
            ("customer.tin", "123"),
        ] {
            assert_eq!(left.text(name), value);
        }
    }
}
