//! Tests of the defaults and of their documentation.

use toml::Table;

use super::{file, from_environment, variables};
use crate::config::authority::AuthorityMode;
use crate::config::layers::DEFAULTS;
use crate::config::{Environment, Settings, limits};

/// Returns the full names, such as `http.bind`, of all settings in a TOML text.
fn keys(text: &str) -> Vec<String> {
    let table: Table = text.parse().unwrap();
    let section_keys = |(name, value): (String, toml::Value)| match value {
        toml::Value::Table(section) => section.keys().map(|key| format!("{name}.{key}")).collect(),
        _ => vec![name],
    };
    table.into_iter().flat_map(section_keys).collect()
}

#[test]
fn the_defaults_have_the_documented_values() {
    let settings = from_environment(&[]);
    assert_eq!(settings.environment, Environment::Development);
    assert_eq!(settings.http.bind.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.http.bulk_bytes_max, 10 * 1024 * 1024);
    assert_eq!(settings.http.body_timeout_s, 30);
    assert_eq!(settings.authority.mode, AuthorityMode::Sandbox);
    assert_eq!(settings.authority.utc_offset.seconds(), 3_600);
    assert_eq!(settings.webhooks.retry_schedule_s.len(), 10);
    assert_eq!(
        settings.options.erp_systems.last().map(String::as_str),
        Some("custom")
    );
    assert!(settings.metrics.public);
}

#[test]
fn every_setting_has_a_comment_directly_above_it_and_a_limit() {
    let lines: Vec<_> = DEFAULTS.lines().collect();
    let undocumented = lines
        .windows(2)
        .filter(|pair| pair[1].contains(" = ") && !pair[1].starts_with('#'));
    let undocumented: Vec<_> = undocumented
        .filter(|pair| !pair[0].starts_with("# "))
        .collect();
    assert_eq!(undocumented, [[""; 2]; 0]);
    let mut limited: Vec<_> = limits::ALLOWED_VALUES
        .iter()
        .map(|(key, _)| (*key).to_owned())
        .collect();
    let mut written = keys(DEFAULTS);
    limited.sort();
    written.sort();
    assert_eq!(limited, written);
}

#[test]
fn a_file_with_all_defaults_is_accepted() {
    let file = file(DEFAULTS);
    let settings = Settings::load(Some(file.path()), variables(&[])).unwrap();
    assert_eq!(
        settings.to_masked_toml(),
        from_environment(&[]).to_masked_toml()
    );
}

#[test]
fn the_defaults_are_shown_as_they_are_written() {
    let shown: Table = from_environment(&[]).to_masked_toml().parse().unwrap();
    let written: Table = DEFAULTS.parse().unwrap();
    assert_eq!(shown, written);
}
