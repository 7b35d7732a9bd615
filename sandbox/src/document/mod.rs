//! Checks whether the authority would sign a document.
//!
//! The checks stop at the first fault. As at the authority, a fault is a lower-cased struct path and a rule.
//! Deliberately absent: a lookup of classification codes; the checks only require that the codes are present.

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
