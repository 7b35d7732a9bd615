//! `/v1/app`.

mod acting;
mod confirm;
mod confirm_receipt;
mod download;
mod explain;
mod magic;
mod methods;
mod queue;
mod report;
mod resolved;
mod run;
mod submit;
mod submit_fields;
mod transmit;
mod update_payment_status;
mod validate;
