//! `/v1/tax-payers`.

mod create_invoice;
mod events;
mod get_invoice;
mod list_invoices;
mod update_payment_status;
mod update_status;
