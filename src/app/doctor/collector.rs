//! Checks that the collector of traces accepts an export without spans.

use crate::app::doctor::report::CheckResult;
use crate::config::Settings;
use crate::telemetry::traces;

/// Returns `None` if the settings name no collector.
pub(super) async fn check(settings: &Settings) -> Option<CheckResult> {
    let root = settings.telemetry.otlp_endpoint.as_deref()?;
    let answer = traces::probe_collector(root).await;
    Some(match answer {
        Ok(()) => CheckResult::ok("collector", format!("{root} takes traces")),
        Err(error) => CheckResult::warn("collector", format!("{root}: {error}")).advise(
            "start the collector, or correct telemetry.otlp_endpoint; meanwhile spans are dropped",
        ),
    })
}
