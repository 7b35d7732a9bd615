//! Why a document was refused, in the caller's own words: path, rule, what was expected and what was sent. The
//! authority's sentences are translated; ours are taken apart. Nothing here asks anybody or changes anything.
//!
//! | Concept | File |
//! |---|---|
//! | the value that was sent, shortened | `received_value` |
//! | the authority's paths in the caller's names | `field_names` |
//! | what the rest of a sentence means, as a table | `phrases` |
//! | sentences of the authority, and faults of our own | `authority`, `local_faults` |

pub(crate) mod authority;
mod field_names;
pub(crate) mod local_faults;
mod phrases;
pub(crate) mod received_value;
