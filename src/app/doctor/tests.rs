//! Tests that run the whole command, on both kinds of database.

use std::fs;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sea_orm::ConnectionTrait as _;

use super::*;
use crate::app::doctor::report::Verdict;
use crate::app::doctor::waits::run_within;
use crate::store::testing::stores;

fn settings(pairs: &[(&str, String)]) -> Settings {
    let pairs = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    Settings::load(None, pairs).unwrap()
}

fn verdict(report: &DoctorReport, check: &str) -> Verdict {
    let mut checks = report.checks.iter();
    let result = checks.find(|result| result.check == check);
    result
        .unwrap_or_else(|| panic!("no {check}: {report}"))
        .result
}

/// Settings for a database and a `data_dir` whose key is that of the test databases.
fn deployment(url: &str, data_dir: &Path) -> Vec<(&'static str, String)> {
    vec![
        ("EINVOICE__DATA_DIR", data_dir.display().to_string()),
        ("EINVOICE__DATABASE__URL", url.to_owned()),
        (
            "EINVOICE__SECRETS__ENCRYPTION_KEY",
            STANDARD.encode([7; 32]),
        ),
        ("EINVOICE__HTTP__BIND", "127.0.0.1:0".to_owned()),
        ("EINVOICE__SANDBOX__BIND", "127.0.0.1:0".to_owned()),
    ]
}

#[actix_web::test]
async fn a_healthy_deployment_passes_on_each_database() {
    for test in stores().await {
        let data_dir = tempfile::tempdir().unwrap();
        let pairs = deployment(&test.url, data_dir.path());
        let report = doctor(&settings(&pairs)).await;
        assert_eq!(report.failed_count(), 0, "{report}");
        let names: Vec<_> = report.checks.iter().map(|check| check.check).collect();
        let is_server = test.url.starts_with("postgres:");
        let expected: Vec<_> = [
            ("settings", true),
            ("encryption-key", true),
            ("database", true),
            ("database-connections", is_server),
            ("database-migrations", true),
            ("database-write", true),
            ("database-clock", true),
            ("disk-data", true),
            ("disk-database", !is_server),
            ("authority", true),
            ("checkpoint-file", true),
            ("port-http", true),
            ("port-sandbox", true),
            ("open-files", true),
            ("receivers", true),
        ]
        .into_iter()
        .filter_map(|(name, is_checked)| is_checked.then_some(name))
        .collect();
        assert_eq!(names, expected);
        assert_eq!(
            fs::read_dir(&data_dir).unwrap().count(),
            0,
            "no file was made"
        );
    }
}

#[actix_web::test]
async fn a_secret_of_another_key_and_a_migration_of_another_program_fail() {
    for test in stores().await {
        let sealed = test.store.vault().seal("operator/3", "hush").unwrap();
        let tx = test.store.begin().await.unwrap();
        for sql in [
            &format!(
                "INSERT INTO second_factors (owner, secret) VALUES ('operator/3', '{sealed}')"
            ),
            "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m9999_newer', 0)",
        ] {
            tx.execute_unprepared(sql).await.unwrap();
        }
        tx.commit().await.unwrap();
        let data_dir = tempfile::tempdir().unwrap();
        let mut pairs = deployment(&test.url, data_dir.path());
        let report = doctor(&settings(&pairs)).await;
        assert_eq!(verdict(&report, "encryption-key"), Verdict::Ok, "{report}");
        assert_eq!(
            verdict(&report, "database-migrations"),
            Verdict::Fail,
            "{report}"
        );
        assert_eq!(report.failed_count(), 1, "{report}");
        pairs.push((
            "EINVOICE__SECRETS__ENCRYPTION_KEY",
            STANDARD.encode([8; 32]),
        ));
        let report = doctor(&settings(&pairs)).await;
        assert_eq!(
            verdict(&report, "encryption-key"),
            Verdict::Fail,
            "{report}"
        );
        assert_eq!(report.failed_count(), 2, "{report}");
    }
}

#[actix_web::test]
async fn a_new_deployment_gives_warnings_and_creates_no_files() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("new");
    let pairs = [
        ("EINVOICE__DATA_DIR", data_dir.display().to_string()),
        ("EINVOICE__HTTP__BIND", "127.0.0.1:0".to_owned()),
        ("EINVOICE__SANDBOX__BIND", "127.0.0.1:0".to_owned()),
    ];
    let settings = settings(&pairs).with_stored_secrets().unwrap();
    let report = doctor(&settings).await;
    assert_eq!(verdict(&report, "encryption-key"), Verdict::Ok, "{report}");
    assert_eq!(verdict(&report, "database"), Verdict::Warn, "{report}");
    assert_eq!(verdict(&report, "checkpoint-key"), Verdict::Ok, "{report}");
    assert_eq!(report.failed_count(), 0, "{report}");
    assert!(!data_dir.exists());
}

#[actix_web::test]
async fn the_other_checks_run_without_the_database() {
    let data_dir = tempfile::tempdir().unwrap();
    let url = "postgres://user:s3cret@127.0.0.1:9/einvoice";
    let report = doctor(&settings(&deployment(url, data_dir.path()))).await;
    assert_eq!(verdict(&report, "database"), Verdict::Fail, "{report}");
    assert_eq!(
        verdict(&report, "encryption-key"),
        Verdict::Warn,
        "{report}"
    );
    assert_ne!(verdict(&report, "open-files"), Verdict::Fail, "{report}");
    assert_eq!(verdict(&report, "authority"), Verdict::Ok, "{report}");
    let text = report.to_string();
    assert!(text.contains("refused"), "the cause, no timeout: {text}");
    assert!(!text.contains("s3cret"), "{text}");
}

#[tokio::test]
async fn a_check_that_takes_too_long_has_failed() {
    let checks = run_within(Duration::from_millis(1), "disk", std::future::pending()).await;
    assert_eq!(checks.len(), 1);
    assert_eq!(checks[0].result, Verdict::Fail);
}
