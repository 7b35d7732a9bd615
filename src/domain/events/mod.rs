//! The event log of a taxpayer: its events, the endpoints to which they are delivered, and the signed heads of its hash
//! chain.
//!
//! | File | Content |
//! |---|---|
//! | `checkpoint` | signed checkpoints of the event logs of taxpayers |
//! | `delivery` | a delivery: one event to be sent to one endpoint |
//! | `endpoint` | a webhook endpoint of a taxpayer, with its settings: the signature of notifications and the schedule of retries |
//! | `endpoint_health` | the health of an endpoint as a circuit breaker |
//! | `event` | the event log of a taxpayer, whose events are chained by hashes |
//! | `log_position` | a position in the event log of a taxpayer: the sequence of an event, or a time |
//! | `replay` | a replay, which delivers events of the log again, in batches |
//! | `selection` | the deliveries of one endpoint that a caller selected to be sent again |

pub mod checkpoint;
pub mod delivery;
pub mod endpoint;
pub mod endpoint_health;
pub mod event;
pub mod log_position;
pub mod replay;
pub mod selection;
