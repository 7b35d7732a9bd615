//! The callers of the API, one type for each role. Each has its key and knows its paths; the tests judge the answers.

mod app_client;
mod integrator;
mod operator;
mod taxpayer;

pub use app_client::AppClient;
pub use integrator::Integrator;
pub use operator::Operator;
pub use taxpayer::Taxpayer;

pub const INVOICES: &str = "/v1/tax-payers/invoices";
pub const FULL_INVOICES: &str = "/v1/tax-payers/invoices/full";
pub const UPDATE: &str = "/v1/tax-payers/invoices/update";
pub const BULK: &str = "/v1/tax-payers/invoices/bulk";
pub const BATCHES: &str = "/v1/tax-payers/invoices/batches";
pub const UPDATE_STATUS: &str = "/v1/tax-payers/invoices/update-status";
pub const UPDATE_PAYMENT: &str = "/v1/tax-payers/invoices/update-payment-status";
pub const INBOX: &str = "/v1/tax-payers/supplier-invoices";
pub const GET_SUPPLIER_INVOICE: &str = "/v1/tax-payers/invoices/get-supplier-invoice";
pub const ACKNOWLEDGE: &str = "/v1/tax-payers/invoices/acknowledge-supplier-invoice";
pub const EVENTS: &str = "/v1/tax-payers/events";
pub const TAXPAYERS: &str = "/v1/system-integrators/taxpayers";
pub const SUBMIT: &str = "/v1/app/invoices/submit";
pub const VALIDATE: &str = "/v1/app/invoices/validate";
pub const REPORT: &str = "/v1/app/invoices/report";
pub const TRANSMIT: &str = "/v1/app/invoices/transmit";

/// Returns the path of the call that relays a payment status to the authority.
pub fn relay_path(irn: &str) -> String {
    format!("/v1/app/invoices/{irn}/update-payment-status")
}

pub fn webhook(id: i64) -> String {
    format!("{TAXPAYERS}/{id}/webhook")
}
