//! The arguments of a fire drill.

use std::fmt;
use std::time::Duration;

use clap::{Args, ValueEnum};

/// The fault of a fire drill, and the service to hold it on. The keys can be given as environment variables, so that no
/// list of processes shows them.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DrillArguments {
    #[arg(value_enum)]
    pub fault: DrillFault,
    /// The shortest time that the fault lasts, such as 30s or 2m.
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub duration: Duration,
    /// The address of the service.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// The address of the simulator of the authority that the service calls: see `sandbox.bind`.
    #[arg(long, value_name = "URL")]
    pub simulator: String,
    /// The API key of an operator with the role admin.
    #[arg(
        long,
        value_name = "KEY",
        env = "EINVOICE_DRILL_OPERATOR_KEY",
        hide_env_values = true
    )]
    pub operator_key: String,
    /// The API key of the taxpayer on whose behalf the authority is called during the fault.
    #[arg(
        long,
        value_name = "KEY",
        env = "EINVOICE_DRILL_TAXPAYER_KEY",
        hide_env_values = true
    )]
    pub taxpayer_key: String,
    /// The API key of the taxpayer's integrator; only for `receiver`, which changes the taxpayer's webhook.
    #[arg(
        long,
        value_name = "KEY",
        env = "EINVOICE_DRILL_INTEGRATOR_KEY",
        hide_env_values = true
    )]
    pub integrator_key: Option<String>,
    /// The id of the taxpayer; only for `receiver` and `panic`.
    #[arg(long, value_name = "ID")]
    pub taxpayer: Option<i64>,
}

/// The fault of a fire drill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DrillFault {
    /// The authority answers every call with 503.
    Outage,
    /// The authority takes seconds to answer.
    Slow,
    /// The authority asks to be called less often.
    Throttle,
    /// The authority refuses the key of this service.
    Key,
    /// The taxpayer's receiver of webhooks answers 500. After the drill the taxpayer gets no notifications until its
    /// webhook is set again.
    Receiver,
    /// The taxpayer's actor panics twice, and its command is quarantined.
    Panic,
}

impl fmt::Display for DrillFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Outage => "the authority is out",
            Self::Slow => "the authority is slow",
            Self::Throttle => "the authority asks to be called less often",
            Self::Key => "the authority refuses the key",
            Self::Receiver => "the receiver of the taxpayer fails",
            Self::Panic => "the actor of the taxpayer panics",
        })
    }
}

/// Parses a span of time: a number of seconds, or a number followed by `s` (seconds) or `m` (minutes).
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, seconds) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "a time is a number of seconds, such as 30s, or of minutes, such as 2m")?;
    let span = number.saturating_mul(seconds);
    if !(1..=DRILL_S_MAX).contains(&span) {
        return Err(format!("a drill lasts from 1 to {DRILL_S_MAX} seconds"));
    }
    Ok(Duration::from_secs(span))
}

/// The longest time that a fault may last, in seconds. It is shorter than the hour after which the simulator ends each
/// fault.
const DRILL_S_MAX: u64 = 3_000;
