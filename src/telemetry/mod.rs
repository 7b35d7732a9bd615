//! Logging: lines of text or JSON on standard error. Nothing is logged to standard output, which is for the results
//! of commands. `traces` sends spans to a collector.

pub mod traces;

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::config::{LogFormat, LogLevel, LogSettings};

/// The environment variable with a detailed log filter, which overrides the setting `log.level`.
const FILTER_VARIABLE: &str = "RUST_LOG";

/// At the level `info` these crates log only warnings, because they have many routine messages.
const QUIET_DIRECTIVES: [&str; 3] = ["sea_orm_migration=warn", "actix_server=warn", "sqlx=warn"];
/// Switches off the log of `actix_http`, which reports every malformed request of a stranger as an error, and that of
/// `rustls_platform_verifier`, which reports every failed handshake as one. Our own log reports each untrusted
/// certificate once.
const SILENT_DIRECTIVES: [&str; 2] = ["actix_http=off", "rustls_platform_verifier=off"];

/// Starts logging. Further calls, as in tests, change nothing.
pub fn init(log: &LogSettings) {
    let detailed_filter = std::env::var(FILTER_VARIABLE).unwrap_or_default();
    let (filter, parse_error) = log_filter(log.level, &detailed_filter);
    // A line that cannot be written is lost without a report. The crate would report the line on the same standard
    // error with `eprintln!`, which panics: on a full disk, all work that logs would panic.
    let lines = tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(stderr);
    let is_terminal = stderr().is_terminal();
    // Starting fails if logging is already started. The first configuration then stays in force.
    let result = if is_json(log.format, is_terminal) {
        lines.json().flatten_event(true).try_init()
    } else {
        lines.with_ansi(is_terminal).try_init()
    };
    if let (Ok(()), Some(parse_error)) = (result, parse_error) {
        tracing::warn!("{FILTER_VARIABLE} is not used: {parse_error}");
    }
}

fn is_json(format: LogFormat, is_terminal: bool) -> bool {
    match format {
        LogFormat::Json => true,
        LogFormat::Text => false,
        LogFormat::Auto => !is_terminal,
    }
}

/// Returns the log filter. If `detailed_filter` is not a valid filter, returns the filter for `level` alone, and the
/// parse error.
fn log_filter(level: LogLevel, detailed_filter: &str) -> (EnvFilter, Option<String>) {
    if detailed_filter.is_empty() {
        return (level_filter(level), None);
    }
    match EnvFilter::builder().parse(detailed_filter) {
        Ok(filter) => (filter, None),
        Err(error) => (level_filter(level), Some(error.to_string())),
    }
}

fn level_filter(level: LogLevel) -> EnvFilter {
    let own_filter = EnvFilter::default().add_directive(level_threshold(level).into());
    let directives: Vec<_> = match level {
        LogLevel::Info => SILENT_DIRECTIVES
            .into_iter()
            .chain(QUIET_DIRECTIVES)
            .collect(),
        LogLevel::Warn | LogLevel::Error => SILENT_DIRECTIVES.to_vec(),
        LogLevel::Off | LogLevel::Debug | LogLevel::Trace => Vec::new(),
    };
    let directives = directives
        .iter()
        .filter_map(|directive| directive.parse().ok());
    directives.fold(own_filter, EnvFilter::add_directive)
}

fn level_threshold(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filter for the level `warn`, with the longest target first.
    const SILENT_AT_WARN: &str = "rustls_platform_verifier=off,actix_http=off,warn";

    #[test]
    fn the_setting_decides_and_rust_log_wins() {
        assert_eq!(log_filter(LogLevel::Warn, "").0.to_string(), SILENT_AT_WARN);
        assert_eq!(
            log_filter(LogLevel::Warn, "einvoice=debug").0.to_string(),
            "einvoice=debug"
        );
    }

    #[test]
    fn verbose_crates_are_quiet_at_info() {
        let quiet = log_filter(LogLevel::Info, "").0.to_string();
        assert!(
            QUIET_DIRECTIVES
                .iter()
                .all(|directive| quiet.contains(directive)),
            "{quiet}"
        );
        assert!(quiet.contains("info"), "{quiet}");
        assert!(
            SILENT_DIRECTIVES
                .iter()
                .all(|directive| quiet.contains(directive)),
            "anybody could fill the log: {quiet}"
        );
        assert_eq!(log_filter(LogLevel::Off, "").0.to_string(), "off");
        assert_eq!(log_filter(LogLevel::Debug, "").0.to_string(), "debug");
    }

    #[test]
    fn an_invalid_rust_log_is_reported_and_not_used() {
        let (filter, parse_error) = log_filter(LogLevel::Warn, "einvoice=loud");
        assert_eq!(filter.to_string(), SILENT_AT_WARN);
        assert!(parse_error.is_some());
    }

    #[test]
    fn text_is_for_terminals() {
        assert!(is_json(LogFormat::Auto, false));
        assert!(!is_json(LogFormat::Auto, true));
        assert!(is_json(LogFormat::Json, true));
        assert!(!is_json(LogFormat::Text, false));
    }

    #[test]
    fn logging_can_be_started_twice() {
        let log = LogSettings {
            level: LogLevel::Off,
            format: LogFormat::Auto,
        };
        init(&log);
        init(&log);
    }
}
