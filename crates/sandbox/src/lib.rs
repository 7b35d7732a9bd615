//! A simulator of the tax authority: real HTTP, real checks, and network faults on demand.
//!
//! It imports no code of the service that it is used to test. Its state is in memory only, and it has no TLS.

mod call;
mod calls;
mod clock;
mod control;
mod crypto;
mod decimal;
mod dialect;
mod document;
mod faults;
mod handler;
mod irn;
mod latencies;
mod lists;
mod notices;
mod operations;
mod records;
mod reply;
mod route;
mod server;
mod settings;
mod spoil;
mod state;
mod wire;

pub use calls::CallRecord;
pub use control::InboundInvoice;
pub use dialect::Dialect;
pub use faults::{FaultKind, FaultOrder, MAGIC_WORDS, MagicWord};
pub use latencies::{LatencyOrder, Percentiles, UniformLatency};
pub use records::{InvoiceSheet, PartyEnrolment};
pub use route::Operation;
pub use server::{Sandbox, start};
pub use settings::Settings;
pub use state::State;
