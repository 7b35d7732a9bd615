//! Corrects a signed invoice, which itself never changes. The owner says how the invoice should have been. A plan lists
//! the fewest documents that lead there: none, a credit note, or a credit note and a replacement. In each case the
//! original, less its credit notes, plus its replacement has the wanted amounts, to the cent in each tax category.
//!
//! | Concept | File |
//! |---|---|
//! | the invoice with the lines and amounts of the document that was signed, and their comparison | `signed_invoice` |
//! | the amounts of a document | `amounts` |
//! | the credit notes of an invoice, and the amounts that they leave; the part of a credit note that is to be paid back | `credits`, `refund_share` |
//! | the amount that is left of an invoice for new credit notes | `credited_invoice` |
//! | the lines that credit notes have left, and those that a new one must credit | `lines` |
//! | the draft of a credit note | `credit_note` |
//! | the plan of a correction: the fewest documents | `plan` |
//! | a correction in progress and its states; its next step | `record`, `next_step` |

pub mod amounts;
pub mod credit_note;
pub mod credited_invoice;
pub mod credits;
#[cfg(test)]
mod flat_amount_tests;
pub mod lines;
pub mod next_step;
pub mod plan;
#[cfg(test)]
mod plan_laws;
#[cfg(test)]
mod plan_tests;
pub mod record;
pub mod refund_share;
pub mod signed_invoice;
#[cfg(test)]
pub(crate) mod testing;
