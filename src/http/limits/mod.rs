//! Rate limits: the requests of an API key (or of an address, for requests without a key), sensitive operations, and
//! the failed authentications of an address. Concurrency limits: the calls in flight, and the memory of request
//! bodies. Methods take the time as an argument. Each process counts for itself, so the total allowance grows with
//! the number of replicas.
//!
//! | Concept | File |
//! |---|---|
//! | an allowance that refills steadily (GCRA) | `quota` |
//! | how much of its allowance each caller has used | `buckets` |
//! | the list of all rate limits | `allowances` |
//! | headers and refusals | `headers` |
//! | a semaphore for each account | `keyed_semaphores` |
//! | limits of the calls in flight | `concurrent_calls` |
//! | the memory of bodies, and turns of bulk requests | `body_memory` |

mod allowances;
mod body_memory;
mod buckets;
mod concurrent_calls;
mod headers;
mod keyed_semaphores;
mod quota;

pub(crate) use allowances::{RateKey, SensitiveOp};
pub use allowances::{RateLimits, Rates};
pub(crate) use body_memory::BodyPermit;
pub use body_memory::{BodyMemory, BodyMemoryLimits};
pub use concurrent_calls::ConcurrentCalls;
pub(crate) use concurrent_calls::{CallKind, CallSlot};
pub(crate) use headers::{noted, refused, tell};
