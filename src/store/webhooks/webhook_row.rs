//! The table of webhook endpoints: the default one of each taxpayer, and those that were added. Secrets are sealed.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;

use crate::domain::events::endpoint::Endpoint;
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "webhooks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false, column_name = "taxpayer_id")]
    pub endpoint_key: i64,
    pub id: i64,
    pub url: String,
    pub enabled_events: String,
    pub is_active: bool,
    pub disabled_reason: Option<String>,
    pub secret: String,
    pub previous_secrets: String,
    pub created_at: i64,
    pub updated_at: i64,
    pub disabled_after: Option<i64>,
    pub failure_streak: Option<String>,
    pub public_key: Option<String>,
    pub retry_schedule: Option<String>,
    /// The taxpayer of an added endpoint; `None` for a default endpoint, whose key is its taxpayer's id.
    pub owner_id: Option<i64>,
    pub description: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Endpoint {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "webhooks",
            id: row.endpoint_key,
        };
        Ok(Self {
            id: row.id,
            key: EndpointKey(row.endpoint_key),
            taxpayer_id: TaxpayerId(row.owner_id.unwrap_or(row.endpoint_key)),
            enabled_events: at.parse_json(&row.enabled_events)?,
            retry_schedule: row
                .retry_schedule
                .as_deref()
                .map(|text| at.parse_json(text))
                .transpose()?,
            created_at: at.moment(row.created_at)?,
            updated_at: at.moment(row.updated_at)?,
            url: row.url,
            description: row.description,
            is_active: row.is_active,
            disabled_reason: row.disabled_reason,
            disabled_after: row.disabled_after,
            public_key: row.public_key,
        })
    }
}
