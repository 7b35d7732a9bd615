//! An e-invoicing relay between taxpayers and a national tax authority.
//!
//! Floors, from the ground up: `domain` (pure), `config` and `telemetry`, then `store`, `authority` and `webhook`
//! (the outside), `actors`, `http`, then `app` and `cli` on top. A file imports only from lower floors; `tests/tidy.rs` proves it.

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
