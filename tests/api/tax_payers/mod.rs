//! `/v1/tax-payers`.

mod acknowledge_supplier_invoice;
mod create_invoice;
mod events;
mod get_invoice;
mod get_supplier_invoice;
mod list_invoices;
mod list_supplier_invoices;
mod update_payment_status;
mod update_status;
