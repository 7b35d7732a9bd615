//! `/v1/app`: the authority pipeline, for taxpayers and for integrators that act for them.

mod confirm;
mod confirm_receipt;
mod download;
mod get_run;
mod report;
pub(crate) mod run_response;
mod submit;
mod transmit;
mod update_payment_status;
mod validate;

pub(crate) use confirm::confirm;
pub(crate) use confirm_receipt::confirm_receipt;
pub(crate) use download::download;
pub(crate) use get_run::get_run;
pub(crate) use report::report;
pub(crate) use submit::submit;
pub(crate) use transmit::transmit;
pub(crate) use update_payment_status::update_payment_status;
pub(crate) use validate::validate;
