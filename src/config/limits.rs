//! The allowed values of each setting, and a description of these values for error messages.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;
use toml::Value;
use url::Url;

use super::form::{NetworkEntry, parse_offset};

const DAY_S: i64 = 86_400;
const YEAR_H: i64 = 365 * 24;
const MONTH_S: i64 = 31 * DAY_S;
const GIB: i64 = 1 << 30;
const COUNT_MAX: i64 = 1_000_000;
/// The length of an encryption key, in bytes.
const ENCRYPTION_KEY_BYTES: usize = 32;

/// The settings whose values are secret and never shown.
const SECRET_SETTINGS: [&str; 6] = [
    "database.url",
    "authority.api_key",
    "authority.api_secret",
    "authority.notification_token",
    "secrets.encryption_key",
    "secrets.encryption_keys",
];

#[derive(Debug, Clone)]
pub(super) enum Allowed {
    Flag,
    Number(RangeInclusive<i64>),
    /// A list of at least one number in this range.
    Numbers(RangeInclusive<i64>),
    Word(&'static [&'static str]),
    /// Text for which the function returns true. The second value describes the allowed text in error messages.
    Text(fn(&str) -> bool, &'static str),
    /// A list of texts. The function checks each text; the second value describes the allowed texts in errors.
    Texts(fn(&str) -> bool, &'static str),
}

/// The allowed values of every setting, in the order of `config.toml`.
pub(super) const ALLOWED_VALUES: &[(&str, Allowed)] = &[
    ("environment", Allowed::Word(&["development", "production"])),
    ("allow_open_development", Allowed::Flag),
    ("data_dir", Allowed::Text(|text| !text.is_empty(), "a directory")),
    ("http.bind", Allowed::Text(is_address, ADDRESS_RULE)),
    ("http.ops_bind", Allowed::Text(|text| text.is_empty() || is_address(text), ADDRESS_OR_EMPTY_RULE)),
    ("http.trusted_proxies", Allowed::Texts(|text| text.parse::<IpNet>().is_ok(), PROXIES_RULE)),
    ("http.forwarded_header", Allowed::Word(&["x-forwarded-for", "forwarded"])),
    ("http.body_bytes_max", Allowed::Number(1_024..=GIB)),
    ("http.bulk_bytes_max", Allowed::Number(1_024..=GIB)),
    ("http.bodies_bytes_max", Allowed::Number(1_024..=2 * GIB)),
    ("http.bodies_bytes_per_integrator_max", Allowed::Number(1_024..=2 * GIB)),
    ("http.bodies_bytes_per_account_max", Allowed::Number(1_024..=2 * GIB)),
    ("http.body_timeout_s", Allowed::Number(1..=3_600)),
    ("http.calls_per_account_max", Allowed::Number(1..=COUNT_MAX)),
    ("http.calls_per_integrator_max", Allowed::Number(1..=COUNT_MAX)),
    ("http.relays_per_account_max", Allowed::Number(1..=COUNT_MAX)),
    ("http.relays_per_integrator_max", Allowed::Number(1..=COUNT_MAX)),
    ("http.idempotency_keep_s", Allowed::Number(1..=MONTH_S)),
    ("http.connections_max", Allowed::Number(16..=COUNT_MAX)),
    ("http.connections_per_address_max", Allowed::Number(8..=COUNT_MAX)),
    ("http.answer_stalled_s", Allowed::Number(1..=3_600)),
    ("http.answers_bytes_max", Allowed::Number(1_024..=2 * GIB)),
    ("http.answers_bytes_per_integrator_max", Allowed::Number(1_024..=2 * GIB)),
    ("http.answers_bytes_per_account_max", Allowed::Number(1_024..=2 * GIB)),
    ("database.url", Allowed::Text(is_database, "a URL that begins with sqlite:// or postgres://, or empty")),
    ("database.writer_connections_max", Allowed::Number(1..=1_000)),
    ("database.reader_connections_max", Allowed::Number(1..=1_000)),
    ("database.page_connections_max", Allowed::Number(1..=1_000)),
    ("database.lock_timeout_s", Allowed::Number(1..=60)),
    ("database.statement_timeout_s", Allowed::Number(1..=600)),
    ("database.idle_in_transaction_timeout_s", Allowed::Number(1..=600)),
    ("authority.mode", Allowed::Word(&["sandbox", "remote"])),
    ("authority.allow_remote_in_development", Allowed::Flag),
    (
        "authority.base_url",
        Allowed::Text(is_root, "an http or https URL without user, query and fragment, or empty"),
    ),
    ("authority.api_key", Allowed::Text(is_header, HEADER_RULE)),
    ("authority.api_secret", Allowed::Text(is_header, HEADER_RULE)),
    ("authority.extra_ca_file", Allowed::Text(is_file, FILE_RULE)),
    ("authority.entity_id", Allowed::Text(is_segment, SEGMENT_RULE)),
    ("authority.notification_token", Allowed::Text(is_segment, SEGMENT_RULE)),
    ("authority.pull_every_s", Allowed::Number(1..=DAY_S)),
    ("authority.outage_clear_after_s", Allowed::Number(1..=3_600)),
    ("authority.utc_offset", Allowed::Text(|text| parse_offset(text).is_some(), "an offset such as +01:00")),
    ("authority.crypto_keys_file", Allowed::Text(is_file, FILE_RULE)),
    ("authority.timeout_s", Allowed::Number(1..=600)),
    ("authority.max_concurrent_calls", Allowed::Number(1..=10_000)),
    ("sandbox.bind", Allowed::Text(is_address, ADDRESS_RULE)),
    ("pipeline.wait_s", Allowed::Number(0..=600)),
    ("pipeline.retry_initial_ms", Allowed::Number(1..=DAY_S * 1_000)),
    ("pipeline.retry_max_s", Allowed::Number(1..=DAY_S)),
    ("pipeline.give_up_after_s", Allowed::Number(1..=12 * MONTH_S)),
    ("pipeline.concurrency_max", Allowed::Number(1..=COUNT_MAX)),
    ("deadlines.b2b_h", Allowed::Number(1..=YEAR_H)),
    ("deadlines.b2c_h", Allowed::Number(1..=YEAR_H)),
    ("deadlines.b2g_h", Allowed::Number(1..=YEAR_H)),
    ("reconcile.every_s", Allowed::Number(0..=DAY_S)),
    ("reconcile.days", Allowed::Number(1..=31)),
    ("webhooks.allowed_networks", Allowed::Texts(is_network, NETWORKS_RULE)),
    ("webhooks.retry_schedule_s", Allowed::Numbers(0..=MONTH_S)),
    ("webhooks.timeout_s", Allowed::Number(1..=600)),
    ("webhooks.max_concurrent_per_endpoint", Allowed::Number(1..=1_000)),
    ("webhooks.circuit_open_after_s", Allowed::Number(0..=MONTH_S)),
    ("webhooks.circuit_probe_max_s", Allowed::Number(1..=DAY_S)),
    ("webhooks.disable_after_s", Allowed::Number(1..=12 * MONTH_S)),
    ("secrets.encryption_key", Allowed::Text(is_encryption_key, "32 bytes in base64, or empty")),
    ("secrets.encryption_keys", Allowed::Texts(is_one_encryption_key, "keys of 32 bytes in base64")),
    ("rate_limit.requests_per_s", Allowed::Number(0..=COUNT_MAX)),
    ("rate_limit.burst", Allowed::Number(0..=COUNT_MAX)),
    ("rate_limit.integrator_requests_per_s", Allowed::Number(0..=COUNT_MAX)),
    ("rate_limit.integrator_burst", Allowed::Number(0..=COUNT_MAX)),
    ("rate_limit.rotate_per_min", Allowed::Number(0..=COUNT_MAX)),
    ("rate_limit.webhook_test_per_min", Allowed::Number(0..=COUNT_MAX)),
    ("rate_limit.failed_auth_per_min", Allowed::Number(0..=COUNT_MAX)),
    ("rate_limit.pages_per_s", Allowed::Number(0..=COUNT_MAX)),
    ("rate_limit.concurrent_pages_max", Allowed::Number(1..=COUNT_MAX)),
    ("rate_limit.sign_ins_per_min", Allowed::Number(0..=COUNT_MAX)),
    ("rate_limit.refused_creates_per_min", Allowed::Number(0..=COUNT_MAX)),
    ("rate_limit.onboardings_per_min", Allowed::Number(0..=COUNT_MAX)),
    ("cluster.lease_s", Allowed::Number(1..=3_600)),
    ("cluster.quarantine_lift_s", Allowed::Number(0..=DAY_S)),
    ("console.session_idle_s", Allowed::Number(60..=DAY_S)),
    ("console.session_max_s", Allowed::Number(60..=MONTH_S)),
    ("console.second_factor", Allowed::Word(&["in-production", "always", "never"])),
    ("metrics.public", Allowed::Flag),
    ("metrics.public_on_network", Allowed::Flag),
    ("checkpoints.file", Allowed::Text(|_| true, "the path of a file, or empty")),
    ("checkpoints.every_s", Allowed::Number(0..=DAY_S)),
    ("checkpoints.key_file", Allowed::Text(is_file, FILE_RULE)),
    ("accounts.verification", Allowed::Word(&["warn", "require"])),
    ("accounts.taxpayers_per_integrator_max", Allowed::Number(0..=COUNT_MAX)),
    // The upper limit must not exceed `VALID_KEYS_MAX`.
    ("accounts.keys_per_taxpayer_max", Allowed::Number(1..=20)),
    ("taxpayers.commands_per_taxpayer_max", Allowed::Number(1..=COUNT_MAX)),
    ("taxpayers.commands_max", Allowed::Number(1..=COUNT_MAX)),
    ("taxpayers.active_max", Allowed::Number(1..=COUNT_MAX)),
    ("taxpayers.idle_s", Allowed::Number(1..=DAY_S)),
    ("options.erp_systems", Allowed::Texts(is_name, "names of lower-case letters, digits and `_`")),
    ("log.level", Allowed::Word(&["off", "error", "warn", "info", "debug", "trace"])),
    ("log.format", Allowed::Word(&["auto", "text", "json"])),
];

const NETWORKS_RULE: &str = "networks such as \"10.0.0.0/8\", \"10.1.2.0/24:8443\" or \"[fd00::/8]:8443\", none of them link-local or a metadata address";
const PROXIES_RULE: &str = "networks such as \"10.0.0.0/8\"";
const ADDRESS_OR_EMPTY_RULE: &str = "an IP address and a port, such as 10.0.0.5:8081, or empty";
const ADDRESS_RULE: &str = "an IP address and a port, such as 127.0.0.1:8080";
const SEGMENT_RULE: &str = "letters, digits, `-`, `.`, `_` and `~`, or empty";
const HEADER_RULE: &str = "visible ASCII characters without spaces, or empty";
const FILE_RULE: &str = "the path of a file that exists, or empty";

/// Returns the allowed values of a setting. `key` is the full name, such as `http.bind`. `None` if there is no such
/// setting.
pub(super) fn allowed_for(key: &str) -> Option<&'static Allowed> {
    ALLOWED_VALUES.iter().find(|(name, _)| *name == key).map(|(_, allowed)| allowed)
}

