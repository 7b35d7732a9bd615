//! Who calls: the kinds of callers, their API keys, and the claim of a request that is processed once.

pub mod api_key;
pub mod caller;
pub mod claim;
