//! `/v1/tax-payers`: a taxpayer and its own invoices.

mod acknowledge_supplier_invoice;
mod create_invoice;
mod get_by_unique_no;
mod get_invoice;
mod get_supplier_invoice;
mod list_events;
mod list_invoices;
mod list_supplier_invoices;
mod update_payment_status;
mod update_status;

pub(super) use acknowledge_supplier_invoice::acknowledge_supplier_invoice;
pub(super) use create_invoice::create_invoice;
pub(super) use get_by_unique_no::get_by_unique_no;
pub(super) use get_invoice::get_invoice;
pub(super) use get_supplier_invoice::get_supplier_invoice;
pub(super) use list_events::list_events;
pub(super) use list_invoices::list_invoices;
pub(super) use list_supplier_invoices::list_supplier_invoices;
pub(super) use update_payment_status::update_payment_status;
pub(super) use update_status::update_status;
