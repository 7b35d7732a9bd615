//! The deliveries of one endpoint that a caller selected to be sent again.

use serde::{Deserialize, Serialize};

use crate::domain::events::delivery::DeliveryState;
use crate::domain::events::event::EventKind;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliverySelection {
    /// The deliveries of the events with these sequences, in ascending order.
    Chosen(Vec<i64>),
    Matching(DeliveryConditions),
}

/// A filter of deliveries. A field that is `None` does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryConditions {
    /// The state of the delivery at the time when the replay reaches it.
    pub state: Option<DeliveryState>,
    pub event: Option<EventKind>,
    /// The event must have one of these IRNs, which are spellings of one IRN.
    pub irns: Option<Vec<String>>,
}
