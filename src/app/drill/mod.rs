//! The command `drill`: causes a fault in a running development service, waits until the service reports the incident,
//! ends the fault, and waits until the incident is gone. Prints its observations line by line.
//!
//! | Concept | File |
//! |---|---|
//! | the faults, their start and end, and the incident that each must cause | `fault` |
//! | the requests to the service and to the simulator of the authority | `target` |
//! | the receiver of webhooks that refuses everything until the fault ends | `receiver` |

mod fault;
mod receiver;
mod target;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::sleep;

use crate::app::drill::fault::RunningFault;
use crate::app::drill::target::Target;
use crate::cli::{DrillArguments, DrillFault};

/// The interval at which the incidents are read.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The reason why a drill failed.
#[derive(Debug, thiserror::Error)]
pub enum DrillError {
    #[error("{url} does not answer: {problem}")]
    NoAnswer { url: String, problem: String },
    #[error("{path} was answered with {status}: {message}")]
    Refused {
        path: String,
        status: u16,
        message: String,
    },
    #[error("this drill needs {0}")]
    Missing(&'static str),
    #[error(
        "{url} is no simulator of the authority; drills are for development services with the embedded simulator"
    )]
    NoSimulator { url: String },
    #[error("the incident {0} is there already; end its cause before the drill")]
    AlreadyActive(&'static str),
    #[error("the incident {incident} was not seen within {} s", .wait_max.as_secs())]
    NotSeen {
        incident: &'static str,
        wait_max: Duration,
    },
    #[error("the incident {incident} was still there {} s after the fault had ended", .wait_max.as_secs())]
    NotGone {
        incident: &'static str,
        wait_max: Duration,
    },
    #[error(transparent)]
    Receiver(#[from] std::io::Error),
}

/// The incident that a fault must cause, and the longest waits: until the service reports the incident and, after the
/// end of the fault, until the incident is gone.
#[derive(Debug, Clone, Copy)]
pub(super) struct IncidentExpectation {
    incident: &'static str,
    report_wait_max: Duration,
    end_wait_max: Duration,
}

/// Runs a drill, and prints its observations. Ends the fault even if the drill fails.
pub async fn drill(arguments: DrillArguments) -> Result<(), DrillError> {
    let fault = arguments.fault;
    let duration = arguments.duration;
    let target = Target::new(&arguments)?;
    target.require_simulator().await?;
    let expected = fault.expectation();
    if find_incident(&target, expected.incident).await?.is_some() {
        return Err(DrillError::AlreadyActive(expected.incident));
    }
    let incidents_before = incident_names(&target).await?;
    println!("[ ] {fault}, for {} s", duration.as_secs());
    let running = RunningFault::start(fault, &target).await?;
    let observation = observe_incidents(&target, expected, duration).await;
    let end_result = running.end(&target).await;
    if observation.is_err() || end_result.is_err() {
        running.stop_calls(&target).await?;
    }
    end_result?;
    let other_incidents = observation?;
    println!("[x] the fault has ended");
    let ended_at = Instant::now();
    let incident_end = wait_for_incident_end(&target, &running, expected).await;
    let stop_result = running.stop_calls(&target).await;
    incident_end.and(stop_result)?;
    println!(
        "[x] {} gone after {:.1} s",
        expected.incident,
        ended_at.elapsed().as_secs_f64()
    );
    for other in other_incidents.difference(&incidents_before) {
        println!("    meanwhile: {other}");
    }
    Ok(())
}

/// Waits until the incident is reported and the fault has lasted as long as it must. Returns the names of all other
/// incidents that were seen meanwhile.
async fn observe_incidents(
    target: &Target,
    expected: IncidentExpectation,
    duration: Duration,
) -> Result<BTreeSet<String>, DrillError> {
    let started_at = Instant::now();
    let mut other_incidents = BTreeSet::new();
    let mut is_seen = false;
    while !is_seen || started_at.elapsed() < duration {
        let incident = find_incident(target, expected.incident).await?;
        if let Some(incident) = incident.filter(|_| !is_seen) {
            is_seen = true;
            print_incident(expected.incident, &incident, started_at.elapsed());
        }
        other_incidents.extend(incident_names(target).await?);
        if !is_seen && started_at.elapsed() > expected.report_wait_max {
            return Err(DrillError::NotSeen {
                incident: expected.incident,
                wait_max: expected.report_wait_max,
            });
        }
        sleep(POLL_INTERVAL).await;
    }
    other_incidents.remove(expected.incident);
    Ok(other_incidents)
}

async fn wait_for_incident_end(
    target: &Target,
    running: &RunningFault,
    expected: IncidentExpectation,
) -> Result<(), DrillError> {
    let ended_at = Instant::now();
    while find_incident(target, expected.incident).await?.is_some() {
        if ended_at.elapsed() > expected.end_wait_max {
            return Err(DrillError::NotGone {
                incident: expected.incident,
                wait_max: expected.end_wait_max,
            });
        }
        running.resolve_incident(target).await?;
        sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

fn print_incident(name: &str, incident: &Value, delay: Duration) {
    let text = |field: &str| incident[field].as_str().unwrap_or_default();
    println!("[x] {name} seen after {:.1} s", delay.as_secs_f64());
    println!("    {}", text("summary"));
    for field in ["cause", "blame", "since", "to_do"] {
        if !text(field).is_empty() {
            println!("    {field}: {}", text(field));
        }
    }
}

async fn find_incident(target: &Target, name: &str) -> Result<Option<Value>, DrillError> {
    let incidents = target.fetch_incidents().await?;
    Ok(incidents
        .into_iter()
        .find(|incident| incident["incident"] == name))
}

async fn incident_names(target: &Target) -> Result<BTreeSet<String>, DrillError> {
    let incidents = target.fetch_incidents().await?;
    let names = incidents
        .iter()
        .filter_map(|incident| incident["incident"].as_str());
    Ok(names.map(str::to_owned).collect())
}
