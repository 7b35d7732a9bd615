//! An e-invoicing relay between taxpayers and a national tax authority.
//!
//! Floors, from the ground up: `domain` (pure), `store`, `authority` and `webhook` (the outside),
//! `actors`, then `http`. A file imports only from lower floors; `tests/tidy.rs` proves it.

pub mod actors;
pub mod authority;
pub mod domain;
pub mod http;
pub mod store;
pub mod webhook;
