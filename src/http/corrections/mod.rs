//! Corrections of signed invoices, for the API and the dashboard.
//!
//! | Concept | File |
//! |---|---|
//! | the body of a request: cancel the invoice, or replace it | `wish` |
//! | the steps of a correction, as durable work | `worker` |
//! | the correction of all invoices of a batch | `undo` |
//! | the amounts that were received by now | `received` |

mod received;
mod undo;
mod wish;
mod worker;

pub(crate) use received::with_received_amount;
pub(crate) use undo::{Undo, UndoAct, UndoItem, refund_sentence, undo_batch_invoices};
pub(crate) use wish::{ComparedOriginal, make_correction_command, read_body, read_standard_wish};
pub use worker::{CORRECTIONS_MAX, CorrectionWorker};
