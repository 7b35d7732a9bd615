//! `/v1/tax-payers`.

mod acknowledge_supplier_invoice;
mod batches;
mod bulk;
mod create_full;
mod create_invoice;
mod dead_letters;
mod events;
mod get_invoice;
mod get_supplier_invoice;
mod include;
mod list_invoices;
mod list_supplier_invoices;
mod timeline;
mod update_invoice;
mod update_payment_status;
mod update_status;
