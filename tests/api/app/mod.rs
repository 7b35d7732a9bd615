//! `/v1/app`.

mod acting;
mod confirm;
mod confirm_receipt;
mod download;
mod explain;
mod methods;
mod report;
mod run;
mod submit;
mod submit_fields;
mod transmit;
mod update_payment_status;
mod validate;
