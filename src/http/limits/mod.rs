//! How much a caller may ask for in a time: requests of a key or, without one, of an address; a few operations
//! that are rare by nature; and failed authentications of an address. The moment is an argument. And how much it may
//! use at a time: calls under way, and the memory of bodies. A process counts for itself: so many replicas, so many
//! times the allowance.
//!
//! | Concept | File |
//! |---|---|
//! | an allowance that refills steadily (GCRA) | `quota` |
//! | the allowances in use, by who has them | `buckets` |
//! | which allowances there are | `table` |
//! | headers and refusals | `told` |
//! | a semaphore for each holder | `shares` |
//! | calls under way | `calls` |
//! | the memory of bodies, and turns of bulk requests | `bodies` |

mod bodies;
mod buckets;
mod calls;
mod quota;
mod shares;
mod table;
mod told;

pub(crate) use bodies::Taken;
pub use bodies::{Bodies, BodyBytes};
pub use calls::Calls;
pub(crate) use calls::{CallKind, CallPermit};
pub(crate) use table::{Holder, Rare};
pub use table::{Limits, Rates};
pub(crate) use told::{noted, refused, tell};
