//! Tests of loading the settings: where they come from, which source wins, and the error messages for bad settings.

use std::io::Write as _;

use jiff::tz::Offset;
use secrecy::ExposeSecret as _;
use tempfile::NamedTempFile;
use toml::Table;

use super::authority::AuthorityMode;
use super::*;

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
    let said = Settings::load(Some(file.path()), variables(&[]))
        .unwrap_err()
        .to_string();
    said.replace(&file.path().display().to_string(), "FILE")
}

/// Returns the full names, such as `http.bind`, of all settings in a TOML text.
fn keys(text: &str) -> Vec<String> {
    let table: Table = text.parse().unwrap();
    let of_section = |(name, value): (String, toml::Value)| match value {
        toml::Value::Table(section) => section.keys().map(|key| format!("{name}.{key}")).collect(),
        _ => vec![name],
    };
    table.into_iter().flat_map(of_section).collect()
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

#[test]
fn the_defaults_are_those_of_the_manual() {
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
fn every_default_is_within_its_limit_also_as_a_file() {
    let file = file(DEFAULTS);
    let settings = Settings::load(Some(file.path()), variables(&[])).unwrap();
    assert_eq!(
        settings.to_masked_toml(),
        from_environment(&[]).to_masked_toml()
    );
}

#[test]
fn the_defaults_read_and_shown_are_the_defaults() {
    let shown: Table = from_environment(&[]).to_masked_toml().parse().unwrap();
    let written: Table = DEFAULTS.parse().unwrap();
    assert_eq!(shown, written);
}

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
fn a_list_is_written_as_toml_and_replaces_the_one_below() {
    let settings = from_environment(&[
        ("EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S", "[0, 1, 2]"),
        ("EINVOICE__WEBHOOKS__ALLOWED_NETWORKS", " [\"10.0.0.0/8\"]"),
    ]);
    assert_eq!(settings.webhooks.retry_schedule_s, [0, 1, 2]);
    assert_eq!(
        settings.allowed_networks(),
        ["10.0.0.0/8".parse::<AllowedNetwork>().unwrap()]
    );
    let said = environment_faults(&[("EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S", "0,1")]);
    insta::assert_snapshot!(said, @"`webhooks.retry_schedule_s` (from the variable EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S) must be a list of one or more whole numbers from 0 to 2678400, such as [0, 5, 300], not \"0,1\"");
    assert!(
        environment_faults(&[("EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S", "[]")])
            .contains("one or more")
    );
}

#[test]
fn loopback_may_be_called_in_development_unless_networks_are_named() {
    let loopback =
        ["127.0.0.0/8", "::1/128"].map(|network| network.parse::<AllowedNetwork>().unwrap());
    assert_eq!(from_environment(&[]).allowed_networks(), loopback);
    assert_eq!(
        from_environment(&production_variables()).allowed_networks(),
        []
    );
    let none = from_environment(&[("EINVOICE__WEBHOOKS__ALLOWED_NETWORKS", "[]")]);
    assert_eq!(none.allowed_networks(), []);
}

#[test]
fn max_concurrent_calls_is_between_one_and_ten_thousand() {
    const NAME: &str = "EINVOICE__AUTHORITY__MAX_CONCURRENT_CALLS";
    assert_eq!(from_environment(&[]).authority.max_concurrent_calls, 64);
    for (text, calls) in [("1", 1), ("10000", 10_000)] {
        assert_eq!(
            from_environment(&[(NAME, text)])
                .authority
                .max_concurrent_calls,
            calls
        );
    }
    for text in ["0", "10001", "-1", "many"] {
        let said = environment_faults(&[(NAME, text)]);
        assert!(
            said.contains("must be a whole number from 1 to 10000"),
            "{said}"
        );
    }
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
fn other_variables_are_not_looked_at() {
    from_environment(&[
        ("EINVOICE_TEST_POSTGRES", "x"),
        ("HTTP__BIND", "x"),
        ("EINVOICE", "x"),
    ]);
}

#[test]
fn an_unknown_key_of_a_file_is_named_with_what_there_is() {
    insta::assert_snapshot!(file_faults("[http]\nbnid = 1\n"), @"`http.bnid` (from the file FILE) is not a setting; [http] has answer_stalled_s, answers_bytes_max, answers_bytes_per_account_max, answers_bytes_per_integrator_max, bind, bodies_bytes_max, bodies_bytes_per_account_max, bodies_bytes_per_integrator_max, body_bytes_max, body_timeout_s, bulk_bytes_max, calls_per_account_max, calls_per_integrator_max, connections_max, connections_per_address_max, forwarded_header, idempotency_keep_s, ops_bind, relays_per_account_max, relays_per_integrator_max, trusted_proxies");
    insta::assert_snapshot!(file_faults("enviroment = \"production\"\n"), @"`enviroment` (from the file FILE) is not a setting; there are allow_open_development, data_dir, environment and the sections accounts, authority, checkpoints, cluster, console, database, deadlines, http, log, metrics, options, pipeline, rate_limit, reconcile, sandbox, secrets, taxpayers, webhooks");
    assert!(
        file_faults("[htp]\nbind = 1\n")
            .starts_with("`htp.bind` (from the file FILE) is not a setting")
    );
    assert!(file_faults("[htp]\n").starts_with("`htp` (from the file FILE) is not a setting"));
    assert!(
        file_faults("[data_dir]\nx = 1\n")
            .starts_with("`data_dir.x` (from the file FILE) is not a setting")
    );
}

#[test]
fn an_unknown_variable_is_named_with_its_key() {
    insta::assert_snapshot!(environment_faults(&[("EINVOICE__HTTP__BNID", "1")]), @"`http.bnid` (from the variable EINVOICE__HTTP__BNID) is not a setting; [http] has answer_stalled_s, answers_bytes_max, answers_bytes_per_account_max, answers_bytes_per_integrator_max, bind, bodies_bytes_max, bodies_bytes_per_account_max, bodies_bytes_per_integrator_max, body_bytes_max, body_timeout_s, bulk_bytes_max, calls_per_account_max, calls_per_integrator_max, connections_max, connections_per_address_max, forwarded_header, idempotency_keep_s, ops_bind, relays_per_account_max, relays_per_integrator_max, trusted_proxies");
    for (name, key) in [
        ("EINVOICE__HTP__BIND", "`htp.bind`"),
        ("EINVOICE__ENVIROMENT", "`enviroment`"),
        ("EINVOICE__DATA_DIR__X", "`data_dir.x`"),
        ("EINVOICE__HTTP__BIND__X", "`http.bind.x`"),
        ("EINVOICE__HTTP__", "`http.`"),
        ("EINVOICE__", "``"),
    ] {
        let said = environment_faults(&[(name, "1")]);
        assert!(
            said.starts_with(&format!(
                "{key} (from the variable {name}) is not a setting"
            )),
            "{said}"
        );
    }
}

#[test]
fn a_value_that_is_not_allowed_is_named_with_what_is() {
    for (name, value, sentence) in [
        (
            "HTTP__BIND",
            "8080",
            "an IP address and a port, such as 127.0.0.1:8080, not \"8080\"",
        ),
        ("HTTP__BIND", "127.0.0.1:65536", "an IP address and a port"),
        (
            "HTTP__BODY_BYTES_MAX",
            "0",
            "a whole number from 1024 to 1073741824, not 0",
        ),
        (
            "PIPELINE__WAIT_S",
            "25 s",
            "a whole number from 0 to 600, not \"25 s\"",
        ),
        (
            "PIPELINE__WAIT_S",
            "2.5",
            "a whole number from 0 to 600, not 2.5",
        ),
        (
            "PIPELINE__WAIT_S",
            "1\nx = 2",
            "a whole number from 0 to 600",
        ),
        (
            "CLUSTER__LEASE_S",
            "0",
            "a whole number from 1 to 3600, not 0",
        ),
        (
            "RATE_LIMIT__BURST",
            "-1",
            "a whole number from 0 to 1000000, not -1",
        ),
        (
            "ENVIRONMENT",
            "prod",
            "one of development, production, not \"prod\"",
        ),
        (
            "AUTHORITY__MODE",
            "Remote",
            "one of sandbox, remote, not \"Remote\"",
        ),
        ("METRICS__PUBLIC", "yes", "true or false, not \"yes\""),
        (
            "AUTHORITY__BASE_URL",
            "authority.example",
            "an http or https URL",
        ),
        (
            "AUTHORITY__BASE_URL",
            "ftp://authority.example",
            "an http or https URL",
        ),
        (
            "AUTHORITY__UTC_OFFSET",
            "Lagos",
            "an offset such as +01:00, not \"Lagos\"",
        ),
        (
            "AUTHORITY__EXTRA_CA_FILE",
            "/nowhere/ca.pem",
            "the path of a file that exists",
        ),
        (
            "WEBHOOKS__ALLOWED_NETWORKS",
            "[\"10.0.0.0/33\"]",
            "a list, in brackets, of networks",
        ),
        (
            "WEBHOOKS__RETRY_SCHEDULE_S",
            "[0, -1]",
            "a list of one or more whole numbers",
        ),
        (
            "OPTIONS__ERP_SYSTEMS",
            "[\"SAP R/3\"]",
            "a list, in brackets, of names",
        ),
        (
            "HTTP",
            "x",
            "a section; it has answer_stalled_s, answers_bytes_max, answers_bytes_per_account_max, answers_bytes_per_integrator_max, bind, bodies_bytes_max, bodies_bytes_per_account_max, bodies_bytes_per_integrator_max, body_bytes_max, body_timeout_s, bulk_bytes_max, calls_per_account_max, calls_per_integrator_max, connections_max, connections_per_address_max, forwarded_header, idempotency_keep_s, ops_bind, relays_per_account_max, relays_per_integrator_max, trusted_proxies",
        ),
    ] {
        let name = format!("EINVOICE__{name}");
        let said = environment_faults(&[(&name, value)]);
        assert!(
            said.contains(&format!("(from the variable {name}) must be {sentence}")),
            "{said}"
        );
    }
}

#[test]
fn a_file_keeps_to_the_types_of_toml() {
    assert!(file_faults("[pipeline]\nwait_s = \"25\"\n").contains("must be a whole number"));
    assert!(file_faults("[authority]\napi_key = 12345\n").contains("`authority.api_key`"));
    assert!(file_faults("http = 1\n").contains("must be a section"));
    assert!(
        file_faults("[http.bind]\nport = 1\n")
            .contains("`http.bind` (from the file FILE) must be an IP")
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let file = file("[http]\nbnid = 1\nbind = 2\n");
    let pairs = [("EINVOICE__LOG__LEVEL", "loud"), ("EINVOICE__NOTHING", "1")];
    let fault = Settings::load(Some(file.path()), variables(&pairs)).unwrap_err();
    assert_eq!(fault.0.len(), 4, "{fault}");
    assert!(
        fault.to_string().starts_with("4 settings are wrong:\n- `"),
        "{fault}"
    );
}

#[test]
fn a_file_that_is_not_there_or_no_toml_is_named() {
    let missing = Settings::load(Some(Path::new("/nowhere/x.toml")), variables(&[]))
        .unwrap_err()
        .to_string();
    assert!(
        missing.starts_with("the settings file /nowhere/x.toml cannot be read: "),
        "{missing}"
    );
    let said = file_faults("[authority]\napi_key = unquoted-secret\n");
    assert!(
        said.starts_with("line 2 of the file FILE is no TOML: "),
        "{said}"
    );
    assert!(!said.contains("unquoted"), "{said}");
}

#[test]
fn a_secret_that_is_not_allowed_is_not_repeated() {
    for (name, value) in [
        ("EINVOICE__DATABASE__URL", "mysql://user:hunter2@host/name"),
        ("EINVOICE__AUTHORITY__API_SECRET", "hunter2 hunter2"),
        ("EINVOICE__AUTHORITY__NOTIFICATION_TOKEN", "hunter2/"),
        ("EINVOICE__SECRETS__ENCRYPTION_KEY", "hunter2"),
        ("EINVOICE__SECRETS__ENCRYPTION_KEYS", "[\"hunter2\"]"),
    ] {
        let said = environment_faults(&[(name, value)]);
        assert!(said.contains(name) && !said.contains("hunter2"), "{said}");
    }
}

#[test]
fn secrets_are_masked_wherever_settings_are_shown() {
    let mut pairs = production_variables();
    pairs.push((
        "EINVOICE__DATABASE__URL",
        "postgres://user:hunter2@host/name?sslmode=verify-full&sslpassword=hunter2",
    ));
    pairs.push((
        "EINVOICE__SECRETS__ENCRYPTION_KEYS",
        "[\"bZ7pQ0mS2xq8vJc1yL6nKdWfR9uTaEhQwBkMI0mZb4g=\"]",
    ));
    let settings = from_environment(&pairs);
    let shown = settings.to_masked_toml();
    for (name, value) in pairs
        .iter()
        .filter(|(name, _)| limits::is_secret(&name[10..].to_lowercase().replace("__", ".")))
    {
        assert!(!shown.contains(value), "{name}: {shown}");
        assert!(!format!("{settings:?}").contains(value), "{name}");
    }
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("api_key = \"***\""), "{shown}");
    assert!(
        shown.contains(
            "url = \"postgres://user:***@host/name?sslmode=verify-full&sslpassword=***\""
        ),
        "{shown}"
    );
}

#[test]
fn offsets_are_read_in_the_form_they_are_shown_in() {
    for (text, seconds) in [
        ("+01:00", Some(3_600)),
        ("-03:30", Some(-12_600)),
        ("Z", Some(0)),
        ("+14:00", Some(50_400)),
    ]
    .into_iter()
    .chain(["", "+1:00", "+0100", "+15:00", "+00:60", "+-1:00", "01:00"].map(|text| (text, None)))
    {
        assert_eq!(
            form::parse_offset(text).map(Offset::seconds),
            seconds,
            "{text}"
        );
    }
    let shown = from_environment(&[("EINVOICE__AUTHORITY__UTC_OFFSET", "-00:30")]).to_masked_toml();
    assert!(shown.contains("utc_offset = \"-00:30\""), "{shown}");
}
