//! The endpoints and their handlers. Each part of the API has a folder. Each file in the folder holds related
//! operations, and its function `endpoints` lists their paths. A handler extracts the request, checks it, sends one
//! command or runs one query, and returns one view. Business rules are not here; they are in the domain and the actors.

pub(super) mod app;
pub(super) mod authority;
pub(super) mod core;
mod key_generation;
pub(super) mod ops;
pub(super) mod system_integrators;
pub(super) mod tax_payers;
