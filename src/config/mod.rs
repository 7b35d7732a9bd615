//! The settings. `config.toml` at the root of the repository documents the settings and holds their
//! defaults. A settings file overrides the defaults, and the environment overrides both.
//!
//! Every field has the name of its key in the file, including the unit. The sections `http`,
//! `database` and `authority` have files of their own. `config/limits.rs` holds the allowed values,
//! `config/deployment.rs` the rules that concern several settings.
//!
//! | File | Content |
//! |---|---|
//! | `allowed` | the values that a setting may have: a flag, a number in a range, one of some words, or text that passes a check |
//! | `authority` | the settings of the section `authority`: the address of the authority, and the credentials of the service |
//! | `database` | the settings of the section `database`, and the location of the database: `database.url`, or a SQLite file in `data_dir` |
//! | `deployment` | checks the settings as a whole |
//! | `environment` | the environment that a process runs in: development or production |
//! | `fault` | faults of settings, as sentences for the person who starts the program |
//! | `form` | reads and writes values of the settings file |
//! | `http` | the settings of the section `http`: the addresses to listen on, and the limits for callers |
//! | `layers` | merges defaults, settings file and environment |
//! | `limits` | the allowed values of each setting, in one table, and the settings that are secret |
//! | `local_secrets` | secrets that a development machine creates for itself, once, in files of `data_dir` |
//! | `strength` | detects keys and passwords that an attacker would try first, such as `changeme` |
//! | `text_rules` | the rules for settings that are text, such as an address or a URL |
//! | `warnings` | warnings about risky settings |

mod allowed;
pub(crate) mod authority;
mod database;
mod deployment;
mod environment;
mod fault;
mod form;
pub(crate) mod http;
mod layers;
mod limits;
mod local_secrets;
mod strength;
#[cfg(test)]
mod tests;
mod text_rules;
mod warnings;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use address_policy::AllowedNetwork;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use self::authority::AuthoritySettings;
use self::database::DatabaseSettings;
use self::http::HttpSettings;
use crate::domain::party::verification::VerificationPolicy;

pub use environment::Environment;
pub use fault::{ConfigFault, LocalSecretFault, SettingFault, SettingSource};
pub use form::NetworkEntry;

/// The settings file that is read if no other file is named and this file exists.
const DEFAULT_FILE: &str = "config.toml";

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
    pub mail: MailSettings,
    pub log: LogSettings,
    pub telemetry: TelemetrySettings,
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
    #[serde(
        deserialize_with = "form::read_secret",
        serialize_with = "form::mask_secret"
    )]
    pub encryption_key: SecretString,
    /// Other encryption keys, older ones and the next one, which open sealed secrets but seal no new ones.
    #[serde(
        deserialize_with = "form::read_secrets",
        serialize_with = "form::mask_secrets"
    )]
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
    /// The name of this replica on pages; `None` means the host and the port.
    #[serde(
        deserialize_with = "form::read_optional",
        serialize_with = "form::write_name"
    )]
    pub replica_name: Option<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleSettings {
    pub session_idle_s: u64,
    pub session_max_s: u64,
    pub second_factor: SecondFactorPolicy,
}

/// Determines when operators and integrators need a code of an authenticator app in addition to their password.
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
    #[serde(
        deserialize_with = "form::read_optional",
        serialize_with = "form::write_path"
    )]
    pub file: Option<PathBuf>,
    /// The interval between checkpoints in seconds. 0 means that checkpoints are made on demand only.
    pub every_s: u64,
    /// The file with the key that signs checkpoints. In development [`Settings::with_local_secrets`] creates the file.
    #[serde(
        deserialize_with = "form::read_optional",
        serialize_with = "form::write_path"
    )]
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

/// The settings of mails to people.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MailSettings {
    /// The URL of the SMTP server, with user and password. If it is empty, mails are written into a folder in
    /// development, and are not sent in production.
    #[serde(
        deserialize_with = "form::read_secret",
        serialize_with = "form::mask_secret"
    )]
    pub smtp_url: SecretString,
    pub from: String,
    pub gather_s: u64,
    pub repeat_s: u64,
    pub deadline_before_s: u64,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySettings {
    /// The root URL of the collector of spans; `None` means that no spans are exported.
    #[serde(
        deserialize_with = "form::read_optional",
        serialize_with = "form::write_name"
    )]
    pub otlp_endpoint: Option<String>,
}

impl Settings {
    /// Reads the defaults, then `file` (by default `./config.toml`, if it exists), then the variables that begin with
    /// `EINVOICE__`. A later source overrides an earlier one. The error lists the invalid settings; if each of them is
    /// valid, it lists those that contradict each other.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigFault> {
        let default_file = Path::new(DEFAULT_FILE);
        let file = file.or_else(|| default_file.exists().then_some(default_file));
        let settings: Self = layers::merge(file, environment)?;
        deployment::check(&settings)?;
        Ok(settings)
    }

    /// Returns the defaults, without the file and the variables.
    pub fn defaults() -> Result<Self, ConfigFault> {
        layers::merge(None, std::iter::empty())
    }

    /// Returns the networks that webhooks may call although they are not public.
    pub fn allowed_networks(&self) -> Vec<AllowedNetwork> {
        self.webhooks
            .allowed_networks
            .iter()
            .flat_map(|entry| entry.allowed_networks(self.environment))
            .collect()
    }

    /// Returns the settings in the format of `config.toml`, with `***` in place of each secret that is set.
    pub fn to_masked_toml(&self) -> String {
        toml::to_string(self)
            .unwrap_or_else(|error| format!("# the settings cannot be shown: {error}\n"))
    }
}
