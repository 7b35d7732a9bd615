//! `einvoice doctor` beside a running service: what is well, and each fault that it has to find. It changes nothing.

use std::process::Command;

use sea_orm::ConnectionTrait;
use serde_json::Value;
use testkit::{Backend, each_database};

use crate::support::database::{PostgresDatabase, connect};
use crate::support::deployment::{Deployment, ENCRYPTION_KEY};
use crate::support::service::output_of;

/// Base64 of 32 bytes.
const OTHER_KEY: &str = "Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA=";

/// The exit code of a call of the program, and what it prints.
async fn run(call: Command) -> (Option<i32>, String) {
    let done = output_of(call).await;
    (done.status.code(), String::from_utf8(done.stdout).unwrap())
}

/// Runs the doctor with settings beside those of the deployment. Returns its exit code, and the results by check.
async fn examine(deployment: &Deployment, own: &[(&str, &str)]) -> (Option<i32>, Value) {
    let mut call = deployment.service.call(&["doctor", "--json"]);
    let address = deployment.service.url().replace("http://", "");
    call.env("EINVOICE__HTTP__BIND", address);
    call.envs(own.iter().copied());
    let (code, printed) = run(call).await;
    for secret in [ENCRYPTION_KEY, "a-secret-that-both-sides-know", "s3cret"] {
        assert!(!printed.contains(secret), "{printed}");
    }
    let report: Value = strict_json::from_untrusted(printed.as_bytes()).unwrap();
    assert_eq!(report["ok"], Value::from(code == Some(0)), "{report}");
    (code, report)
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut checks = report["checks"].as_array().unwrap().iter();
    let found = checks.find(|check| check["check"] == name);
    found.unwrap_or_else(|| panic!("{name} in {report}"))
}

/// The names of the checks that failed.
fn failed(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().unwrap().iter();
    let failed = checks.filter(|check| check["result"] == "fail");
    failed
        .map(|check| check["check"].as_str().unwrap())
        .collect()
}

#[each_database]
async fn each_fault_of_a_deployment_is_found_before_a_start(backend: Backend) {
    let deployment = Deployment::open(backend).await;
    deployment
        .set_webhook("http://127.0.0.1:9/hook?token=s3cret")
        .await;

    let (code, report) = examine(&deployment, &[]).await;
    assert_eq!((code, failed(&report)), (Some(0), vec![]), "{report}");
    for name in [
        "encryption-key",
        "database",
        "database-migrations",
        "database-write",
        "database-clock",
        "authority",
        "authority-name",
        "authority-key",
        "authority-clock",
        "checkpoint-key",
        "receivers",
    ] {
        assert_eq!(check(&report, name)["result"], "ok", "{report}");
    }
    let port = check(&report, "port-http");
    assert_eq!(port["result"], "warn", "the service has it: {port}");
    let found = check(&report, "encryption-key")["found"].as_str().unwrap();
    assert!(found.starts_with("opens each of"), "{found}");

    for (setting, value, expected) in [
        (
            "EINVOICE__SECRETS__ENCRYPTION_KEY",
            OTHER_KEY,
            "encryption-key",
        ),
        (
            "EINVOICE__AUTHORITY__API_SECRET",
            "another-secret",
            "authority-key",
        ),
        (
            "EINVOICE__AUTHORITY__BASE_URL",
            "http://127.0.0.1:9",
            "authority",
        ),
        (
            "EINVOICE__DATABASE__URL",
            "postgres://user:s3cret@127.0.0.1:9/einvoice",
            "database",
        ),
    ] {
        let (code, report) = examine(&deployment, &[(setting, value)]).await;
        let found = failed(&report);
        assert_eq!((code, found), (Some(1), vec![expected]), "{report}");
    }

    let url = deployment
        .postgres
        .as_ref()
        .map_or_else(|| deployment.sqlite_url(), PostgresDatabase::url);
    let newer = "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m9999_newer', 0)";
    let database = connect(&url).await;
    database.execute_unprepared(newer).await.unwrap();
    let (code, report) = examine(&deployment, &[]).await;
    assert_eq!(code, Some(1));
    assert_eq!(failed(&report), ["database-migrations"], "{report}");

    let (code, text) = run(deployment.service.call(&["doctor"])).await;
    assert_eq!(code, Some(1));
    let line = text
        .lines()
        .find(|line| line.starts_with("FAIL  database-migrations"));
    assert!(line.unwrap().contains("m9999_newer"), "{text}");
    deployment.intact_events().await;
}
