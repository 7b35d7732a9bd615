//! The table of deliveries. A delivery is an event that is to be sent to an endpoint.

use database::StoreError;
use database::column::{RowRef, to_count_column};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;

use crate::domain::events::delivery::Delivery;
use crate::domain::kernel::crash::CrashHistory;
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "deliveries")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false, column_name = "taxpayer_id")]
    pub endpoint_key: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub event_id: String,
    pub sequence: i64,
    pub kind: String,
    pub order_key: String,
    pub state: String,
    pub attempts: i32,
    pub next_attempt_at: Option<i64>,
    pub created_at: i64,
    pub updated_at: i64,
    pub attempts_before: i32,
    /// True if this delivery is the chain head, the earliest pending delivery with its order key (see
    /// `delivery_heads`).
    pub is_first: bool,
    pub crashes: i32,
    pub is_lifted: bool,
    /// The taxpayer of an added endpoint; `None` for a default endpoint, whose key is its taxpayer's id.
    pub owner_id: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Delivery {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "deliveries",
            id: row.id.clone(),
        };
        Ok(Self {
            id: at.parse(&row.id)?,
            taxpayer_id: TaxpayerId(row.owner_id.unwrap_or(row.endpoint_key)),
            endpoint: EndpointKey(row.endpoint_key),
            event_id: at.parse(&row.event_id)?,
            sequence: row.sequence,
            order_key: row.order_key,
            state: at.parse(&row.state)?,
            attempts: at.to_count(row.attempts)?,
            attempts_before: at.to_count(row.attempts_before)?,
            next_attempt_at: row
                .next_attempt_at
                .map(|moment| at.moment(moment))
                .transpose()?,
            crash_history: CrashHistory {
                crashes: at.to_count(row.crashes)?,
                panics: 0,
                is_lifted: row.is_lifted,
            },
        })
    }
}

impl Model {
    /// Creates the row with `is_first` false. `delivery_heads` decides later whether the delivery is a chain head.
    pub fn from_delivery(delivery: &Delivery, kind: &str, now: Timestamp) -> Self {
        Self {
            endpoint_key: delivery.endpoint.0,
            id: delivery.id.to_string(),
            event_id: delivery.event_id.to_string(),
            sequence: delivery.sequence,
            kind: kind.to_owned(),
            order_key: delivery.order_key.clone(),
            state: delivery.state.to_string(),
            attempts: to_count_column(delivery.attempts),
            next_attempt_at: delivery.next_attempt_at.map(Timestamp::as_microsecond),
            created_at: now.as_microsecond(),
            updated_at: now.as_microsecond(),
            attempts_before: to_count_column(delivery.attempts_before),
            is_first: false,
            crashes: to_count_column(delivery.crash_history.crashes),
            is_lifted: delivery.crash_history.is_lifted,
            owner_id: owner_id(delivery.endpoint, delivery.taxpayer_id),
        }
    }
}

/// Returns the value of the column `owner_id`: the taxpayer of an added endpoint; `None` for a default endpoint, whose
/// key is already its taxpayer's id.
pub(super) fn owner_id(endpoint: EndpointKey, taxpayer: TaxpayerId) -> Option<i64> {
    (!endpoint.is_default()).then_some(taxpayer.0)
}
