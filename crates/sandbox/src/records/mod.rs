//! The authority's records: signed invoices, businesses, parties, and the number of calls about each invoice.

mod invoice;
mod ledger;
mod party;
mod tally;

pub use invoice::InvoiceSheet;
pub(crate) use invoice::{Invoice, PaymentStatus, TransitStage};
pub(crate) use ledger::{Ledger, SharedLedger};
pub use party::PartyEnrolment;
pub(crate) use party::{Business, Party, ServiceId};
pub(crate) use tally::CallTally;
