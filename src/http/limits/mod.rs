//! How much a caller may ask for in a time: requests of a key or, without one, of an address; a few operations
//! that are rare by nature; and failed authentications of an address. The moment is an argument. A process counts
//! for itself: so many replicas, so many times the allowance.
//!
//! | Concept | File |
//! |---|---|
//! | an allowance that refills steadily (GCRA) | `quota` |
//! | the allowances in use, by who has them | `buckets` |
//! | which allowances there are | `table` |
//! | headers and refusals | `told` |

mod buckets;
mod quota;
mod table;
mod told;

pub(crate) use table::{Holder, Rare};
pub use table::{Limits, Rates};
pub(crate) use told::{noted, refused, tell};
