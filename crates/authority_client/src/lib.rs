//! The client of the tax authority.
//!
//! Each call has one method, which makes the call once; the caller decides when to retry. A call with an effect fails
//! with `Unknown` if the effect may have happened, and with another failure if it certainly did not. Deliberately
//! absent: retry loops, caching, and any knowledge of invoices beyond their IRN.
//!
//! | Concept | Module |
//! |---|---|
//! | The client, and its settings | `client`, `client_settings` |
//! | One method per upstream call; the shapes of their data | `calls`, `wire` |
//! | The operations, and which of them have an effect | `operation` |
//! | Request, HTTP exchange, answer, and the classification of failures | `transport` |
//! | Text from outside as one segment of a path | `path_segment` |
//! | Concurrency limits, queue, circuit breakers, call statistics | `admission` |
//! | Key files, QR codes, decryption of downloads | `crypto` |
//! | Delays between tries | `retry` |
//! | For tests, here and in the service: a server that sends fixed answers, or fails | `testing` |

mod admission;
mod calls;
mod client;
mod client_settings;
mod crypto;
#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod fuzzing;
mod operation;
mod path_segment;
mod retry;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod transport;
mod wire;

pub use admission::breaker::BreakerView;
pub use admission::call_limits::LimitView;
pub use admission::call_origin::CallerAccount;
pub use admission::call_stats::CallOutcome;
pub use admission::call_window::RecentCalls;
pub use admission::open_breaker::{BreakerState, HeldCallers, ProbeCallers};
pub use client::{Authority, HealthAnswer};
pub use client_settings::{AuthorityBuildError, ClientSettings};
pub use crypto::keys::{CryptoError, CryptoKeys};
pub use operation::{Operation, ResourceList};
pub use path_segment::encode_path_segment;
pub use retry::RetryPolicy;
pub use transport::failure::{AuthorityFailure, Cause, CauseKind};
pub use wire::{Confirmation, Entity, IrnCheck, PullQuery, ResourceItems, SearchPage, SearchQuery};
