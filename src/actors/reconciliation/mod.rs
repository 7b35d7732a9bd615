//! Compares our ledger with the authority's, one taxpayer and day at a time. A requested comparison is a row in the
//! database. The holder of the taxpayer's lane makes the comparison, lets the taxpayer's actor repair the differences
//! that are safe to repair, and lists all other differences. A repeated comparison changes nothing.
//!
//! | Concept | File |
//! |---|---|
//! | requesting a reconciliation and waiting for it | `handle` |
//! | compares the requested days of a taxpayer, then its scheduled days; the timer | `reconciler` |
//! | the authority's search, read from the newest line back to a day | `search` |
//! | one day, invoice by invoice | `compare_day` |

mod compare_day;
mod handle;
mod reconciler;
mod search;

pub use handle::ReconciliationHandle;
pub use reconciler::{Reconciler, ReconciliationSchedule, blocked_timer_step};
