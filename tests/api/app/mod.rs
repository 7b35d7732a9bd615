//! `/v1/app`.

mod acting;
mod confirm;
mod confirm_receipt;
mod run;
mod submit;
mod submit_fields;
mod transmit;
