//! Callers, their API keys, sessions, passwords and invitations, and the idempotency claim of a request.

pub mod api_key;
pub mod caller;
pub mod claim;
pub mod invitation;
pub mod password;
pub mod payer;
pub mod second_factor;
pub mod session;
