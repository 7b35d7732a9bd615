//! Compares our ledger with the authority's, one taxpayer and day at a time. A requested comparison is a row. The holder
//! of the lane works on it, repairs safe differences through the taxpayers' actors, and lists the others. Doing it twice
//! changes nothing.
//!
//! | Concept | File |
//! |---|---|
//! | requesting a reconciliation and waiting for it | `handle` |
//! | dependencies, schedule and errors | `reconciler` |
//! | the authority's search, read back to a day | `search` |
//! | one day, invoice by invoice | `compare_day` |
//! | the lane, the due days and the periodic actor | `scheduler` |

mod compare_day;
mod handle;
mod reconciler;
mod scheduler;
mod search;

pub use handle::ReconciliationHandle;
pub use reconciler::{Reconciler, ReconciliationMode, ReconciliationSchedule};
pub use scheduler::ReconcilerActor;
