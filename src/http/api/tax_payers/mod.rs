//! `/v1/tax-payers`: a taxpayer and its own invoices.

mod acknowledge_supplier_invoice;
mod create_batch;
mod create_full_invoice;
mod create_invoice;
mod create_preconditions;
mod create_response;
mod get_batch;
mod get_by_unique_no;
mod get_invoice;
mod get_timeline;
mod list_events;
mod list_invoices;
mod list_own_dead_letters;
mod replay_own_dead_letter;
mod update_invoice;
mod update_payment_status;
mod update_status;

pub(crate) use create_batch::create_batch;
pub(crate) use create_full_invoice::create_full_invoice;
mod get_supplier_invoice;
mod list_supplier_invoices;

pub(crate) use acknowledge_supplier_invoice::acknowledge_supplier_invoice;
pub(crate) use create_invoice::create_invoice;
pub(crate) use get_batch::get_batch;
pub(crate) use get_by_unique_no::get_by_unique_no;
pub(crate) use get_invoice::get_invoice;
pub(crate) use get_supplier_invoice::get_supplier_invoice;
pub(crate) use get_timeline::get_timeline;
pub(crate) use list_events::list_events;
pub(crate) use list_invoices::list_invoices;
pub(crate) use list_own_dead_letters::list_own_dead_letters;
pub(crate) use list_supplier_invoices::list_supplier_invoices;
pub(crate) use replay_own_dead_letter::replay_own_dead_letter;
pub(crate) use update_invoice::update_invoice;
pub(crate) use update_payment_status::update_payment_status;
pub(crate) use update_status::update_status;
