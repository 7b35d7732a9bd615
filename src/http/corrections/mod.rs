//! Corrections of signed invoices, for the API and the dashboard.
//!
//! | Concept | File |
//! |---|---|
//! | the wish in the body of a request | `wish` |
//! | the steps of a correction, as durable work | `worker` |
//! | the correction of all invoices of a batch | `undo` |

mod undo;
mod wish;
mod worker;

pub(crate) use undo::{Undo, UndoAct, UndoItem, refund_words, undo};
pub(crate) use wish::{ComparedOriginal, correct_command, read_body, standard_body};
pub use worker::{CORRECTIONS_MAX, CorrectionWorker};
