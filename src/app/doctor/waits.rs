//! The time limits of checks.

use std::time::Duration;

use tokio::time::timeout;

use crate::app::doctor::report::{CheckResult, advice};

/// The time limit of a check on this machine.
pub(super) const LOCAL_WAIT: Duration = Duration::from_secs(5);
/// The time limit of a check of the database or of the authority.
pub(super) const REMOTE_WAIT: Duration = Duration::from_secs(20);

/// Runs checks for at most this long. A check that takes longer has failed.
pub(super) async fn run_within(
    limit: Duration,
    name: &'static str,
    checks: impl Future<Output = Vec<CheckResult>>,
) -> Vec<CheckResult> {
    let results = timeout(limit, checks).await;
    results.unwrap_or_else(|_| {
        vec![
            CheckResult::fail(name, format!("no result within {} s", limit.as_secs()))
                .advise(advice::SILENT),
        ]
    })
}
