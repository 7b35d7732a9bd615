//! The table of the request log. The columns of the bodies hold JSON with the stored part of each body.

use database::StoreError;
use database::column::{RowRef, json};
use sea_orm::entity::prelude::*;

use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::request_log::{LoggedRequest, RequestOwner};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "request_log")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub at: i64,
    pub taxpayer_id: Option<i64>,
    pub integrator_id: Option<i64>,
    pub request_id: String,
    pub method: String,
    pub path: String,
    pub route: String,
    pub status: i64,
    pub error_code: Option<String>,
    pub duration_ms: i64,
    pub key_label: String,
    pub invoice: Option<String>,
    pub request: String,
    pub response: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for LoggedRequest {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "request_log",
            id: row.id.clone(),
        };
        Ok(Self {
            id: at.parse(&row.id)?,
            at: at.moment(row.at)?,
            caller: RequestOwner {
                taxpayer: row.taxpayer_id.map(TaxpayerId),
                integrator: row.integrator_id.map(IntegratorId),
            },
            request_id: row.request_id,
            method: row.method,
            path: row.path,
            route: row.route,
            status: u16::try_from(row.status).map_err(|fault| at.corrupt(fault))?,
            error_code: row.error_code,
            duration_ms: u64::try_from(row.duration_ms).map_err(|fault| at.corrupt(fault))?,
            key: row.key_label,
            invoice: row.invoice,
            request: at.parse_json(&row.request)?,
            response: at.parse_json(&row.response)?,
        })
    }
}

impl From<&LoggedRequest> for Model {
    fn from(logged: &LoggedRequest) -> Self {
        Self {
            id: logged.id.to_string(),
            at: logged.at.as_microsecond(),
            taxpayer_id: logged.caller.taxpayer.map(|id| id.0),
            integrator_id: logged.caller.integrator.map(|id| id.0),
            request_id: logged.request_id.clone(),
            method: logged.method.clone(),
            path: logged.path.clone(),
            route: logged.route.clone(),
            status: logged.status.into(),
            error_code: logged.error_code.clone(),
            duration_ms: i64::try_from(logged.duration_ms).unwrap_or(i64::MAX),
            key_label: logged.key.clone(),
            invoice: logged.invoice.clone(),
            request: json(&logged.request),
            response: json(&logged.response),
        }
    }
}
