//! Finds the customer and the items that an invoice names. Creates the customer or an item if it is not stored yet.

use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::invoice::Line;
use crate::domain::invoice::item::Item;
use crate::domain::kernel::codes::Category;
use crate::domain::party::{Customer, CustomerDetails, InvoiceCustomer};

/// Finds the stored customer, or adds a new one. A stored customer without a tax number gets the tax number of
/// `details`. Returns the customer as the invoice shows it.
pub(super) fn resolve_customer(
    uow: &mut UnitOfWork,
    details: &CustomerDetails,
    category: Category,
) -> InvoiceCustomer {
    let stored = uow.customer(details);
    let names_no_tin = details.tin.is_none();
    if let Some(unchanged) = stored.filter(|stored| names_no_tin || stored.details.tin.is_some()) {
        return invoice_customer(unchanged, details);
    }
    let customer = match stored.cloned() {
        Some(mut stored) => {
            stored.fill_tin(details.tin.as_ref());
            stored
        }
        None => Customer {
            id: uow.next_customer_id(),
            category,
            details: details.clone(),
        },
    };
    let shown = invoice_customer(&customer, details);
    uow.put_customer(customer);
    shown
}

/// Returns the stored data of the customer, but with the customer number that the caller sent with this invoice.
fn invoice_customer(customer: &Customer, details: &CustomerDetails) -> InvoiceCustomer {
    InvoiceCustomer {
        id: customer.id,
        external_customer_no: details.no.clone(),
        name: customer.details.name.clone(),
        tin: customer.details.tin.clone(),
        email: customer.details.email.clone(),
    }
}

/// Sets the item id of each line. Adds items that the catalog does not have.
pub(super) fn resolve_items(uow: &mut UnitOfWork, lines: &mut [Line]) {
    for line in lines {
        let stored = uow.items.find_for_line(line).cloned();
        let is_new = stored.is_none();
        let mut item = stored.unwrap_or_else(|| Item::from_line(uow.next_item_id(), line));
        line.item_id = Some(item.id);
        if is_new || item.fill_category(line) {
            uow.put_item(item);
        }
    }
}
