//! The kinds of actors of the service, in the order in which operators see them.

use supervision::NodeKind;

pub const TAXPAYER: NodeKind = NodeKind::transient("taxpayer");
pub const PIPELINE: NodeKind = NodeKind::transient("pipeline");
pub const WEBHOOK: NodeKind = NodeKind::transient("webhook");
pub const REFERENCE: NodeKind = NodeKind::permanent("reference");
pub const INBOUND: NodeKind = NodeKind::permanent("inbound");
pub const JANITOR: NodeKind = NodeKind::permanent("janitor");

pub const ALL: &[NodeKind] = &[TAXPAYER, PIPELINE, WEBHOOK, REFERENCE, INBOUND, JANITOR];
