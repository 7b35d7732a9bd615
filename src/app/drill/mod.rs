//! The command `drill`: causes a fault in a running development service, waits until the service reports the incident,
//! ends the fault, and waits until the incident is gone. Prints its observations line by line.
//!
//! | Concept | File |
//! |---|---|
//! | the faults: how each is caused and ended, and the incident that it must bring | `fault` |
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

/// The interval at which the incidents are asked for.
const POLL_EVERY: Duration = Duration::from_millis(250);

/// The reason why a drill failed.
#[derive(Debug, thiserror::Error)]
pub enum DrillError {
    #[error("{url} does not answer: {problem}")]
    Silent { url: String, problem: String },
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
    AlreadyThere(&'static str),
    #[error("the incident {incident} was not seen within {} s", .within.as_secs())]
    NotSeen {
        incident: &'static str,
        within: Duration,
    },
    #[error("the incident {incident} was still there {} s after the fault had ended", .within.as_secs())]
    NotGone {
        incident: &'static str,
        within: Duration,
    },
    #[error(transparent)]
    Receiver(#[from] std::io::Error),
}

/// The incident that a fault must cause, with the longest waits until it is seen and, after the fault, until it is
/// gone.
#[derive(Debug, Clone, Copy)]
pub(super) struct IncidentExpectation {
    incident: &'static str,
    seen_within: Duration,
    gone_within: Duration,
}

/// Runs a drill, and prints its observations. Ends the fault even if the drill fails.
pub async fn drill(arguments: DrillArguments) -> Result<(), DrillError> {
    let fault = arguments.fault;
    let lasts = arguments.lasts;
    let target = Target::new(&arguments)?;
    target.require_simulator().await?;
    let expected = fault.expectation();
    if find_incident(&target, expected.incident).await?.is_some() {
        return Err(DrillError::AlreadyThere(expected.incident));
    }
    let before = incident_names(&target).await?;
    println!("[ ] {fault}, for {} s", lasts.as_secs());
    let running = RunningFault::start(fault, &target).await?;
    let observed = observe_incidents(&target, expected, lasts).await;
    let has_ended = running.end(&target).await;
    if observed.is_err() || has_ended.is_err() {
        running.stop_calls(&target).await?;
    }
    has_ended?;
    let others = observed?;
    println!("[x] the fault has ended");
    let ended = Instant::now();
    let gone = wait_for_incident_end(&target, &running, expected).await;
    let stopped = running.stop_calls(&target).await;
    gone.and(stopped)?;
    println!(
        "[x] {} gone after {:.1} s",
        expected.incident,
        ended.elapsed().as_secs_f64()
    );
    for other in others.difference(&before) {
        println!("    meanwhile: {other}");
    }
    Ok(())
}

/// Waits until the incident is reported and the fault has lasted as long as it must. Returns the names of all other
/// incidents that were seen meanwhile.
async fn observe_incidents(
    target: &Target,
    expected: IncidentExpectation,
    lasts: Duration,
) -> Result<BTreeSet<String>, DrillError> {
    let begun = Instant::now();
    let mut others = BTreeSet::new();
    let mut is_seen = false;
    while !is_seen || begun.elapsed() < lasts {
        let incident = find_incident(target, expected.incident).await?;
        if let Some(incident) = incident.filter(|_| !is_seen) {
            is_seen = true;
            print_incident(expected.incident, &incident, begun.elapsed());
        }
        others.extend(incident_names(target).await?);
        if !is_seen && begun.elapsed() > expected.seen_within {
            return Err(DrillError::NotSeen {
                incident: expected.incident,
                within: expected.seen_within,
            });
        }
        sleep(POLL_EVERY).await;
    }
    others.remove(expected.incident);
    Ok(others)
}

async fn wait_for_incident_end(
    target: &Target,
    running: &RunningFault,
    expected: IncidentExpectation,
) -> Result<(), DrillError> {
    let ended = Instant::now();
    while find_incident(target, expected.incident).await?.is_some() {
        if ended.elapsed() > expected.gone_within {
            return Err(DrillError::NotGone {
                incident: expected.incident,
                within: expected.gone_within,
            });
        }
        running.resolve_incident(target).await?;
        sleep(POLL_EVERY).await;
    }
    Ok(())
}

fn print_incident(name: &str, incident: &Value, after: Duration) {
    let text = |field: &str| incident[field].as_str().unwrap_or_default();
    println!("[x] {name} seen after {:.1} s", after.as_secs_f64());
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
