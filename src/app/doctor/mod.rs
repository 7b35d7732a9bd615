//! The command `doctor`: checks a deployment before a start. It changes nothing, and it prints no secret and no contact
//! data. Each check has its own time limit, and all checks run, whatever the results of the others.
//!
//! | Checks | File |
//! |---|---|
//! | the result of a check, and its line in the report | `report` |
//! | the connection to the database, writes, migrations and the clock; the encryption key | `database` |
//! | free bytes on the disks; the files of checkpoints | `files` |
//! | the name, the connection, the health and the clock of the authority; its answer to our key | `authority` |
//! | the ports to listen on, and the limit of open files | `listeners` |
//! | the names of the receivers of webhooks | `receivers` |
//! | the collector of traces | `collector` |
//! | the time limits of checks | `waits` |

mod authority;
mod collector;
mod database;
mod files;
mod listeners;
mod receivers;
mod report;
#[cfg(test)]
mod tests;
mod waits;

use crate::config::Settings;

use report::CheckResult;
pub use report::DoctorReport;

/// Runs all checks.
pub async fn doctor(settings: &Settings) -> DoctorReport {
    let (database, disks, checkpoints, authority, collector) = tokio::join!(
        Box::pin(database::check(settings)),
        files::check_disks(settings),
        files::check_checkpoints(settings),
        Box::pin(authority::check(settings)),
        Box::pin(collector::check(settings)),
    );
    let database::DatabaseChecks {
        key,
        database,
        receivers,
    } = database;
    let mut checks = vec![check_settings(settings)];
    checks.extend([key, database, disks, authority, checkpoints].concat());
    checks.extend(listeners::check_ports(settings));
    checks.push(listeners::check_open_files(settings));
    checks.extend(receivers);
    checks.extend(collector);
    DoctorReport { checks }
}

fn check_settings(settings: &Settings) -> CheckResult {
    let warnings = settings.warnings();
    if warnings.is_empty() {
        return CheckResult::ok("settings", "valid, and nothing to warn of");
    }
    CheckResult::warn("settings", warnings.join("; "))
        .advise("see config.toml for each of these settings")
}
