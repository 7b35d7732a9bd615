//! Decides which calls are made, and when, by an adaptive concurrency limit, a fair queue and a circuit breaker. Each
//! of them treats calls by payer first, and then by account.

pub(super) mod adaptive_limit;
pub(super) mod breaker;
pub(super) mod breakers;
pub(super) mod call_limits;
pub(super) mod call_origin;
pub(super) mod call_stats;
pub(super) mod call_verdict;
pub(super) mod call_window;
mod failing_accounts;
mod failure_causes;
mod held_callers;
pub(super) mod load_signal;
pub(super) mod open_breaker;
pub(super) mod overload_source;
mod own_faults;
mod payer_lane;
pub(super) mod permit;
mod requested_pause;
pub(super) mod wait_queue;
