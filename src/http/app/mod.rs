//! `/v1/app`: the authority pipeline, for taxpayers and for integrators that act for them.

mod confirm;
mod confirm_receipt;
mod download;
mod get_run;
mod report;
mod submit;
mod transmit;
mod update_payment_status;
mod validate;

pub(super) use confirm::confirm;
pub(super) use confirm_receipt::confirm_receipt;
pub(super) use download::download;
pub(super) use get_run::get_run;
pub(super) use report::report;
pub(super) use submit::submit;
pub(super) use transmit::transmit;
pub(super) use update_payment_status::update_payment_status;
pub(super) use validate::validate;
