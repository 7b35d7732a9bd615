//! What every handler works with: the ways to the store, the actors and the authority, and the settings
//! of this surface. One value a process, shared by all its workers.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::Offset;
use secrecy::SecretString;

use crate::actors::pipeline::door::Pipeline;
use crate::actors::supervision::Tree;
use crate::actors::taxpayer::door::Taxpayers;
use crate::actors::webhook::Satchel;
use crate::authority::Authority;
use crate::domain::catalog::SharedCatalog;
use crate::domain::clock::SharedClock;
use crate::http::health::Health;
use crate::http::metrics::Traffic;
use crate::store::database::Store;
use crate::webhook::AddressPolicy;

/// Shared by all handlers as `web::Data<State>`.
pub struct State {
    pub store: Store,
    pub taxpayers: Arc<Taxpayers>,
    pub pipeline: Arc<Pipeline>,
    pub authority: Authority,
    pub catalog: SharedCatalog,
    pub clock: SharedClock,
    pub tree: Tree,
    pub webhook_urls: AddressPolicy,
    /// What tests an endpoint.
    pub satchel: Arc<Satchel>,
    pub settings: Settings,
    /// `Health::default()`.
    pub health: Health,
    /// `Traffic::default()`.
    pub traffic: Traffic,
}

/// What the configuration says about this surface.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long Submit and Transmit wait for their run: `pipeline.wait_s`.
    pub pipeline_wait: Duration,
    /// The longest body of a request, in bytes.
    pub body_bytes_max: usize,
    /// How long a whole body may take: `http.body_timeout_s`.
    pub body_timeout: Duration,
    /// The authority's zone, in which "today" may begin before it does in UTC.
    pub utc_offset: Offset,
    /// What a contact person signs in with first when Create Taxpayer names no password.
    pub default_contact_password: SecretString,
    /// The ERP systems an integration may name: `options.erp_systems`.
    pub erp_systems: Vec<String>,
    /// Whether `/metrics` needs no operator key.
    pub metrics_public: bool,
}

impl State {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
