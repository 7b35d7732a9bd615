//! Checks whether the authority would sign a document.
//!
//! The checks stop at the first fault. A fault is written as the authority writes it: the path of the value in
//! lower-cased struct names, then the rule that the value breaks. Classification codes must be present, but
//! deliberately they are not looked up in the reference lists.

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
