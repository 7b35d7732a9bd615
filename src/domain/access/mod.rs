//! Callers, their API keys, and the idempotency claim of a request.

pub mod api_key;
pub mod caller;
pub mod claim;
