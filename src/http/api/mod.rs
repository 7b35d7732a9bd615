//! The endpoints and their handlers: a folder for each part of the API and a file for each family of operations. A file
//! lists its paths in `endpoints`. A handler extracts, checks, sends one command or runs one query, and returns one view.

pub(super) mod app;
pub(super) mod authority;
pub(super) mod core;
mod key_generation;
pub(super) mod ops;
pub(super) mod system_integrators;
pub(super) mod tax_payers;
