//! `einvoice drill` on a running service.

use std::process::Output;

use sandbox::FaultKind;
use testkit::{Backend, on_sqlite};

use super::SETTINGS;
use crate::support::deployment::Deployment;
use crate::support::service::output_of;

/// Holds a drill. Returns its exit code and what it said.
async fn drill(deployment: &Deployment, fault: &str, simulator: &str) -> (Option<i32>, String) {
    let made = deployment.new_operator();
    let url = deployment.service.url();
    let taxpayer = deployment.taxpayer_id().to_string();
    let mut command = deployment.service.call(&[
        "drill",
        fault,
        "--for",
        "2s",
        "--url",
        &url,
        "--simulator",
        simulator,
        "--taxpayer",
        &taxpayer,
    ]);
    command
        .env(
            "EINVOICE_DRILL_OPERATOR_KEY",
            made["api_key"].as_str().unwrap(),
        )
        .env("EINVOICE_DRILL_TAXPAYER_KEY", deployment.taxpayer.key())
        .env("EINVOICE_DRILL_INTEGRATOR_KEY", deployment.integrator.key());
    let Output {
        status,
        stdout,
        stderr,
    } = output_of(command).await;
    let said = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
    println!("{}", said.concat());
    (status.code(), said.concat())
}

#[on_sqlite]
async fn each_drill_sees_its_incident_come_and_go(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS).await;
    let simulator = deployment.authority.base_url();
    for (fault, incident) in [
        ("outage", "authority-out"),
        ("key", "authority-refuses-key"),
        ("throttle", "authority-throttles"),
        ("slow", "authority-slow"),
        ("panic", "work-quarantined"),
        ("receiver", "endpoints-parked"),
    ] {
        let (code, said) = drill(&deployment, fault, &simulator).await;
        assert_eq!(code, Some(0), "{said}");
        for event in ["seen after", "gone after"] {
            assert!(said.contains(&format!("[x] {incident} {event}")), "{said}");
        }
    }
}

#[on_sqlite]
async fn a_drill_without_its_incident_or_its_simulator_fails(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS).await;
    let service = deployment.service.url();
    let (code, said) = drill(&deployment, "outage", &service).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("is no simulator of the authority"), "{said}");

    let watch = deployment.watch().await;
    deployment.order_fault(FaultKind::WrongKey);
    deployment.submit_some("KEY").await;
    let key = super::Expected::new("authority-refuses-key", "this service's key");
    let key = key.blamed_on("our-key");
    watch.appears(key).await;
    let simulator = deployment.authority.base_url();
    let (code, said) = drill(&deployment, "key", &simulator).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("is there already"), "{said}");
}