pub(super) fn is_secret(key: &str) -> bool {
    SECRET_SETTINGS.contains(&key)
}

impl Allowed {
    pub(super) fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Flag, Value::Boolean(_)) => true,
            (Self::Number(range), Value::Integer(number)) => range.contains(number),
            (Self::Word(words), Value::String(text)) => words.contains(&text.as_str()),
            (Self::Text(passes, _), Value::String(text)) => passes(text),
            (Self::Numbers(range), Value::Array(values)) => {
                !values.is_empty()
                    && values.iter().all(|value| value.as_integer().is_some_and(|one| range.contains(&one)))
            }
            (Self::Texts(passes, _), Value::Array(values)) => {
                values.iter().all(|value| value.as_str().is_some_and(passes))
            }
            _ => false,
        }
    }

    /// Returns true if an environment variable for this setting is used as text instead of being read as TOML.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Word(_) | Self::Text(..))
    }

    /// Describes the allowed values, as the text that follows "must be" in an error message.
    pub(super) fn describe(&self) -> String {
        let ends = |range: &RangeInclusive<i64>| format!("from {} to {}", range.start(), range.end());
        match self {
            Self::Flag => "true or false".to_owned(),
            Self::Number(range) => format!("a whole number {}", ends(range)),
            Self::Numbers(range) => {
                format!("a list of one or more whole numbers {}, such as [0, 5, 300]", ends(range))
            }
            Self::Word(words) => format!("one of {}", words.join(", ")),
            Self::Text(_, what) => (*what).to_owned(),
            Self::Texts(_, what) => format!("a list, in brackets, of {what}"),
        }
    }
}

fn is_address(text: &str) -> bool {
    text.parse::<SocketAddr>().is_ok()
}

fn is_database(text: &str) -> bool {
    let is_sqlite = text.strip_prefix("sqlite://").is_some_and(|path| !path.is_empty());
    text.is_empty() || is_sqlite || Url::parse(text).is_ok_and(|url| is_postgres(&url))
}

fn is_postgres(url: &Url) -> bool {
    matches!(url.scheme(), "postgres" | "postgresql") && url.has_host()
}

fn is_root(text: &str) -> bool {
    text.is_empty()
        || Url::parse(text).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        })
}

fn is_header(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_segment(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

fn is_file(text: &str) -> bool {
    text.is_empty() || Path::new(text).is_file()
}

fn is_network(text: &str) -> bool {
    text.parse::<NetworkEntry>().is_ok()
}

fn is_encryption_key(text: &str) -> bool {
    text.is_empty() || STANDARD.decode(text.trim()).is_ok_and(|key| key.len() == ENCRYPTION_KEY_BYTES)
}

fn is_one_encryption_key(text: &str) -> bool {
    !text.is_empty() && is_encryption_key(text)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}
