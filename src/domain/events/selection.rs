//! The deliveries of one endpoint that a caller chose to have made again.

use serde::{Deserialize, Serialize};

use crate::domain::events::delivery::DeliveryState;
use crate::domain::events::event::EventKind;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliverySelection {
    /// The deliveries of the events with these sequences, in ascending order.
    Chosen(Vec<i64>),
    Matching(DeliveryMatch),
}

/// The deliveries that match. A field that is `None` matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryMatch {
    /// The state in which the replay finds the delivery.
    pub state: Option<DeliveryState>,
    pub event: Option<EventKind>,
    /// The spellings of the IRN of the event.
    pub irns: Option<Vec<String>>,
}
