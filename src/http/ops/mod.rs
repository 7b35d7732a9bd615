//! Outside `/v1`: what probes, scrapers and operators read.

mod docs;
mod live;
mod metrics;
mod openapi;
mod ready;
mod supervision;

pub(super) use docs::{docs, to_docs};
pub(super) use live::live;
pub(super) use metrics::metrics;
pub(super) use openapi::openapi;
pub(super) use ready::ready;
pub(super) use supervision::supervision;
