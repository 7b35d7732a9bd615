//! Suggests a correction of a refused body, as an RFC 6902 patch. The patch holds only safe changes: a change is safe
//! if the caller can have meant only one value. The patch never guesses the amount owed, the debtor or the goods sold.
//! Nothing is stored.
//!
//! | Concept | File |
//! |---|---|
//! | one change, and its operation | `patch_op` |
//! | a field that breaks a rule | `violation` |
//! | the loop of checks and changes, until no safe change is left | `patch_builder` |
//! | validation by the forms and the authority between the changes | `verify` |
//! | dates, codes of the authority's lists, units of quantity | `dates`, `codes`, `units` |
//! | the codes of a line that sells goods or services | `categories` |
//! | totals that do not add up | `totals`, `sums` |

mod categories;
mod codes;
mod dates;
mod patch_builder;
mod patch_op;
mod sums;
mod totals;
mod units;
mod verify;
mod violation;

#[cfg(test)]
mod tests;

pub(crate) use patch_builder::PatchContext;
pub(crate) use verify::build_patch;
