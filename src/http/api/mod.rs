//! The endpoints and their handlers. Each part of the API has a folder, and the function `endpoints` of each file lists
//! its paths. A handler extracts the request, sends one command or runs one query, and returns one view. Business rules
//! are in the domain and the actors.

pub(crate) mod app;
pub(super) mod authority;
pub(super) mod core;
pub(crate) mod ops;
pub(super) mod system_integrators;
pub(super) mod tax_payers;
