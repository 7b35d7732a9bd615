//! A case that cannot run says so: a suite that passes without PostgreSQL must not look like one that passed on it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::env;
use std::process::Command;

use testkit::{Backend, on_postgresql};

const SERVER_VARIABLE: &str = "EINVOICE_TEST_POSTGRES";

mod support {
    use std::pin::Pin;

    use testkit::Backend;

    pub(crate) fn run_case<'c>(
        backend: Backend,
        _name: &str,
        case: impl FnOnce(Backend) -> Pin<Box<dyn Future<Output = ()> + 'c>>,
    ) {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(case(backend));
    }
}

#[on_postgresql]
async fn a_case(backend: Backend) {
    tokio::task::yield_now().await;
    assert_eq!(backend, Backend::Postgres);
    println!("the case was run");
}

/// Runs the case in a process of its own, with this server or with none. Returns its standard output and standard
/// error.
fn case_output(server: Option<&str>) -> (String, String) {
    let mut suite = Command::new(env::current_exe().unwrap());
    suite
        .args(["--exact", "a_case_on_postgresql", "--show-output"])
        .env_remove(SERVER_VARIABLE);
    suite.envs(server.map(|server| (SERVER_VARIABLE, server)));
    let done = suite.output().unwrap();
    assert!(done.status.success());
    (
        String::from_utf8(done.stdout).unwrap(),
        String::from_utf8(done.stderr).unwrap(),
    )
}

#[test]
fn a_case_without_its_database_says_that_it_was_skipped() {
    let (output, errors) = case_output(None);
    assert!(!output.contains("the case was run"), "{output}");
    assert_eq!(
        errors,
        "skipped: skipped::a_case_on_postgresql: EINVOICE_TEST_POSTGRES is not set\n"
    );
    let (output, errors) = case_output(Some("postgres://server.example"));
    assert!(output.contains("the case was run"), "{output}");
    assert_eq!(errors, "");
}
