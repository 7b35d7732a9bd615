//! Corrects a signed invoice, which never changes itself. The owner says what it should have been; a plan names the
//! smallest set of documents that leads there: nothing, a credit note, or a credit note and a replacement. Whatever the
//! plan, the original less its credit notes plus its replacement comes to what was wanted, to the cent in each tax
//! category.
//!
//! | Concept | File |
//! |---|---|
//! | a document as it was signed, if its sender sent another one than is stored | `signed_invoice` |
//! | what a document comes to | `amounts` |
//! | the credit notes of an invoice, and what they leave to pay | `credits` |
//! | the lines that credit notes have left, and those that a credit note takes | `lines` |
//! | the credit note over lines | `credit_note` |
//! | the smallest set of documents | `plan` |
//! | a correction under way, and its states; what comes next | `record`, `next_step` |

pub mod amounts;
pub mod credit_note;
pub mod credits;
#[cfg(test)]
mod flat_amount_tests;
pub mod lines;
pub mod next_step;
pub mod plan;
#[cfg(test)]
mod plan_tests;
pub mod record;
pub mod signed_invoice;
