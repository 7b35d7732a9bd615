//! The customer and the items that an invoice speaks of: those the books have, else new ones.

use crate::actors::taxpayer::desk::Desk;
use crate::domain::invoice::Line;
use crate::domain::invoice::item::Item;
use crate::domain::kernel::codes::Category;
use crate::domain::party::{Customer, CustomerDetails, InvoiceCustomer};

/// The stored customer, with its tax number filled in where it had none; else a new one.
pub(super) fn customer(desk: &mut Desk, details: &CustomerDetails, category: Category) -> Customer {
    if let Some(stored) = desk.customer(details) {
        let mut stored = stored.clone();
        stored.fill_tin(details.tin.as_ref());
        return stored;
    }
    Customer { id: desk.next_customer_id(), category, details: details.clone() }
}

/// The customer as the invoice shows it: with the number that came with this invoice.
pub(super) fn shown(customer: &Customer, details: &CustomerDetails) -> InvoiceCustomer {
    InvoiceCustomer {
        id: customer.id,
        external_customer_no: details.no.clone(),
        name: customer.details.name.clone(),
        tin: customer.details.tin.clone(),
        email: customer.details.email.clone(),
    }
}

/// Notes the item of each line, and puts into the catalog what is not there yet.
pub(super) fn note_items(desk: &mut Desk, lines: &mut [Line]) {
    for line in lines {
        let known = desk.items.of_line(line).cloned();
        let is_new = known.is_none();
        let mut item = known.unwrap_or_else(|| Item::of(desk.next_item_id(), line));
        line.item_id = Some(item.id);
        if is_new || item.fill_category(line) {
            desk.put_item(item);
        }
    }
}
