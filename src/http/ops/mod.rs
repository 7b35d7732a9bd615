//! Outside `/v1`: what probes, scrapers and operators read.

mod live;
mod metrics;
mod ready;
mod supervision;

pub(super) use live::live;
pub(super) use metrics::metrics;
pub(super) use ready::ready;
pub(super) use supervision::supervision;
