//! What would mend a body that was refused: an RFC 6902 patch of what is safe to change. Safe is what can be meant in
//! one way only; what is owed, who owes it and what was sold are never guessed. Nothing is stored.
//!
//! | Concept | File |
//! |---|---|
//! | one change, and its operation | `patch_op` |
//! | changing until nothing more is safe | `patch_builder` |
//! | asking the forms and the authority between the changes | `verify` |
//! | days, codes of lists, units of quantity | `dates`, `codes`, `units` |
//! | the codes of a line that sells goods or services | `categories` |
//! | sums | `totals`, `sums` |

mod categories;
mod codes;
mod dates;
mod patch_builder;
mod patch_op;
mod sums;
mod totals;
mod units;
mod verify;

#[cfg(test)]
mod tests;

pub(crate) use patch_builder::PatchContext;
pub(crate) use verify::patch;
