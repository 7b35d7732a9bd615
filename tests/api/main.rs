//! The interface from outside: the whole application in process, over HTTP, on SQLite and, where
//! `EINVOICE_TEST_POSTGRES` names a server, once more on PostgreSQL. The files mirror the URLs; what a test
//! expects stands in the specification and in its decisions, not in the code.

#![expect(clippy::unwrap_used, reason = "what a test cannot do without ends it")]

mod answer_examples;
mod app;
mod authority;
mod console;
mod content_policy;
mod core;
mod docs;
mod errors;
mod failure_examples;
mod health;
mod idempotency;
mod late_requests;
mod mistakes;
mod openapi;
mod ops;
mod payers;
mod rate_limits;
mod request_log_secrets;
mod roles;
mod shared_delivery;
mod support;
mod system_integrators;
mod tax_payers;
mod traces;
mod unread;
mod upgrade;
mod verify;
mod webhooks;
