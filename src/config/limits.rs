//! The allowed values of each setting, in one table, and the settings that are secret.

use ipnet::IpNet;

use super::allowed::AllowedValues;
use super::form::parse_offset;
use super::text_rules::{
    ADDRESS_OR_EMPTY_RULE, ADDRESS_RULE, FILE_RULE, HEADER_RULE, NETWORKS_RULE, PROXIES_RULE,
    REPLICA_NAME_RULE, ROOT_RULE, SEGMENT_RULE, is_database_url, is_encryption_key,
    is_existing_file, is_header_value, is_network, is_nonempty_encryption_key, is_option_name,
    is_path_segment, is_replica_name, is_root_url, is_smtp_url, is_socket_address,
};

const DAY_S: i64 = 86_400;
const YEAR_H: i64 = 365 * 24;
const MONTH_S: i64 = 31 * DAY_S;
const GIB: i64 = 1 << 30;
const COUNT_MAX: i64 = 1_000_000;

/// The settings whose values are secret and never shown.
const SECRET_SETTINGS: [&str; 7] = [
    "database.url",
    "authority.api_key",
    "authority.api_secret",
    "authority.notification_token",
    "secrets.encryption_key",
    "secrets.encryption_keys",
    "mail.smtp_url",
];

/// The allowed values of every setting, in the order of `config.toml`.
pub(super) const ALLOWED_VALUES: &[(&str, AllowedValues)] = &[
    (
        "environment",
        AllowedValues::Word(&["development", "production"]),
    ),
    ("allow_open_development", AllowedValues::Flag),
    (
        "data_dir",
        AllowedValues::Text(|text| !text.is_empty(), "a directory"),
    ),
    (
        "http.bind",
        AllowedValues::Text(is_socket_address, ADDRESS_RULE),
    ),
    (
        "http.ops_bind",
        AllowedValues::Text(
            |text| text.is_empty() || is_socket_address(text),
            ADDRESS_OR_EMPTY_RULE,
        ),
    ),
    (
        "http.public_url",
        AllowedValues::Text(is_root_url, ROOT_RULE),
    ),
    (
        "http.trusted_proxies",
        AllowedValues::Texts(|text| text.parse::<IpNet>().is_ok(), PROXIES_RULE),
    ),
    (
        "http.forwarded_header",
        AllowedValues::Word(&["x-forwarded-for", "forwarded"]),
    ),
    ("http.body_bytes_max", AllowedValues::Number(1_024..=GIB)),
    ("http.bulk_bytes_max", AllowedValues::Number(1_024..=GIB)),
    ("http.import_bytes_max", AllowedValues::Number(1_024..=GIB)),
    (
        "http.bodies_bytes_max",
        AllowedValues::Number(1_024..=2 * GIB),
    ),
    (
        "http.bodies_bytes_per_integrator_max",
        AllowedValues::Number(1_024..=2 * GIB),
    ),
    (
        "http.bodies_bytes_per_account_max",
        AllowedValues::Number(1_024..=2 * GIB),
    ),
    ("http.body_timeout_s", AllowedValues::Number(1..=3_600)),
    (
        "http.calls_per_account_max",
        AllowedValues::Number(1..=COUNT_MAX),
    ),
    (
        "http.calls_per_integrator_max",
        AllowedValues::Number(1..=COUNT_MAX),
    ),
    (
        "http.relays_per_account_max",
        AllowedValues::Number(1..=COUNT_MAX),
    ),
    (
        "http.relays_per_integrator_max",
        AllowedValues::Number(1..=COUNT_MAX),
    ),
    (
        "http.idempotency_keep_s",
        AllowedValues::Number(1..=MONTH_S),
    ),
    ("http.request_log_days", AllowedValues::Number(0..=90)),
    (
        "http.connections_max",
        AllowedValues::Number(16..=COUNT_MAX),
    ),
    (
        "http.connections_per_address_max",
        AllowedValues::Number(8..=COUNT_MAX),
    ),
    ("http.answer_stalled_s", AllowedValues::Number(1..=3_600)),
    ("http.drain_delay_s", AllowedValues::Number(0..=300)),
    (
        "http.answers_bytes_max",
        AllowedValues::Number(1_024..=2 * GIB),
    ),
    (
        "http.answers_bytes_per_integrator_max",
        AllowedValues::Number(1_024..=2 * GIB),
    ),
    (
        "http.answers_bytes_per_account_max",
        AllowedValues::Number(1_024..=2 * GIB),
    ),
    (
        "database.url",
        AllowedValues::Text(
            is_database_url,
            "a URL that begins with sqlite:// or postgres://, or empty",
        ),
    ),
    (
        "database.writer_connections_max",
        AllowedValues::Number(1..=1_000),
    ),
    (
        "database.reader_connections_max",
        AllowedValues::Number(1..=1_000),
    ),
    (
        "database.page_connections_max",
        AllowedValues::Number(1..=1_000),
    ),
    ("database.lock_timeout_s", AllowedValues::Number(1..=60)),
    (
        "database.statement_timeout_s",
        AllowedValues::Number(1..=600),
    ),
    (
        "database.idle_in_transaction_timeout_s",
        AllowedValues::Number(1..=600),
    ),
    (
        "authority.mode",
        AllowedValues::Word(&["sandbox", "remote"]),
    ),
    ("authority.allow_remote_in_development", AllowedValues::Flag),
    (
        "authority.base_url",
        AllowedValues::Text(is_root_url, ROOT_RULE),
    ),
    (
        "authority.api_key",
        AllowedValues::Text(is_header_value, HEADER_RULE),
    ),
    (
        "authority.api_secret",
        AllowedValues::Text(is_header_value, HEADER_RULE),
    ),
    (
        "authority.extra_ca_file",
        AllowedValues::Text(is_existing_file, FILE_RULE),
    ),
    (
        "authority.entity_id",
        AllowedValues::Text(is_path_segment, SEGMENT_RULE),
    ),
    (
        "authority.notification_token",
        AllowedValues::Text(is_path_segment, SEGMENT_RULE),
    ),
    ("authority.pull_every_s", AllowedValues::Number(1..=DAY_S)),
    (
        "authority.outage_clear_after_s",
        AllowedValues::Number(1..=3_600),
    ),
    (
        "authority.utc_offset",
        AllowedValues::Text(
            |text| parse_offset(text).is_some(),
            "an offset such as +01:00",
        ),
    ),
    (
        "authority.crypto_keys_file",
        AllowedValues::Text(is_existing_file, FILE_RULE),
    ),
    ("authority.timeout_s", AllowedValues::Number(1..=600)),
    (
        "authority.max_concurrent_calls",
        AllowedValues::Number(1..=10_000),
    ),
    (
        "sandbox.bind",
        AllowedValues::Text(is_socket_address, ADDRESS_RULE),
    ),
    ("pipeline.wait_s", AllowedValues::Number(0..=600)),
    (
        "pipeline.retry_initial_ms",
        AllowedValues::Number(1..=DAY_S * 1_000),
    ),
    ("pipeline.retry_max_s", AllowedValues::Number(1..=DAY_S)),
    (
        "pipeline.give_up_after_s",
        AllowedValues::Number(1..=12 * MONTH_S),
    ),
    (
        "pipeline.concurrency_max",
        AllowedValues::Number(1..=COUNT_MAX),
    ),
    ("deadlines.b2b_h", AllowedValues::Number(1..=YEAR_H)),
    ("deadlines.b2c_h", AllowedValues::Number(1..=YEAR_H)),
    ("deadlines.b2g_h", AllowedValues::Number(1..=YEAR_H)),
    ("reconcile.every_s", AllowedValues::Number(0..=DAY_S)),
    ("reconcile.days", AllowedValues::Number(1..=31)),
    (
        "webhooks.allowed_networks",
        AllowedValues::Texts(is_network, NETWORKS_RULE),
    ),
    (
        "webhooks.retry_schedule_s",
        AllowedValues::Numbers(0..=MONTH_S),
    ),
    ("webhooks.timeout_s", AllowedValues::Number(1..=600)),
    (
        "webhooks.max_concurrent_per_endpoint",
        AllowedValues::Number(1..=1_000),
    ),
    (
        "webhooks.circuit_open_after_s",
        AllowedValues::Number(0..=MONTH_S),
    ),
    (
        "webhooks.circuit_probe_max_s",
        AllowedValues::Number(1..=DAY_S),
    ),
    (
        "webhooks.disable_after_s",
        AllowedValues::Number(1..=12 * MONTH_S),
    ),
    (
        "secrets.encryption_key",
        AllowedValues::Text(is_encryption_key, "32 bytes in base64, or empty"),
    ),
    (
        "secrets.encryption_keys",
        AllowedValues::Texts(is_nonempty_encryption_key, "keys of 32 bytes in base64"),
    ),
    (
        "rate_limit.requests_per_s",
        AllowedValues::Number(0..=COUNT_MAX),
    ),
    ("rate_limit.burst", AllowedValues::Number(0..=COUNT_MAX)),
    (
        "rate_limit.integrator_requests_per_s",
        AllowedValues::Number(0..=COUNT_MAX),
    ),
    (
        "rate_limit.integrator_burst",
        AllowedValues::Number(0..=COUNT_MAX),
    ),
    (
        "rate_limit.rotate_per_min",
        AllowedValues::Number(0..=COUNT_MAX),
    ),
    (
        "rate_limit.webhook_test_per_min",
        AllowedValues::Number(0..=COUNT_MAX),
    ),
    (
        "rate_limit.failed_auth_per_min",
        AllowedValues::Number(0..=COUNT_MAX),
    ),
    (
        "rate_limit.pages_per_s",
        AllowedValues::Number(0..=COUNT_MAX),
    ),
    (
        "rate_limit.concurrent_pages_max",
        AllowedValues::Number(1..=COUNT_MAX),
    ),
    (
        "rate_limit.sign_ins_per_min",
        AllowedValues::Number(0..=COUNT_MAX),
    ),
    (
        "rate_limit.refused_creates_per_min",
        AllowedValues::Number(0..=COUNT_MAX),
    ),
    (
        "rate_limit.onboardings_per_min",
        AllowedValues::Number(0..=COUNT_MAX),
    ),
    ("cluster.lease_s", AllowedValues::Number(1..=3_600)),
    (
        "cluster.quarantine_lift_s",
        AllowedValues::Number(0..=DAY_S),
    ),
    (
        "cluster.replica_name",
        AllowedValues::Text(is_replica_name, REPLICA_NAME_RULE),
    ),
    ("console.session_idle_s", AllowedValues::Number(60..=DAY_S)),
    ("console.session_max_s", AllowedValues::Number(60..=MONTH_S)),
    (
        "console.second_factor",
        AllowedValues::Word(&["in-production", "always", "never"]),
    ),
    ("metrics.public", AllowedValues::Flag),
    ("metrics.public_on_network", AllowedValues::Flag),
    (
        "checkpoints.file",
        AllowedValues::Text(|_| true, "the path of a file, or empty"),
    ),
    ("checkpoints.every_s", AllowedValues::Number(0..=DAY_S)),
    (
        "checkpoints.key_file",
        AllowedValues::Text(is_existing_file, FILE_RULE),
    ),
    (
        "accounts.verification",
        AllowedValues::Word(&["warn", "require"]),
    ),
    (
        "accounts.taxpayers_per_integrator_max",
        AllowedValues::Number(0..=COUNT_MAX),
    ),
    // The upper limit must not exceed `VALID_KEYS_MAX`.
    (
        "accounts.keys_per_taxpayer_max",
        AllowedValues::Number(1..=20),
    ),
    (
        "taxpayers.commands_per_taxpayer_max",
        AllowedValues::Number(1..=COUNT_MAX),
    ),
    (
        "taxpayers.commands_max",
        AllowedValues::Number(1..=COUNT_MAX),
    ),
    ("taxpayers.active_max", AllowedValues::Number(1..=COUNT_MAX)),
    ("taxpayers.idle_s", AllowedValues::Number(1..=DAY_S)),
    (
        "options.erp_systems",
        AllowedValues::Texts(
            is_option_name,
            "names of lower-case letters, digits and `_`",
        ),
    ),
    (
        "mail.smtp_url",
        AllowedValues::Text(is_smtp_url, "an smtp or smtps URL with a host, or empty"),
    ),
    (
        "mail.from",
        AllowedValues::Text(|text| text.contains('@'), "an email address"),
    ),
    ("mail.gather_s", AllowedValues::Number(0..=DAY_S)),
    ("mail.repeat_s", AllowedValues::Number(0..=MONTH_S)),
    ("mail.deadline_before_s", AllowedValues::Number(0..=MONTH_S)),
    (
        "log.level",
        AllowedValues::Word(&["off", "error", "warn", "info", "debug", "trace"]),
    ),
    ("log.format", AllowedValues::Word(&["auto", "text", "json"])),
    (
        "telemetry.otlp_endpoint",
        AllowedValues::Text(is_root_url, ROOT_RULE),
    ),
];

/// Returns the allowed values of a setting. `key` is the full name, such as `http.bind`. `None` if there is no such
/// setting.
pub(super) fn allowed_values(key: &str) -> Option<&'static AllowedValues> {
    ALLOWED_VALUES
        .iter()
        .find(|(name, _)| *name == key)
        .map(|(_, allowed)| allowed)
}

pub(super) fn is_secret(key: &str) -> bool {
    SECRET_SETTINGS.contains(&key)
}
