//! An e-invoicing relay between taxpayers and a national tax authority.
//!
//! The layers, from the bottom: `domain` (pure); `config` and `telemetry`; `store`, `authority` and `webhook` (the
//! outside world); `actors`; `http`; `app` and `cli`. A file imports only from lower layers and its own;
//! `tests/tidy.rs` checks this rule.

pub mod actors;
pub mod app;
pub mod authority;
pub mod cli;
pub mod config;
pub mod domain;
pub mod http;
pub mod store;
pub mod telemetry;
pub mod webhook;
