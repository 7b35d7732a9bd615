//! Tests of the error messages about settings that are wrong.

use std::path::Path;

use super::{environment_faults, file, file_faults, variables};
use crate::config::Settings;

#[test]
fn an_unknown_key_of_a_file_is_reported_with_the_known_keys() {
    insta::assert_snapshot!(file_faults("[http]\nbnid = 1\n"), @"`http.bnid` (from the file FILE) is not a setting; [http] has answer_stalled_s, answers_bytes_max, answers_bytes_per_account_max, answers_bytes_per_integrator_max, bind, bodies_bytes_max, bodies_bytes_per_account_max, bodies_bytes_per_integrator_max, body_bytes_max, body_timeout_s, bulk_bytes_max, calls_per_account_max, calls_per_integrator_max, connections_max, connections_per_address_max, drain_delay_s, forwarded_header, idempotency_keep_s, import_bytes_max, ops_bind, public_url, relays_per_account_max, relays_per_integrator_max, request_log_days, trusted_proxies");
    insta::assert_snapshot!(file_faults("enviroment = \"production\"\n"), @"`enviroment` (from the file FILE) is not a setting; there are allow_open_development, data_dir, environment and the sections accounts, authority, checkpoints, cluster, console, database, deadlines, http, log, mail, metrics, options, pipeline, rate_limit, reconcile, sandbox, secrets, taxpayers, telemetry, webhooks");
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
fn an_unknown_variable_is_reported_with_its_key() {
    insta::assert_snapshot!(environment_faults(&[("EINVOICE__HTTP__BNID", "1")]), @"`http.bnid` (from the variable EINVOICE__HTTP__BNID) is not a setting; [http] has answer_stalled_s, answers_bytes_max, answers_bytes_per_account_max, answers_bytes_per_integrator_max, bind, bodies_bytes_max, bodies_bytes_per_account_max, bodies_bytes_per_integrator_max, body_bytes_max, body_timeout_s, bulk_bytes_max, calls_per_account_max, calls_per_integrator_max, connections_max, connections_per_address_max, drain_delay_s, forwarded_header, idempotency_keep_s, import_bytes_max, ops_bind, public_url, relays_per_account_max, relays_per_integrator_max, request_log_days, trusted_proxies");
    for (name, key) in [
        ("EINVOICE__HTP__BIND", "`htp.bind`"),
        ("EINVOICE__ENVIROMENT", "`enviroment`"),
        ("EINVOICE__DATA_DIR__X", "`data_dir.x`"),
        ("EINVOICE__HTTP__BIND__X", "`http.bind.x`"),
        ("EINVOICE__HTTP__", "`http.`"),
        ("EINVOICE__", "``"),
    ] {
        let faults = environment_faults(&[(name, "1")]);
        assert!(
            faults.starts_with(&format!(
                "{key} (from the variable {name}) is not a setting"
            )),
            "{faults}"
        );
    }
}

#[test]
fn a_value_that_is_not_allowed_is_reported_with_the_allowed_values() {
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
            "a section; it has answer_stalled_s, answers_bytes_max, answers_bytes_per_account_max, answers_bytes_per_integrator_max, bind, bodies_bytes_max, bodies_bytes_per_account_max, bodies_bytes_per_integrator_max, body_bytes_max, body_timeout_s, bulk_bytes_max, calls_per_account_max, calls_per_integrator_max, connections_max, connections_per_address_max, drain_delay_s, forwarded_header, idempotency_keep_s, import_bytes_max, ops_bind, public_url, relays_per_account_max, relays_per_integrator_max, request_log_days, trusted_proxies",
        ),
    ] {
        let name = format!("EINVOICE__{name}");
        let faults = environment_faults(&[(&name, value)]);
        assert!(
            faults.contains(&format!("(from the variable {name}) must be {sentence}")),
            "{faults}"
        );
    }
}

#[test]
fn all_faults_are_reported_at_once() {
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
fn a_missing_file_and_a_file_that_is_no_toml_are_reported() {
    let missing = Settings::load(Some(Path::new("/nowhere/x.toml")), variables(&[]))
        .unwrap_err()
        .to_string();
    assert!(
        missing.starts_with("the settings file /nowhere/x.toml cannot be read: "),
        "{missing}"
    );
    let faults = file_faults("[authority]\napi_key = unquoted-secret\n");
    assert!(
        faults.starts_with("line 2 of the file FILE is no TOML: "),
        "{faults}"
    );
    assert!(!faults.contains("unquoted"), "{faults}");
}
