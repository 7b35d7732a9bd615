//! The handlers: a folder for each part of the API and a file for each group of operations. A handler extracts,
//! checks, sends one command or runs one query, and returns one view.

pub(super) mod app;
pub(super) mod authority;
pub(super) mod core;
mod key_generation;
pub(super) mod ops;
pub(super) mod ops_paths;
pub(super) mod system_integrators;
pub(super) mod tax_payers;
pub(super) mod webhook_paths;
