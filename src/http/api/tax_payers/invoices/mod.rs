//! `/v1/tax-payers/invoices`.

mod create;
mod read;
mod update;

pub(in crate::http) use create::{create_batch, create_full_invoice, create_invoice};
pub(in crate::http) use read::{get_batch, get_by_unique_no, get_invoice, get_timeline, list_invoices};
pub(in crate::http) use update::{update_invoice, update_payment_status, update_status};
