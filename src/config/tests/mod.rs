//! Tests of loading the settings, and their common functions, which load settings or faults from variables or a file.

mod defaults;
mod faults;
mod secrets;
mod sources;
mod values;

use std::io::Write as _;

use tempfile::NamedTempFile;

use super::Settings;

pub(super) fn variables(pairs: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    pairs.into_iter()
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

pub(super) fn from_environment(pairs: &[(&str, &str)]) -> Settings {
    Settings::load(None, variables(pairs)).unwrap_or_else(|fault| panic!("{fault}"))
}

pub(super) fn environment_faults(pairs: &[(&str, &str)]) -> String {
    Settings::load(None, variables(pairs))
        .unwrap_err()
        .to_string()
}

/// Loads a settings file with this text and returns the faults, with `FILE` in place of the path.
fn file_faults(text: &str) -> String {
    let file = file(text);
    let faults = Settings::load(Some(file.path()), variables(&[]))
        .unwrap_err()
        .to_string();
    faults.replace(&file.path().display().to_string(), "FILE")
}

pub(super) fn production_variables() -> Vec<(&'static str, &'static str)> {
    vec![
        ("EINVOICE__ENVIRONMENT", "production"),
        ("EINVOICE__AUTHORITY__MODE", "remote"),
        ("EINVOICE__AUTHORITY__BASE_URL", "https://authority.example"),
        (
            "EINVOICE__AUTHORITY__API_KEY",
            "0b9bdcd1-5a8e-4a3c-9d8e-2f1f6f0f3c11",
        ),
        ("EINVOICE__AUTHORITY__API_SECRET", "a-secret-of-theirs"),
        (
            "EINVOICE__AUTHORITY__NOTIFICATION_TOKEN",
            "a-token-of-16-characters",
        ),
        (
            "EINVOICE__SECRETS__ENCRYPTION_KEY",
            "mI0mZb7Zt4gP3oS2xq8vJc1yL6nKdWfR9uTaEhQwBkM=",
        ),
        (
            "EINVOICE__CHECKPOINTS__FILE",
            "/var/log/einvoice/checkpoints",
        ),
        (
            "EINVOICE__CHECKPOINTS__KEY_FILE",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        ),
    ]
}
