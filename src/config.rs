//! The settings. `config.toml` at the root of the repository is their manual and, compiled in, their defaults; a file
//! and then the environment replace them.
//!
//! Every field has the name of its key, unit included. What is read here is complete and within its limits; which
//! values those are stands in `config/limits.rs`, what a deployment must not lack in `config/deployment.rs`.
//! Deliberately absent: conversions to the settings of higher floors, which are wiring.

mod deployment;
mod fault;
mod form;
mod layers;
mod limits;
mod local;
mod strength;
#[cfg(test)]
mod tests;
mod warnings;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use jiff::tz::Offset;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::domain::party::verification::VerificationPolicy;

pub use fault::{ConfigFault, Fault, LocalSecretFault, Origin};
pub use form::NetworkEntry;

use crate::domain::integration::network::AllowedNetwork;

/// The manual, and the defaults.
pub const DEFAULTS: &str = include_str!("../config.toml");
/// The file that is read when none is named, if it is there.
const FILE: &str = "config.toml";
/// The SQLite database in `data_dir`.
const DATABASE_FILE: &str = "einvoice.db";

const POSTGRES_PORT: u16 = 5_432;

/// What one process is told.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub environment: Environment,
    pub data_dir: PathBuf,
    pub http: HttpSettings,
    pub database: DatabaseSettings,
    pub authority: AuthoritySettings,
    pub sandbox: SandboxSettings,
    pub pipeline: PipelineSettings,
    pub deadlines: DeadlinesSettings,
    pub reconcile: ReconcileSettings,
    pub webhooks: WebhooksSettings,
    pub secrets: SecretsSettings,
    pub rate_limit: RateLimitSettings,
    pub cluster: ClusterSettings,
    pub metrics: MetricsSettings,
    pub checkpoints: CheckpointsSettings,
    pub accounts: AccountsSettings,
    pub taxpayers: TaxpayersSettings,
    pub options: OptionsSettings,
    pub log: LogSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    Development,
    Production,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    pub bind: SocketAddr,
    #[serde(deserialize_with = "form::optional", serialize_with = "form::address_or_nothing")]
    pub ops_bind: Option<SocketAddr>,
    #[serde(deserialize_with = "form::networks", serialize_with = "form::networks_text")]
    pub trusted_proxies: Vec<IpNet>,
    pub forwarded_header: ForwardedHeader,
    pub body_bytes_max: usize,
    pub bulk_bytes_max: usize,
    pub bodies_bytes_max: usize,
    pub bodies_bytes_per_account_max: usize,
    pub body_timeout_s: u64,
    pub calls_per_account_max: usize,
    pub relays_per_account_max: usize,
    pub idempotency_keep_s: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardedHeader {
    XForwardedFor,
    Forwarded,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// Secret for the password in it. Empty is the file in `data_dir`: ask [`Settings::database_url`].
    #[serde(deserialize_with = "form::secret", serialize_with = "form::masked_url")]
    pub url: SecretString,
    pub writer_connections_max: u32,
    pub reader_connections_max: u32,
    pub lock_timeout_s: u64,
    pub statement_timeout_s: u64,
    pub idle_in_transaction_timeout_s: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthorityMode {
    /// The embedded simulator.
    Sandbox,
    /// The one at `base_url`.
    Remote,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AuthoritySettings {
    pub mode: AuthorityMode,
    pub allow_remote_in_development: bool,
    /// Present in mode remote.
    #[serde(deserialize_with = "form::optional", serialize_with = "form::url_or_nothing")]
    pub base_url: Option<Url>,
    #[serde(deserialize_with = "form::secret", serialize_with = "form::masked")]
    pub api_key: SecretString,
    #[serde(deserialize_with = "form::secret", serialize_with = "form::masked")]
    pub api_secret: SecretString,
    #[serde(deserialize_with = "form::optional", serialize_with = "form::path_or_nothing")]
    pub extra_ca_file: Option<PathBuf>,
    /// Empty: each taxpayer's own business id is asked about.
    pub entity_id: String,
    #[serde(deserialize_with = "form::secret", serialize_with = "form::masked")]
    pub notification_token: SecretString,
    pub pull_every_s: u64,
    pub outage_clear_after_s: u64,
    #[serde(deserialize_with = "form::offset", serialize_with = "form::offset_text")]
    pub utc_offset: Offset,
    #[serde(deserialize_with = "form::optional", serialize_with = "form::path_or_nothing")]
    pub crypto_keys_file: Option<PathBuf>,
    pub timeout_s: u64,
    pub max_concurrent_calls: u32,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxSettings {
    pub bind: SocketAddr,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineSettings {
    pub wait_s: u64,
    pub retry_initial_ms: u64,
    pub retry_max_s: u64,
    pub give_up_after_s: u64,
    pub concurrency_max: usize,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeadlinesSettings {
    pub b2b_h: u64,
    pub b2c_h: u64,
    pub b2g_h: u64,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReconcileSettings {
    /// 0: on demand only.
    pub every_s: u64,
    pub days: u32,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WebhooksSettings {
    /// As written: ask [`Settings::allowed_networks`] for what it means here.
    pub allowed_networks: Vec<NetworkEntry>,
    pub retry_schedule_s: Vec<u64>,
    pub timeout_s: u64,
    pub max_concurrent_per_endpoint: usize,
    pub circuit_open_after_s: u64,
    pub circuit_probe_max_s: u64,
    pub disable_after_s: u64,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SecretsSettings {
    /// Base64 of 32 bytes, or empty before [`Settings::with_local_secrets`].
    #[serde(deserialize_with = "form::secret", serialize_with = "form::masked")]
    pub encryption_key: SecretString,
    /// Older ones, which only open.
    #[serde(deserialize_with = "form::secrets", serialize_with = "form::masked_list")]
    pub encryption_keys: Vec<SecretString>,
    #[serde(deserialize_with = "form::secret", serialize_with = "form::masked")]
    pub contact_password: SecretString,
}

/// In each of them 0 lifts the limit.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimitSettings {
    pub requests_per_s: u32,
    pub burst: u32,
    pub rotate_per_min: u32,
    pub webhook_test_per_min: u32,
    pub failed_auth_per_min: u32,
    pub refused_creates_per_min: u32,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSettings {
    pub lease_s: u64,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    pub public: bool,
    pub public_on_network: bool,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointsSettings {
    /// None is no checkpoints, and in development a file in `data_dir` once [`Settings::with_local_secrets`] was asked.
    #[serde(deserialize_with = "form::optional", serialize_with = "form::path_or_nothing")]
    pub file: Option<PathBuf>,
    /// 0: on demand only.
    pub every_s: u64,
    /// Present where `file` is, and in development made with it.
    #[serde(deserialize_with = "form::optional", serialize_with = "form::path_or_nothing")]
    pub key_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AccountsSettings {
    pub verification: VerificationPolicy,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TaxpayersSettings {
    pub commands_per_taxpayer_max: usize,
    pub commands_max: usize,
    pub active_max: usize,
    pub idle_s: u64,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OptionsSettings {
    pub erp_systems: Vec<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    pub level: LogLevel,
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    Text,
    Json,
}

impl Settings {
    /// Reads the defaults, then `file` or else `./config.toml` if there is one, then the variables of `environment`
    /// that begin with `EINVOICE__`.
    ///
    /// # Errors
    /// All that is wrong with a file or a variable; only then what the deployment as a whole lacks.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigFault> {
        let default_file = Path::new(FILE);
        let file = file.or_else(|| default_file.exists().then_some(default_file));
        let settings: Self = layers::merged(file, environment)?;
        deployment::check(&settings)?;
        Ok(settings)
    }

    /// The database to open: `database.url`, or the SQLite file in `data_dir`.
    pub fn database_url(&self) -> SecretString {
        if !self.database.url.expose_secret().is_empty() {
            return self.database.url.clone();
        }
        let path = self.data_dir.join(DATABASE_FILE).to_string_lossy().into_owned();
        // In a URL these three would end the path or begin an escape.
        let escaped = path.replace('%', "%25").replace('?', "%3F").replace('#', "%23");
        format!("sqlite://{escaped}").into()
    }

    /// Where that is, without user, password and parameters: a file, or a host, its port and the database's name.
    pub fn database_place(&self) -> String {
        let url = self.database_url();
        let text = url.expose_secret();
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return path.split('?').next().unwrap_or(path).to_owned();
        }
        let Ok(url) = Url::parse(text) else { return "of database.url".to_owned() };
        let socket = url.query_pairs().find(|(name, _)| name == "host").map(|(_, host)| host.into_owned());
        let host = socket.or_else(|| url.host_str().map(str::to_owned)).unwrap_or_default();
        format!("{host}:{}{}", url.port().unwrap_or(POSTGRES_PORT), url.path())
    }

    /// Networks that webhooks may call although they are not public.
    pub fn allowed_networks(&self) -> Vec<AllowedNetwork> {
        self.webhooks
            .allowed_networks
            .iter()
            .flat_map(|entry| entry.in_environment(self.environment))
            .collect()
    }

    /// The settings in the form of `config.toml`, each secret that is set as `***`.
    pub fn masked(&self) -> String {
        toml::to_string(self).unwrap_or_else(|error| format!("# the settings cannot be shown: {error}\n"))
    }
}
