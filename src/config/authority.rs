//! The settings of the section `authority`: the address of the authority, and the credentials of the service.

use std::path::PathBuf;

use jiff::tz::Offset;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

use super::form;

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
    #[serde(
        deserialize_with = "form::read_optional",
        serialize_with = "form::write_url"
    )]
    pub base_url: Option<Url>,
    #[serde(
        deserialize_with = "form::read_secret",
        serialize_with = "form::mask_secret"
    )]
    pub api_key: SecretString,
    #[serde(
        deserialize_with = "form::read_secret",
        serialize_with = "form::mask_secret"
    )]
    pub api_secret: SecretString,
    #[serde(
        deserialize_with = "form::read_optional",
        serialize_with = "form::write_path"
    )]
    pub extra_ca_file: Option<PathBuf>,
    /// The entity id to ask the authority about when a taxpayer is verified. If empty, the business id is used.
    pub entity_id: String,
    #[serde(
        deserialize_with = "form::read_secret",
        serialize_with = "form::mask_secret"
    )]
    pub notification_token: SecretString,
    pub pull_every_s: u64,
    pub outage_clear_after_s: u64,
    #[serde(
        deserialize_with = "form::read_offset",
        serialize_with = "form::write_offset"
    )]
    pub utc_offset: Offset,
    #[serde(
        deserialize_with = "form::read_optional",
        serialize_with = "form::write_path"
    )]
    pub crypto_keys_file: Option<PathBuf>,
    pub timeout_s: u64,
    pub max_concurrent_calls: u32,
}
