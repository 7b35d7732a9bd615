//! Callers, their API keys and sessions, and the idempotency claim of a request.

pub mod api_key;
pub mod caller;
pub mod claim;
pub mod second_factor;
pub mod session;
