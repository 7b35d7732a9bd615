//! Explains why a document was refused: the caller's path of the field, the rule, the expected value and the received
//! value. A refusal by the authority is translated from the authority's sentences; a fault of our own forms is
//! converted. This module makes no calls and changes nothing.
//!
//! | Concept | File |
//! |---|---|
//! | the explanation of one reason, and its JSON | `explanation` |
//! | the actual value, shortened | `received_value` |
//! | the authority's paths in the caller's names | `field_names` |
//! | the meaning of a sentence without its field name, as a table | `phrases` |
//! | sentences of the authority, and faults of our own | `authority`, `local_faults` |

pub(crate) mod authority;
pub(crate) mod explanation;
mod field_names;
pub(crate) mod local_faults;
mod phrases;
pub(crate) mod received_value;
