//! `/v1/tax-payers`: a taxpayer and its own invoices.

mod acknowledge_supplier_invoice;
mod create_batch;
mod create_full_invoice;
mod create_invoice;
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

pub(super) use create_batch::create_batch;
pub(super) use create_full_invoice::create_full_invoice;
mod get_supplier_invoice;
mod list_supplier_invoices;

pub(super) use acknowledge_supplier_invoice::acknowledge_supplier_invoice;
pub(super) use create_invoice::create_invoice;
pub(super) use get_batch::get_batch;
pub(super) use get_by_unique_no::get_by_unique_no;
pub(super) use get_invoice::get_invoice;
pub(super) use get_supplier_invoice::get_supplier_invoice;
pub(super) use get_timeline::get_timeline;
pub(super) use list_events::list_events;
pub(super) use list_invoices::list_invoices;
pub(super) use list_own_dead_letters::list_own_dead_letters;
pub(super) use list_supplier_invoices::list_supplier_invoices;
pub(super) use replay_own_dead_letter::replay_own_dead_letter;
pub(super) use update_invoice::update_invoice;
pub(super) use update_payment_status::update_payment_status;
pub(super) use update_status::update_status;
