//! The allowed values of each setting, in one table, and the settings that are secret.

use ipnet::IpNet;

use super::allowed::Allowed;
use super::form::parse_offset;
use super::text_rules::{
    ADDRESS_OR_EMPTY_RULE, ADDRESS_RULE, FILE_RULE, HEADER_RULE, NETWORKS_RULE, PROXIES_RULE,
    REPLICA_NAME_RULE, ROOT_RULE, SEGMENT_RULE, is_address, is_database, is_encryption_key,
    is_file, is_header, is_name, is_network, is_one_encryption_key, is_replica_name, is_root,
    is_segment, is_smtp_url,
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
pub(super) const ALLOWED_VALUES: &[(&str, Allowed)] = &[
    ("environment", Allowed::Word(&["development", "production"])),
    ("allow_open_development", Allowed::Flag),
    (
        "data_dir",
        Allowed::Text(|text| !text.is_empty(), "a directory"),
    ),
    ("http.bind", Allowed::Text(is_address, ADDRESS_RULE)),
    (
        "http.ops_bind",
        Allowed::Text(
            |text| text.is_empty() || is_address(text),
            ADDRESS_OR_EMPTY_RULE,
        ),
    ),
    ("http.public_url", Allowed::Text(is_root, ROOT_RULE)),
    (
        "http.trusted_proxies",
        Allowed::Texts(|text| text.parse::<IpNet>().is_ok(), PROXIES_RULE),
    ),
    (
        "http.forwarded_header",
        Allowed::Word(&["x-forwarded-for", "forwarded"]),
    ),
    ("http.body_bytes_max", Allowed::Number(1_024..=GIB)),
    ("http.bulk_bytes_max", Allowed::Number(1_024..=GIB)),
    ("http.import_bytes_max", Allowed::Number(1_024..=GIB)),
    ("http.bodies_bytes_max", Allowed::Number(1_024..=2 * GIB)),
    (
        "http.bodies_bytes_per_integrator_max",
        Allowed::Number(1_024..=2 * GIB),
    ),
    (
        "http.bodies_bytes_per_account_max",
        Allowed::Number(1_024..=2 * GIB),
    ),
    ("http.body_timeout_s", Allowed::Number(1..=3_600)),
    ("http.calls_per_account_max", Allowed::Number(1..=COUNT_MAX)),
    (
        "http.calls_per_integrator_max",
        Allowed::Number(1..=COUNT_MAX),
    ),
    (
        "http.relays_per_account_max",
        Allowed::Number(1..=COUNT_MAX),
    ),
    (
        "http.relays_per_integrator_max",
        Allowed::Number(1..=COUNT_MAX),
    ),
    ("http.idempotency_keep_s", Allowed::Number(1..=MONTH_S)),
    ("http.request_log_days", Allowed::Number(0..=90)),
    ("http.connections_max", Allowed::Number(16..=COUNT_MAX)),
    (
        "http.connections_per_address_max",
        Allowed::Number(8..=COUNT_MAX),
    ),
    ("http.answer_stalled_s", Allowed::Number(1..=3_600)),
    ("http.drain_delay_s", Allowed::Number(0..=300)),
    ("http.answers_bytes_max", Allowed::Number(1_024..=2 * GIB)),
    (
        "http.answers_bytes_per_integrator_max",
        Allowed::Number(1_024..=2 * GIB),
    ),
    (
        "http.answers_bytes_per_account_max",
        Allowed::Number(1_024..=2 * GIB),
    ),
    (
        "database.url",
        Allowed::Text(
            is_database,
            "a URL that begins with sqlite:// or postgres://, or empty",
        ),
    ),
    (
        "database.writer_connections_max",
        Allowed::Number(1..=1_000),
    ),
    (
        "database.reader_connections_max",
        Allowed::Number(1..=1_000),
    ),
    ("database.page_connections_max", Allowed::Number(1..=1_000)),
    ("database.lock_timeout_s", Allowed::Number(1..=60)),
    ("database.statement_timeout_s", Allowed::Number(1..=600)),
    (
        "database.idle_in_transaction_timeout_s",
        Allowed::Number(1..=600),
    ),
    ("authority.mode", Allowed::Word(&["sandbox", "remote"])),
    ("authority.allow_remote_in_development", Allowed::Flag),
    ("authority.base_url", Allowed::Text(is_root, ROOT_RULE)),
    ("authority.api_key", Allowed::Text(is_header, HEADER_RULE)),
    (
        "authority.api_secret",
        Allowed::Text(is_header, HEADER_RULE),
    ),
    ("authority.extra_ca_file", Allowed::Text(is_file, FILE_RULE)),
    (
        "authority.entity_id",
        Allowed::Text(is_segment, SEGMENT_RULE),
    ),
    (
        "authority.notification_token",
        Allowed::Text(is_segment, SEGMENT_RULE),
    ),
    ("authority.pull_every_s", Allowed::Number(1..=DAY_S)),
    ("authority.outage_clear_after_s", Allowed::Number(1..=3_600)),
    (
        "authority.utc_offset",
        Allowed::Text(
            |text| parse_offset(text).is_some(),
            "an offset such as +01:00",
        ),
    ),
    (
        "authority.crypto_keys_file",
        Allowed::Text(is_file, FILE_RULE),
    ),
    ("authority.timeout_s", Allowed::Number(1..=600)),
    (
        "authority.max_concurrent_calls",
        Allowed::Number(1..=10_000),
    ),
    ("sandbox.bind", Allowed::Text(is_address, ADDRESS_RULE)),
    ("pipeline.wait_s", Allowed::Number(0..=600)),
    (
        "pipeline.retry_initial_ms",
        Allowed::Number(1..=DAY_S * 1_000),
    ),
    ("pipeline.retry_max_s", Allowed::Number(1..=DAY_S)),
    (
        "pipeline.give_up_after_s",
        Allowed::Number(1..=12 * MONTH_S),
    ),
    ("pipeline.concurrency_max", Allowed::Number(1..=COUNT_MAX)),
    ("deadlines.b2b_h", Allowed::Number(1..=YEAR_H)),
    ("deadlines.b2c_h", Allowed::Number(1..=YEAR_H)),
    ("deadlines.b2g_h", Allowed::Number(1..=YEAR_H)),
    ("reconcile.every_s", Allowed::Number(0..=DAY_S)),
    ("reconcile.days", Allowed::Number(1..=31)),
    (
        "webhooks.allowed_networks",
        Allowed::Texts(is_network, NETWORKS_RULE),
    ),
    ("webhooks.retry_schedule_s", Allowed::Numbers(0..=MONTH_S)),
    ("webhooks.timeout_s", Allowed::Number(1..=600)),
    (
        "webhooks.max_concurrent_per_endpoint",
        Allowed::Number(1..=1_000),
    ),
    (
        "webhooks.circuit_open_after_s",
        Allowed::Number(0..=MONTH_S),
    ),
    ("webhooks.circuit_probe_max_s", Allowed::Number(1..=DAY_S)),
    (
        "webhooks.disable_after_s",
        Allowed::Number(1..=12 * MONTH_S),
    ),
    (
        "secrets.encryption_key",
        Allowed::Text(is_encryption_key, "32 bytes in base64, or empty"),
    ),
    (
        "secrets.encryption_keys",
        Allowed::Texts(is_one_encryption_key, "keys of 32 bytes in base64"),
    ),
    ("rate_limit.requests_per_s", Allowed::Number(0..=COUNT_MAX)),
    ("rate_limit.burst", Allowed::Number(0..=COUNT_MAX)),
    (
        "rate_limit.integrator_requests_per_s",
        Allowed::Number(0..=COUNT_MAX),
    ),
    (
        "rate_limit.integrator_burst",
        Allowed::Number(0..=COUNT_MAX),
    ),
    ("rate_limit.rotate_per_min", Allowed::Number(0..=COUNT_MAX)),
    (
        "rate_limit.webhook_test_per_min",
        Allowed::Number(0..=COUNT_MAX),
    ),
    (
        "rate_limit.failed_auth_per_min",
        Allowed::Number(0..=COUNT_MAX),
    ),
    ("rate_limit.pages_per_s", Allowed::Number(0..=COUNT_MAX)),
    (
        "rate_limit.concurrent_pages_max",
        Allowed::Number(1..=COUNT_MAX),
    ),
    (
        "rate_limit.sign_ins_per_min",
        Allowed::Number(0..=COUNT_MAX),
    ),
    (
        "rate_limit.refused_creates_per_min",
        Allowed::Number(0..=COUNT_MAX),
    ),
    (
        "rate_limit.onboardings_per_min",
        Allowed::Number(0..=COUNT_MAX),
    ),
    ("cluster.lease_s", Allowed::Number(1..=3_600)),
    ("cluster.quarantine_lift_s", Allowed::Number(0..=DAY_S)),
    (
        "cluster.replica_name",
        Allowed::Text(is_replica_name, REPLICA_NAME_RULE),
    ),
    ("console.session_idle_s", Allowed::Number(60..=DAY_S)),
    ("console.session_max_s", Allowed::Number(60..=MONTH_S)),
    (
        "console.second_factor",
        Allowed::Word(&["in-production", "always", "never"]),
    ),
    ("metrics.public", Allowed::Flag),
    ("metrics.public_on_network", Allowed::Flag),
    (
        "checkpoints.file",
        Allowed::Text(|_| true, "the path of a file, or empty"),
    ),
    ("checkpoints.every_s", Allowed::Number(0..=DAY_S)),
    ("checkpoints.key_file", Allowed::Text(is_file, FILE_RULE)),
    ("accounts.verification", Allowed::Word(&["warn", "require"])),
    (
        "accounts.taxpayers_per_integrator_max",
        Allowed::Number(0..=COUNT_MAX),
    ),
    // The upper limit must not exceed `VALID_KEYS_MAX`.
    ("accounts.keys_per_taxpayer_max", Allowed::Number(1..=20)),
    (
        "taxpayers.commands_per_taxpayer_max",
        Allowed::Number(1..=COUNT_MAX),
    ),
    ("taxpayers.commands_max", Allowed::Number(1..=COUNT_MAX)),
    ("taxpayers.active_max", Allowed::Number(1..=COUNT_MAX)),
    ("taxpayers.idle_s", Allowed::Number(1..=DAY_S)),
    (
        "options.erp_systems",
        Allowed::Texts(is_name, "names of lower-case letters, digits and `_`"),
    ),
    (
        "mail.smtp_url",
        Allowed::Text(is_smtp_url, "an smtp or smtps URL with a host, or empty"),
    ),
    (
        "mail.from",
        Allowed::Text(|text| text.contains('@'), "an email address"),
    ),
    ("mail.gather_s", Allowed::Number(0..=DAY_S)),
    ("mail.repeat_s", Allowed::Number(0..=MONTH_S)),
    ("mail.deadline_before_s", Allowed::Number(0..=MONTH_S)),
    (
        "log.level",
        Allowed::Word(&["off", "error", "warn", "info", "debug", "trace"]),
    ),
    ("log.format", Allowed::Word(&["auto", "text", "json"])),
    ("telemetry.otlp_endpoint", Allowed::Text(is_root, ROOT_RULE)),
];

/// Returns the allowed values of a setting. `key` is the full name, such as `http.bind`. `None` if there is no such
/// setting.
pub(super) fn allowed_for(key: &str) -> Option<&'static Allowed> {
    ALLOWED_VALUES
        .iter()
        .find(|(name, _)| *name == key)
        .map(|(_, allowed)| allowed)
}

pub(super) fn is_secret(key: &str) -> bool {
    SECRET_SETTINGS.contains(&key)
}
