//! The settings of the section `http`: the addresses to listen on, and the limits for callers.

use std::net::SocketAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use url::Url;

use super::form;

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    pub bind: SocketAddr,
    #[serde(
        deserialize_with = "form::read_optional",
        serialize_with = "form::write_address"
    )]
    pub ops_bind: Option<SocketAddr>,
    #[serde(
        deserialize_with = "form::read_optional",
        serialize_with = "form::write_url"
    )]
    pub public_url: Option<Url>,
    #[serde(
        deserialize_with = "form::read_networks",
        serialize_with = "form::write_networks"
    )]
    pub trusted_proxies: Vec<IpNet>,
    pub forwarded_header: ForwardedHeader,
    pub body_bytes_max: usize,
    pub bulk_bytes_max: usize,
    pub import_bytes_max: usize,
    pub bodies_bytes_max: usize,
    pub bodies_bytes_per_integrator_max: usize,
    pub bodies_bytes_per_account_max: usize,
    pub body_timeout_s: u64,
    pub calls_per_account_max: usize,
    pub calls_per_integrator_max: usize,
    pub relays_per_account_max: usize,
    pub relays_per_integrator_max: usize,
    pub idempotency_keep_s: u64,
    pub request_log_days: u32,
    pub connections_max: usize,
    pub connections_per_address_max: usize,
    pub answer_stalled_s: u64,
    pub drain_delay_s: u64,
    pub answers_bytes_max: usize,
    pub answers_bytes_per_integrator_max: usize,
    pub answers_bytes_per_account_max: usize,
}

impl HttpSettings {
    /// Returns the size of the largest file of invoices that one key may send, in bytes. A quarter of the memory for
    /// the key's bodies is left to its other requests.
    pub fn import_memory_bytes(&self) -> usize {
        let share = self.bodies_bytes_per_account_max;
        share - share / 4
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardedHeader {
    XForwardedFor,
    Forwarded,
}
