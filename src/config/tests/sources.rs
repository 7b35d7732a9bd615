//! Tests of the sources of settings: their priority, and the allowed contents of each source.

use std::path::Path;

use secrecy::ExposeSecret as _;

use super::{environment_faults, file, file_faults, from_environment, variables};
use crate::config::Settings;

#[test]
fn the_file_wins_over_the_defaults_and_the_environment_over_both() {
    let file =
        file("data_dir = \"here\"\n[http]\nbind = \"127.0.0.1:1\"\nbody_bytes_max = 5_000\n");
    let pairs = [
        ("EINVOICE__HTTP__BIND", "[::1]:2"),
        ("EINVOICE__METRICS__PUBLIC", "false"),
    ];
    let settings = Settings::load(Some(file.path()), variables(&pairs)).unwrap();
    assert_eq!(settings.data_dir, Path::new("here"));
    assert_eq!(settings.http.bind.to_string(), "[::1]:2");
    assert_eq!(settings.http.body_bytes_max, 5_000);
    assert_eq!(settings.http.bulk_bytes_max, 10_485_760);
    assert!(!settings.metrics.public);
}

#[test]
fn text_that_looks_like_something_else_stays_text() {
    for text in ["12345", "true", "1e9", "[1]", "0x10", "\"quoted\""] {
        let settings = from_environment(&[("EINVOICE__AUTHORITY__API_KEY", text)]);
        assert_eq!(settings.authority.api_key.expose_secret(), text);
    }
}

#[test]
fn a_variable_may_be_empty() {
    let file = file("[authority]\napi_key = \"of-the-file\"\n");
    let pairs = [
        ("EINVOICE__AUTHORITY__API_KEY", ""),
        ("EINVOICE__AUTHORITY__EXTRA_CA_FILE", ""),
    ];
    let settings = Settings::load(Some(file.path()), variables(&pairs)).unwrap();
    assert_eq!(settings.authority.api_key.expose_secret(), "");
    assert_eq!(settings.authority.extra_ca_file, None);
    assert!(environment_faults(&[("EINVOICE__HTTP__BIND", "")]).contains("not \"\""));
}

#[test]
fn other_variables_are_ignored() {
    from_environment(&[
        ("EINVOICE_TEST_POSTGRES", "x"),
        ("HTTP__BIND", "x"),
        ("EINVOICE", "x"),
    ]);
}

#[test]
fn a_value_in_a_file_must_have_the_right_toml_type() {
    assert!(file_faults("[pipeline]\nwait_s = \"25\"\n").contains("must be a whole number"));
    assert!(file_faults("[authority]\napi_key = 12345\n").contains("`authority.api_key`"));
    assert!(file_faults("http = 1\n").contains("must be a section"));
    assert!(
        file_faults("[http.bind]\nport = 1\n")
            .contains("`http.bind` (from the file FILE) must be an IP")
    );
}
