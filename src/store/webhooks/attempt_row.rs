//! The table of delivery attempts. Lists do not read the columns of headers, because headers may be long.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;
use sea_orm::{Iterable, QuerySelect, Select};

use crate::domain::events::delivery::{AttemptHeaders, DeliveryAttempt, PhaseDurations};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "attempts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false, column_name = "taxpayer_id")]
    pub endpoint_key: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub delivery_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub attempt: i32,
    pub at: i64,
    pub status: Option<i32>,
    pub failure: Option<String>,
    pub duration_ms: i64,
    pub response: String,
    pub dns_ms: Option<i64>,
    pub connect_ms: Option<i64>,
    pub wait_ms: Option<i64>,
    pub read_ms: Option<i64>,
    /// The headers as JSON lists of names and values; `None` if they were not stored.
    pub request_headers: Option<String>,
    pub response_headers: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Selects attempts without their headers.
pub fn select_without_headers() -> Select<Entity> {
    let absent = || Expr::cust("CAST(NULL AS text)");
    Entity::find()
        .select_only()
        .columns(
            Column::iter().filter(|column| {
                !matches!(column, Column::RequestHeaders | Column::ResponseHeaders)
            }),
        )
        .expr_as(absent(), "request_headers")
        .expr_as(absent(), "response_headers")
}

impl TryFrom<Model> for DeliveryAttempt {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "attempts",
            id: format!("{}/{}", row.delivery_id, row.attempt),
        };
        let status = row
            .status
            .map(u16::try_from)
            .transpose()
            .map_err(|fault| at.corrupt(fault))?;
        let request = row.request_headers.as_deref();
        let headers = request.zip(row.response_headers.as_deref());
        let headers = headers.map(|(request, response)| {
            Ok::<_, StoreError>(AttemptHeaders {
                request: at.parse_json(request)?,
                response: at.parse_json(response)?,
            })
        });
        Ok(Self {
            at: at.moment(row.at)?,
            status,
            failure: row.failure,
            duration_ms: row.duration_ms,
            phases: PhaseDurations {
                dns_ms: row.dns_ms,
                connect_ms: row.connect_ms,
                wait_ms: row.wait_ms,
                read_ms: row.read_ms,
            },
            response: row.response,
            headers: headers.transpose()?,
        })
    }
}
