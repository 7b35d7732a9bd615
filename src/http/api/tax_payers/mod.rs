//! `/v1/tax-payers`: a taxpayer and its own invoices.

mod events;
mod invoices;
mod supplier_invoices;

pub(crate) use events::{list_events, list_own_dead_letters, replay_own_dead_letter};
pub(crate) use invoices::{
    create_batch, create_full_invoice, create_invoice, get_batch, get_by_unique_no, get_invoice,
    get_timeline, list_invoices, update_invoice, update_payment_status, update_status,
};
pub(crate) use supplier_invoices::{
    acknowledge_supplier_invoice, get_supplier_invoice, list_supplier_invoices,
};
