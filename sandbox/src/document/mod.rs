//! Checks whether the authority would sign a document. The checks stop at the first fault.
//!
//! A fault names the path of the value and the rule that the value breaks. Classification codes are not looked up in
//! the reference lists: any code is accepted.

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
