//! The endpoints and their handlers. Each part of the API has a folder, and the function `endpoints` of each file lists
//! its paths. A handler extracts the request, sends one command or runs one query, and returns one view. Business rules
//! are in the domain and the actors.
//!
//! | File | Content |
//! |---|---|
//! | `app` | `/v1/app`: the authority pipeline, for taxpayers and for integrators that act for them |
//! | `authority` | `/authority`: notices that the authority sends about invoices |
//! | `core` | `/v1/core`: option lists, and the authority's reference lists |
//! | `ops` | paths outside `/v1`: probes, metrics, and the reads and actions of operators |
//! | `system_integrators` | `/v1/system-integrators`: what an integrator can do for the taxpayers that it onboarded |
//! | `tax_payers` | `/v1/tax-payers`: a taxpayer's own invoices, supplier invoices and events |

pub(crate) mod app;
pub(super) mod authority;
pub(super) mod core;
pub(crate) mod ops;
pub(super) mod system_integrators;
pub(super) mod tax_payers;
