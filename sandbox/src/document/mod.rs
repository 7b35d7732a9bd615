//! Checks that the authority would sign a document.
//!
//! The first fault is the answer, as a lower-cased struct path and a rule, as from the authority. Deliberately
//! absent: a lookup of classification codes; only their presence is checked.

mod check;
mod lines;
mod node;
mod parties;
mod taxes;
mod totals;

pub(crate) use check::{Essence, check, check_irn};
pub(crate) use node::Node;

#[cfg(test)]
mod tests;
