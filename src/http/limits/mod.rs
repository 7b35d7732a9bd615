//! Rate limits: the requests of an API key (or of an address, for requests without a key) and of an
//! integrator with all its keys, sensitive operations, and the failed authentications of an
//! address. Concurrency limits: the calls in flight, and the memory of request bodies. An
//! integrator makes as many taxpayers and keys as it likes, so each limit of a key that protects
//! others has one of the integrator beside it. Methods take the time as an argument. Each process
//! counts for itself, so the total allowance grows with the number of replicas.
//!
//! | Concept | File |
//! |---|---|
//! | an allowance that refills steadily (GCRA) | `quota` |
//! | how much of its allowance each caller has used | `buckets` |
//! | the list of all rate limits | `allowances` |
//! | headers and refusals | `headers` |
//! | a semaphore for each account | `keyed_semaphores` |
//! | limits of the calls in flight | `concurrent_calls` |
//! | a budget that those who pay share in turn | `turn_gate` |
//! | the memory of bodies, and turns of bulk requests | `body_memory` |

mod allowances;
mod body_memory;
mod buckets;
mod concurrent_calls;
mod headers;
mod keyed_semaphores;
mod quota;
mod turn_gate;

pub(crate) use allowances::{RateKey, SensitiveOp};
pub use allowances::{RateLimits, Rates};
pub use body_memory::{BodyMemory, BodyMemoryLimits};
pub(crate) use body_memory::{BodyPermit, TextRoom};
pub(crate) use concurrent_calls::{CallKind, CallSlot};
pub use concurrent_calls::{ConcurrentCalls, ConcurrentLimits};
pub(crate) use headers::{noted, refused, tell};
pub(crate) use keyed_semaphores::KeyedSemaphores;
pub(crate) use turn_gate::{Portion, TurnGate};
