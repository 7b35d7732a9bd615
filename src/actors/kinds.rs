//! The kinds of actors of the service, in the order in which operators see them.

use std::time::Duration;

use supervision::NodeKind;
use supervision::watchdog::WatchdogLimits;

pub const TAXPAYER: NodeKind = NodeKind::transient("taxpayer");
pub const PIPELINE: NodeKind = NodeKind::transient("pipeline");
pub const WEBHOOK: NodeKind = NodeKind::transient("webhook");
pub const REFERENCE: NodeKind = NodeKind::permanent("reference");
pub const INBOUND: NodeKind = NodeKind::permanent("inbound");
pub const JANITOR: NodeKind = NodeKind::permanent("janitor");

pub const ALL: &[NodeKind] = &[TAXPAYER, PIPELINE, WEBHOOK, REFERENCE, INBOUND, JANITOR];

/// Returns the limits for the time that an actor spends on one batch. Above them, the watchdog reports the actor as
/// busy or as stuck. A batch may make several external calls, so the limits are multiples of the time for one call.
pub fn watchdog_limits(kind: NodeKind, external_timeout: Duration) -> WatchdogLimits {
    match kind {
        PIPELINE => WatchdogLimits {
            busy_after: external_timeout.saturating_mul(2),
            stuck_after: external_timeout.saturating_mul(5),
        },
        WEBHOOK => WatchdogLimits {
            busy_after: external_timeout,
            stuck_after: external_timeout.saturating_mul(3),
        },
        _ => WatchdogLimits::default(),
    }
}
