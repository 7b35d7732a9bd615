//! The settings. `config.toml` at the root of the repository documents them and holds their defaults. A settings file
//! overrides the defaults, and the environment overrides both.
//!
//! Every field has the name of its key in the file, including the unit. `config/limits.rs` holds the allowed values,
//! `config/deployment.rs` the rules that concern several settings.

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

pub use fault::{ConfigFault, LocalSecretFault, SettingFault, SettingSource};
pub use form::NetworkEntry;

use crate::domain::integration::network::AllowedNetwork;

/// The documented defaults of all settings, in TOML.
pub const DEFAULTS: &str = include_str!("../../config.toml");
/// The settings file that is read if no other file is named and this file exists.
const FILE: &str = "config.toml";
/// The file name of the SQLite database in `data_dir`.
const DATABASE_FILE: &str = "einvoice.db";

const POSTGRES_PORT: u16 = 5_432;

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub environment: Environment,
    pub allow_open_development: bool,
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
    pub console: ConsoleSettings,
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
    #[serde(deserialize_with = "form::read_optional", serialize_with = "form::write_address")]
    pub ops_bind: Option<SocketAddr>,
    #[serde(deserialize_with = "form::read_networks", serialize_with = "form::write_networks")]
    pub trusted_proxies: Vec<IpNet>,
    pub forwarded_header: ForwardedHeader,
    pub body_bytes_max: usize,
    pub bulk_bytes_max: usize,
    pub bodies_bytes_max: usize,
    pub bodies_bytes_per_integrator_max: usize,
    pub bodies_bytes_per_account_max: usize,
    pub body_timeout_s: u64,
    pub calls_per_account_max: usize,
    pub calls_per_integrator_max: usize,
    pub relays_per_account_max: usize,
    pub relays_per_integrator_max: usize,
    pub idempotency_keep_s: u64,
    pub connections_max: usize,
    pub connections_per_address_max: usize,
    pub answer_stalled_s: u64,
    pub answers_bytes_max: usize,
    pub answers_bytes_per_integrator_max: usize,
    pub answers_bytes_per_account_max: usize,
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
    /// May contain a password. Empty means the SQLite file in `data_dir`: use [`Settings::database_url`].
    #[serde(deserialize_with = "form::read_secret", serialize_with = "form::mask_url")]
    pub url: SecretString,
    pub writer_connections_max: u32,
    pub reader_connections_max: u32,
    pub page_connections_max: u32,
    pub lock_timeout_s: u64,
    pub statement_timeout_s: u64,
    pub idle_in_transaction_timeout_s: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthorityMode {
    /// The simulator of the authority, embedded in this process.
    Sandbox,
    /// The authority at `base_url`.
    Remote,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AuthoritySettings {
    pub mode: AuthorityMode,
    pub allow_remote_in_development: bool,
    /// The address of the remote authority; always present if `mode` is `remote`.
    #[serde(deserialize_with = "form::read_optional", serialize_with = "form::write_url")]
    pub base_url: Option<Url>,
    #[serde(deserialize_with = "form::read_secret", serialize_with = "form::mask_secret")]
    pub api_key: SecretString,
    #[serde(deserialize_with = "form::read_secret", serialize_with = "form::mask_secret")]
    pub api_secret: SecretString,
    #[serde(deserialize_with = "form::read_optional", serialize_with = "form::write_path")]
    pub extra_ca_file: Option<PathBuf>,
    /// The entity id to ask the authority about when a taxpayer is verified. If empty, the business id is used.
    pub entity_id: String,
    #[serde(deserialize_with = "form::read_secret", serialize_with = "form::mask_secret")]
    pub notification_token: SecretString,
    pub pull_every_s: u64,
    pub outage_clear_after_s: u64,
    #[serde(deserialize_with = "form::read_offset", serialize_with = "form::write_offset")]
    pub utc_offset: Offset,
    #[serde(deserialize_with = "form::read_optional", serialize_with = "form::write_path")]
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
    /// The interval between reconciliations in seconds. 0 means that days are compared on demand only.
    pub every_s: u64,
    pub days: u32,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WebhooksSettings {
    /// The entries as written. [`Settings::allowed_networks`] drops entries that do not apply in this environment.
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
    /// Seals and opens secrets: 32 bytes in base64. In development [`Settings::with_local_secrets`] sets it.
    #[serde(deserialize_with = "form::read_secret", serialize_with = "form::mask_secret")]
    pub encryption_key: SecretString,
    /// Older encryption keys, which still open sealed secrets but seal no new ones.
    #[serde(deserialize_with = "form::read_secrets", serialize_with = "form::mask_secrets")]
    pub encryption_keys: Vec<SecretString>,
}

/// The rate limits. 0 means that there is no limit.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimitSettings {
    pub requests_per_s: u32,
    pub burst: u32,
    pub integrator_requests_per_s: u32,
    pub integrator_burst: u32,
    pub rotate_per_min: u32,
    pub webhook_test_per_min: u32,
    pub failed_auth_per_min: u32,
    pub sign_ins_per_min: u32,
    pub pages_per_s: u32,
    pub concurrent_pages_max: usize,
    pub refused_creates_per_min: u32,
    pub onboardings_per_min: u32,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSettings {
    pub lease_s: u64,
    pub quarantine_lift_s: u64,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleSettings {
    pub session_idle_s: u64,
    pub session_max_s: u64,
    pub second_factor: SecondFactorPolicy,
}

/// Says when operators and integrators need a code of an authenticator app in addition to their password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecondFactorPolicy {
    /// They need a code if `environment` is production.
    InProduction,
    Always,
    Never,
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
    /// Checkpoints are appended to this file, if any. In development [`Settings::with_local_secrets`] sets it.
    #[serde(deserialize_with = "form::read_optional", serialize_with = "form::write_path")]
    pub file: Option<PathBuf>,
    /// The interval between checkpoints in seconds. 0 means that checkpoints are made on demand only.
    pub every_s: u64,
    /// The file with the key that signs checkpoints. In development [`Settings::with_local_secrets`] creates the file.
    #[serde(deserialize_with = "form::read_optional", serialize_with = "form::write_path")]
    pub key_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AccountsSettings {
    pub verification: VerificationPolicy,
    /// 0 means no limit.
    pub taxpayers_per_integrator_max: u64,
    pub keys_per_taxpayer_max: usize,
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
    /// Text if standard error is a terminal, JSON otherwise.
    Auto,
    Text,
    Json,
}

impl Settings {
    /// Reads the defaults, then `file` (by default `./config.toml`, if it exists), then the variables that begin with
    /// `EINVOICE__`. A later source overrides an earlier one. The error lists the invalid settings; if each of them is
    /// valid, it lists those that contradict each other.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigFault> {
        let default_file = Path::new(FILE);
        let file = file.or_else(|| default_file.exists().then_some(default_file));
        let settings: Self = layers::merge(file, environment)?;
        deployment::check(&settings)?;
        Ok(settings)
    }

    /// Returns `database.url`, or the URL of the SQLite file in `data_dir` if it is empty.
    pub fn database_url(&self) -> SecretString {
        if !self.database.url.expose_secret().is_empty() {
            return self.database.url.clone();
        }
        let path = self.data_dir.join(DATABASE_FILE).to_string_lossy().into_owned();
        // In the path of a URL these three characters have a special meaning.
        let escaped = path.replace('%', "%25").replace('?', "%3F").replace('#', "%23");
        format!("sqlite://{escaped}").into()
    }

    /// Returns the path of the database file, or host, port and database name. The text contains no user, password or
    /// parameters.
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

    /// Returns the networks that webhooks may call although they are not public.
    pub fn allowed_networks(&self) -> Vec<AllowedNetwork> {
        self.webhooks
            .allowed_networks
            .iter()
            .flat_map(|entry| entry.in_environment(self.environment))
            .collect()
    }

    /// Returns the settings in the format of `config.toml`, with `***` in place of each secret that is set.
    pub fn to_masked_toml(&self) -> String {
        toml::to_string(self).unwrap_or_else(|error| format!("# the settings cannot be shown: {error}\n"))
    }
}
