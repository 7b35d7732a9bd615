//! Rate limits: the requests of an API key (or of an address, for requests without a key) and of an
//! integrator with all its keys, sensitive operations, and the failed authentications of an
//! address. Concurrency limits: the calls in flight, and the memory of request bodies. An
//! integrator can create any number of taxpayers and keys. So where a limit on one key protects
//! other callers, a second limit applies to all keys of an integrator together. Methods take the
//! time as an argument. Each process counts for itself, so the total allowance grows with the
//! number of replicas.
//!
//! | Concept | File |
//! |---|---|
//! | an allowance that refills steadily (GCRA) | `quota` |
//! | how much of its allowance each caller has used | `buckets` |
//! | the list of all rate limits | `allowances` |
//! | attempts to guess a password or a code | `sign_in_attempts` |
//! | headers and refusals | `headers` |
//! | a semaphore for each account | `keyed_semaphores` |
//! | limits of the calls in flight | `concurrent_calls` |
//! | the memory of bodies, and turns of bulk requests | `body_memory` |
//! | the memory of answers that wait until their callers read them | `answer_memory` |
//! | pages of a person, an address or an account | `page_limits` |
//! | the answers to pages that are made while they are sent | `page_streams` |
//! | the documents that are printed at the same time, and the workbooks that are written | `printing` |
//! | the open connections of a listener | `open_connections` |
//! | the connections that linger after a refusal | `lingering` |
//! | a connection that ends when its place is needed or its client reads too little | `guarded_stream` |

mod allowances;
mod answer_memory;
mod body_memory;
mod buckets;
mod concurrent_calls;
mod guarded_stream;
mod headers;
mod keyed_semaphores;
mod lingering;
mod open_connections;
mod page_limits;
mod page_streams;
mod printing;
mod quota;
mod sign_in_attempts;

pub(crate) use allowances::{RateKey, SensitiveOperation};
pub use allowances::{RateLimits, Rates};
pub(crate) use answer_memory::{
    AnswerHolder, AnswerPermit, AnsweredCall, PART_BYTES as ANSWER_PART_BYTES,
};
pub use answer_memory::{AnswerMemory, AnswerMemoryLimits};
pub use body_memory::{BodyMemory, BodyMemoryLimits};
pub(crate) use body_memory::{BodyPermit, SMALL_BODY_BYTES_MAX, TextMemory, estimate_value_bytes};
pub(crate) use concurrent_calls::{CallKind, CallSlot};
pub use concurrent_calls::{ConcurrentCalls, ConcurrentLimits};
pub(crate) use guarded_stream::GuardedStream;
pub(crate) use headers::{add_limit_headers, limit_error, store_allowance};
pub(crate) use keyed_semaphores::KeyedSemaphores;
pub(crate) use lingering::LingerSlot;
pub(crate) use open_connections::Connection;
pub use open_connections::{ConnectionLimits, OpenConnections};
pub(crate) use page_limits::PageSlot;
pub use page_limits::{PageLimits, PageRates};
pub(crate) use page_streams::admit_stream;
pub use printing::PrintingLimit;
pub(crate) use sign_in_attempts::{Attempt, CountedAttempt, TriedPerson};
pub use sign_in_attempts::{SignInAttempts, SignInRates};
