//! `/v1/app`: the authority pipeline, for taxpayers and for integrators that act for them.

mod documents;
mod relay;
pub(crate) mod run_response;
mod validate;

pub(crate) use documents::{report, submit, transmit};
pub(crate) use relay::{confirm, confirm_receipt, download, get_run, update_payment_status};
pub(crate) use validate::validate;
