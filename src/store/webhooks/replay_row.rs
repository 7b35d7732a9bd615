//! The table of replays. A replay sends past events to an endpoint again.

use database::StoreError;
use database::column::{RowRef, json};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;

use crate::domain::events::replay::Replay;
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};
use crate::store::webhooks::delivery_row::owner_id;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "replays")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false, column_name = "taxpayer_id")]
    pub endpoint_key: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub scope: String,
    pub state: String,
    pub after: i64,
    pub until: i64,
    pub position: i64,
    pub queued: i64,
    pub created_at: i64,
    pub updated_at: i64,
    /// The taxpayer of an added endpoint; `None` for a default endpoint, whose key is its taxpayer's id.
    pub owner_id: Option<i64>,
    /// The selected deliveries as JSON; `None` unless the scope is `Selected`.
    pub selection: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Replay {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "replays",
            id: &row.id,
        };
        Ok(Self {
            id: at.parse(&row.id)?,
            taxpayer_id: TaxpayerId(row.owner_id.unwrap_or(row.endpoint_key)),
            endpoint: EndpointKey(row.endpoint_key),
            scope: at.parse(&row.scope)?,
            selection: row
                .selection
                .as_deref()
                .map(|text| at.parse_json(text))
                .transpose()?,
            state: at.parse(&row.state)?,
            after: row.after,
            until: row.until,
            position: row.position,
            queued: row.queued,
            created_at: at.moment(row.created_at)?,
            updated_at: at.moment(row.updated_at)?,
        })
    }
}

impl From<&Replay> for Model {
    fn from(replay: &Replay) -> Self {
        let micros = Timestamp::as_microsecond;
        Self {
            endpoint_key: replay.endpoint.0,
            id: replay.id.to_string(),
            scope: replay.scope.to_string(),
            state: replay.state.to_string(),
            after: replay.after,
            until: replay.until,
            position: replay.position,
            queued: replay.queued,
            created_at: micros(replay.created_at),
            updated_at: micros(replay.updated_at),
            owner_id: owner_id(replay.endpoint, replay.taxpayer_id),
            selection: replay.selection.as_ref().map(json),
        }
    }
}
