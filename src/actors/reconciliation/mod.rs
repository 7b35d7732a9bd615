//! Compares our ledger with the authority's, one taxpayer and day at a time. A requested comparison is a row in the
//! database. The holder of the lane makes the comparison, lets the taxpayers' actors repair the differences that are
//! safe to repair, and lists all other differences. A repeated comparison changes nothing.
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
