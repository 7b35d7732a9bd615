//! Is this document one the authority would sign?
//!
//! The first fault found is the answer, as a lower-cased struct path and a rule, because that is what the authority
//! does. Deliberately absent: classification codes are asked for, not looked up.

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
