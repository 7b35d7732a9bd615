//! `/v1/tax-payers/invoices`.

mod create;
mod read;
mod update;

pub(crate) use create::{create_batch, create_full_invoice, create_invoice};
pub(crate) use read::{get_batch, get_by_unique_no, get_invoice, get_timeline, list_invoices};
pub(crate) use update::{update_invoice, update_payment_status, update_status};
