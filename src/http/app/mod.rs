//! `/v1/app`: the authority pipeline, for taxpayers and for integrators that act for them.

mod confirm;
mod confirm_receipt;
mod get_run;
mod submit;
mod transmit;

pub(super) use confirm::confirm;
pub(super) use confirm_receipt::confirm_receipt;
pub(super) use get_run::get_run;
pub(super) use submit::submit;
pub(super) use transmit::transmit;
