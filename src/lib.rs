//! An e-invoicing relay between taxpayers and a national tax authority.
//!
//! Layers, from the bottom: `domain` (pure), `config` and `telemetry`, then `store`, `authority` and `webhook`
//! (the outside), `actors`, `http`, then `app` and `cli` on top. A file imports only from lower layers;
//! `tests/tidy.rs` checks it.

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
