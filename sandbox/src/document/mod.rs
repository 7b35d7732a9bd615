//! Checks whether the authority would sign a document. The checks stop at the first fault.
//!
//! A fault names a value's path and the rule that the value breaks. Any classification code is accepted, even if it is
//! not in the reference lists.

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
